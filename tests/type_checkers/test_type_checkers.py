"""What type checkers say of the package, and of a user's program (user_program.py)."""

import ast
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wengert as wg
from tools.documentation import notebooks
from wengert._engine.tensor import methods, operators

PROGRAM = Path(__file__).with_name("user_program.py")
ROOT = Path(__file__).parents[2]
# Installed beside the interpreter (whose environment need not be activated), or on the path.
PATHS = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
PYRIGHT = next(
    (found for name in ("pyright", "basedpyright") if (found := shutil.which(name, path=PATHS))),
    None,
)


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_agrees_with_the_program():
    """With the bodies of the package's functions left to `make types`, which takes a minute."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", str(PROGRAM)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_agrees():
    """With the package, the tools and the program: what `make types` runs."""
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_agrees_with_the_program_alone():
    """Strictly, as a user runs it who has the package installed."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(PROGRAM)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def tutorials(tmp_path):
    """A folder with the code of each tutorial as a program."""
    for page in notebooks.tutorials():
        code = "\n".join(notebooks.code(page.read_text(encoding="utf-8")))
        (tmp_path / f"{page.stem.replace('-', '_')}.py").write_text(code, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_agrees_with_the_tutorials(tutorials):
    """As a user runs it, without options but for libraries that have no types."""
    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(tutorials)],
        capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed")
def test_pyright_agrees(tmp_path):
    shown = errors_of_pyright(tmp_path, PROGRAM, reportUnnecessaryTypeIgnoreComment=True)
    assert not shown, "\n".join(shown)


@pytest.mark.slow
@pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed")
def test_pyright_agrees_with_the_tutorials(tutorials):
    """Types of SciPy, which has none, are not guessed from its code."""
    shown = errors_of_pyright(tutorials, tutorials, useLibraryCodeForTypes=False)
    assert not shown, "\n".join(shown)


def errors_of_pyright(folder, program, **options):
    """The lines and messages of its errors, with its standard rules."""
    configuration = {
        "include": [str(program)],
        "extraPaths": [str(ROOT / "src")],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
        **options,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(configuration))
    done = subprocess.run(
        [PYRIGHT, "--project", str(folder), "--pythonpath", sys.executable, "--outputjson"],
        capture_output=True, text=True,
    )  # fmt: skip
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [
        f"{Path(d['file']).name}:{d['range']['start']['line'] + 1}: {d['message']}"
        for d in found
        if d["severity"] == "error"
    ]


def declared(source):
    """The names that a module or class binds under `if TYPE_CHECKING`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom):
                    found |= {alias.asname or alias.name for alias in line.names}
                elif isinstance(line, ast.Assign):
                    found |= {target.id for target in line.targets}
                elif isinstance(line, ast.AnnAssign):
                    found.add(line.target.id)
                elif isinstance(line, ast.FunctionDef):
                    found.add(line.name)
    return found


def test_names_imported_at_first_use_are_declared():
    at_first_use = {*wg.PACKAGES, *wg.ELSEWHERE, *(n for n in wg.ENGINE if "." not in n)} - {"ops"}
    found = {n for n in declared(inspect.getsource(wg)) if not n.startswith("_")}
    assert found == at_first_use


def test_methods_and_operators_of_tensor_are_declared():
    classes = {"Array", "Axes", "DType", "Operand", "Tensor"}  # imported for annotations
    assert set(methods.FROM_NUMPY) == declared(inspect.getsource(methods)) - classes
    binary = {f"__{form}{n}__" for n in operators.BINARY for form in ("", "r", "i")}
    others = {f"__{n}__" for n in (*operators.COMPARISONS, *operators.UNARY)}
    assert binary | others == declared(inspect.getsource(operators)) - classes
