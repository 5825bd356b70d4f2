"""Build the wheel and the sdist, and check them as a user gets them: `make package`.

    built       builds both
    contents    every file of src/wengert is in both, and nothing else of the repository
    metadata    what the index shows: description, license, extras, versions of Python
    readable    twine finds the description and metadata fit for a package index
    installed   installs one in a new virtual environment, with its dependencies, and runs PROGRAM

Installing downloads the dependencies with pip, as configured.
"""

from __future__ import annotations

import argparse
import email
import importlib.util
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGEST = {".whl": 3.8, ".gz": 2.9}  # MB; what a wheel has: docs/design/0018-structure.md
PROGRAM = """
import sys

import numpy as np
import wengert as wg

assert "site-packages" in wg.__file__, wg.__file__
f = lambda x: np.sum(np.sin(x) ** 2)
x = np.linspace(0.0, 1.0, 5)
assert np.allclose(wg.grad(f)(x), np.sin(2 * x))
assert np.allclose(wg.jit(wg.grad(f))(x), np.sin(2 * x))
assert "<svg" in wg.show.to_svg(wg.trace(f)(x)) and "<iframe" in wg.show.repr_html(wg.trace(f)(x))
print("wengert", wg.__version__, "works on Python", sys.version.split()[0])
"""


def main() -> int:
    """Build, check, and install in new environments unless told not to."""
    parser = argparse.ArgumentParser(description="Check the wheel and the sdist.")
    parser.add_argument("--no-install", action="store_true", help="only build and look inside")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to install for")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for path in built(Path(folder)):
            print(f"{path.name}: {checked(path):.2f} MB")
            if not options.no_install:
                installed(path, Path(folder) / path.suffix.strip("."), options.python)
    return 0


def built(folder: Path) -> list[Path]:
    """The wheel and the sdist of this checkout, in a folder."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(folder.glob("wengert-*"))


def checked(path: Path) -> float:
    """The size of a wheel or an sdist in MB, after all checks without an installation."""
    contents(path)
    metadata(path)
    readable(path)
    size = path.stat().st_size / 1e6
    assert size < LARGEST[path.suffix], f"{path.name} has {size:.2f} MB"
    return size


def members(path: Path) -> set[str]:
    """The files of a wheel or an sdist, without the folder at the top of an sdist."""
    if path.suffix == ".whl":
        return set(zipfile.ZipFile(path).namelist())
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def contents(path: Path) -> None:
    """All sources, type marker and templates are there; tests and benchmarks are not."""
    source = ROOT / "src"
    expected = {
        file.relative_to(source).as_posix()
        for file in (source / "wengert").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    found = members(path)
    if path.suffix != ".whl":
        assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} <= found
        found = {name.removeprefix("src/") for name in found if name.startswith("src/wengert/")}
    else:
        found = {name for name in found if ".dist-info/" not in name}
    assert found == expected, sorted(found ^ expected)
    assert "wengert/py.typed" in found


def metadata(path: Path) -> None:
    """What pip and package indexes read agrees with pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if path.suffix == ".whl":
        archive = zipfile.ZipFile(path)
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode("utf-8")
    else:
        with tarfile.open(path) as tar:
            file = tar.extractfile(f"wengert-{project['version']}/PKG-INFO")
            assert file is not None
            text = file.read().decode("utf-8")
    read = email.message_from_string(text)
    assert (read["Name"], read["Version"]) == ("wengert", project["version"])
    assert read["Summary"] == project["description"]
    assert read["License-Expression"] == "Apache-2.0"
    assert read["Description-Content-Type"] == "text/markdown"
    assert read["Requires-Python"] == project["requires-python"]
    assert set(read.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
    assert read.get_all("Classifier") == project["classifiers"]
    assert str(read.get_payload()).lstrip().startswith("# wengert")


def readable(path: Path) -> None:
    """What `twine check --strict` says, where it is installed."""
    if importlib.util.find_spec("twine") is None:
        print("twine is not installed: not checked by it")
        return
    command = [sys.executable, "-m", "twine", "check", "--strict", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def installed(path: Path, environment: Path, interpreter: str) -> None:
    """Install in a new environment, and run a program there."""
    subprocess.run([interpreter, "-m", "venv", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    options = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", "install", *options, str(path)], check=True)
    subprocess.run([python, "-m", "pip", "check", *options], check=True)
    subprocess.run([python, "-W", "error", "-c", PROGRAM], check=True, cwd=environment)
    doctor = [str(environment / "bin" / "wengert"), "doctor"]
    done = subprocess.run(doctor, cwd=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
