"""Rules of this repository that no linter has.

    maps        every module opens with a docstring that says what it holds: 3 lines or more,
                one or more in an __init__.py; that of a folder names every module in it
    privacy     a name that begins with an underscore is used in its own file only
    sizes       a file has at most 450 lines, a function at most 60 beside its docstring
    promises    no note to do something later: do it, or say so where users can read it
    neutrality  no file names a host of a package index or a path of the machine it was written on,
                and no lock file fixes versions for one machine
    package     typed, one version, one configuration

Size limits may be raised, by changing the line here that states them, with the reason.
"""

import ast
import functools
import importlib.util
import json
import re
import subprocess
import sys
import tomllib

import pytest

from . import sources
from .sources import PACKAGE, ROOT, nodes_of, tree_of

MODULES = sorted(sources.MODULES.values())
FOLDERS = ("src", "tests", "docs", "examples", "benchmarks", "tools", ".ci")
FILE_LIMIT = 450
FUNCTION_LIMIT = 60
MAP_LIMIT = 3


def words(*halves):
    """A pattern for words that are written here in halves, so that this file has none of them."""
    return "(?:" + "|".join(a + b for a, b in halves) + ")"


PROMISES = re.compile(rf"\b{words(('TO', 'DO'), ('FIX', 'ME'), ('X', 'XX'))}\b")
HOSTS = re.compile(
    words(("py", r"pi\.org"), ("python", r"hosted\.org"), ("py", r"torch\.org/whl"))
    + "|"
    + words(("ana", r"conda\.(?:org|com)"), ("download.py", r"torch\.org"))
)
PATHS = re.compile(
    r"(?<![\w.])/"
    + words(("ro", "ot"), ("ho", r"me/\w+"), ("Us", r"ers/\w+"), ("op", r"t/(?:wheels|py\w+)"))
    + "/|(?<![\\w.])/"
    + words(("wo", "rk/main"), ("wo", "rk/shared"))
)
LOCKS = ("*.lock", "*-lock.*", "requirements*.txt", "constraints*.txt", "Pipfile*")


@functools.cache
def texts():
    """Every text file of the repository that is not made by a tool."""
    found = []
    # A worktree's own .git is a file that names the repository: nothing that is committed.
    files = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for folder in FOLDERS:
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in sorted(files):
        if "__pycache__" in path.parts or path.suffix in (".pyc", ".png", ".npz", ".npy"):
            continue
        try:
            found.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def offences(pattern):
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path, text in texts()
        if pattern.search(text)  # line by line takes several times as long
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def relative(path):
    return path.relative_to(PACKAGE).as_posix()


def where(path, node):
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def test_modules_open_with_a_map():
    for path in MODULES:
        docstring = ast.get_docstring(tree_of(path))
        assert docstring, f"{path}: no docstring: say what it holds, why, and where to begin"
        lines = [line for line in docstring.splitlines() if line.strip()]
        assert path.name == "__init__.py" or len(lines) >= MAP_LIMIT, f"{path}: a short map"


# `apply` reads the state of recording itself: a call would cost a tenth of an operation.
OPENED = {"_engine/core/dispatch.py"}


def test_private_names_stay_in_their_file():
    imported = [
        f"{where(path, node)}: {alias.name}"
        for path in MODULES
        if relative(path) not in OPENED
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
        if re.match("_[a-zA-Z]", alias.name)
    ]
    assert imported == []


def test_the_map_of_a_folder_names_every_module():
    for path in MODULES:
        if path.name == "__init__.py" and path.parent != PACKAGE:
            docstring = ast.get_docstring(tree_of(path))
            if "the imports are the table" in docstring:
                imports = [n for n in tree_of(path).body if isinstance(n, ast.ImportFrom)]
                docstring += " ".join(n.module for n in imports if n.level == 1)
            modules = {module.stem for module in path.parent.glob("*.py")} - {"__init__"}
            missing = modules - set(re.findall(r"\w+", docstring))
            assert not missing, f"{path} does not name {missing}"


def test_files_named_in_docstrings_and_comments_exist():
    files = [f"/{path.relative_to(ROOT).as_posix()}" for path, _ in texts() if path.suffix == ".py"]
    ends = {file[k:] for file in files for k, letter in enumerate(file) if letter == "/"}
    examples = {"file.py", "model.py", "script.py"}  # of the user
    missing = [
        f"{relative(path)}:{number}: {name}"
        for path, text in texts()
        if path.is_relative_to(PACKAGE) and ".py" in text
        for number, line in enumerate(text.splitlines(), 1)
        for name in re.findall(r"[\w/]+\.py\b", line)
        if name not in examples and f"/{name}" not in ends
    ]
    assert missing == []


def test_modules_and_functions_are_small():
    lengths = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in MODULES}
    assert not {p: n for p, n in lengths.items() if n > FILE_LIMIT}
    long = [
        f"{where(path, node)}: {node.name} has {size} lines"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := code_lines(node)) > FUNCTION_LIMIT
    ]
    assert not long, long


def code_lines(function):
    """Lines of a function beside its docstring."""
    size = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        size -= function.body[0].end_lineno - function.body[0].lineno + 1
    return size


def test_no_promises():
    assert not offences(PROMISES)


def test_no_host_of_a_package_index():
    assert not offences(HOSTS)


def test_no_path_of_this_machine():
    assert not offences(PATHS)
    here = re.compile(re.escape(str(ROOT)) + r"(?![\w-])")
    assert len(ROOT.parts) < 3 or not offences(here)


def test_no_lock_files():
    assert not [str(path) for pattern in LOCKS for path in ROOT.glob(pattern)]


def test_the_searches_find_what_they_look_for():
    assert PROMISES.search("# TO" + "DO: later")
    assert HOSTS.search("https://py" + "pi.org/simple")
    assert PATHS.search('open("/ho' + 'me/ada/data")')
    assert not PATHS.search("https://example.org/ro" + "ot/page")
    function = ast.parse('def f():\n    """One\n    two."""\n    return 1').body[0]
    assert code_lines(function) == 2


def test_package_is_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_one_version_and_one_configuration():
    import wengert

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert wengert.__version__ == project["version"]
    others = ("setup.py", "setup.cfg", "tox.ini", "pytest.ini", "mypy.ini", "ruff.toml")
    assert not [name for name in others if (ROOT / name).exists()]
    if (ROOT / "README.md").exists():
        assert project.get("readme") == "README.md", "name the README in pyproject.toml"


def test_import_is_light():
    """What only some users need is imported when they need it (each costs more than NumPy)."""
    heavy = ["matplotlib", "sklearn", "rich", "llvmlite", "scipy.stats", "scipy.optimize"]
    code = f"import sys, wengert; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks" / "results").glob("*.json")), ids=lambda p: p.stem
)
def test_page_of_results_is_rendered(path, monkeypatch):
    script = path.parents[1] / f"{path.stem}.py"
    monkeypatch.syspath_prepend(str(script.parent))
    spec = importlib.util.spec_from_file_location(f"benchmarks_{path.stem}", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = ROOT / "docs" / module.PAGE
    rendered = module.render(json.loads(path.read_text(encoding="utf-8")))
    assert page.read_text(encoding="utf-8") == rendered, "run `make docs`"


def test_page_of_all_results_is_rendered(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from overview import page, results

    made = page.files(results.everything())
    plots = {f"{page.PLOTS}/{path.name}" for path in (ROOT / "docs" / page.PLOTS).iterdir()}
    assert plots == made.keys() - {page.PAGE}, "run `make docs`"
    stale = [name for name, text in made.items() if (ROOT / "docs" / name).read_text() != text]
    assert not stale, "run `make docs`"


def test_table_of_the_readme_is_rendered(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from native import readme

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count(readme.BEGIN) == text.count(readme.END) == 1
    path = ROOT / "benchmarks" / "results" / "native.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    assert readme.replaced(text, results) == text, "run `make docs`"
    assert text.count(readme.LOOPS[0]) == text.count(readme.LOOPS[1]) == 1
    path = ROOT / "benchmarks" / "results" / "loops.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    assert readme.said(text, results) == text, "run `make docs`"
    case = {"a": {"median": 2.0}, "b": {"failed": "x"}, "C": {"median": 1.0}}
    cases = [{"case": n, "contestants": {**case, "wengert": {"median": n}}} for n in (0.5, 4.0)]
    section = {"title": "sums", "threads": 1, "peers": None, "cases": cases}
    described = {"date": "", "cpu": "a machine", "cores": 1, "system": "", "python": ""}
    made = readme.block({"machine": {**described, "packages": {}}, "sections": [section]})
    assert re.search(r"\| sums \(2 cases\) +\| +0.5 to 4 \| +0.25 to 2 \|", made), made
    assert "a machine" in made


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_paths_of_the_glossary_are_there():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+(?:\.py|/|\.md))`", text)
    assert len(named) > 60
    folder = PACKAGE
    for path in named:
        at = ROOT / path if path.startswith("docs/") else PACKAGE / path
        if "/" not in path:  # beside the path before it
            at = folder / path
        folder = at if at.is_dir() else at.parent
        assert at.exists(), path


def test_links_between_pages_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([\w./-]+(?:\.md|\.py|/))\)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert not broken
