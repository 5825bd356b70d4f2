"""Build wheels and sdists, and check them as a user gets them: `make package`.

There are two distributions of src/wengert: wengert, and wengert-extras (extras/pyproject.toml).

    built       builds a wheel and an sdist of each
    contents    its files of src/wengert are in both, and nothing else of the repository
    metadata    what the index shows: description, license, extras, versions of Python
    readable    twine finds the description and metadata fit for a package index
    installed   installs in a new virtual environment, with the dependencies, and runs PROGRAM;
                for wengert-extras, both distributions, EXTRAS_PROGRAM, and PROGRAM without it

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
PROJECTS = {"wengert": ROOT, "wengert_extras": ROOT / "extras"}
LARGEST = 3.0  # MB of a file; what a wheel has: docs/design/0018-structure.md
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
# In an environment without other packages than the dependencies.
EXTRAS_PROGRAM = """
from importlib.util import find_spec

import wengert as wg
from wengert._engine.core.extra_packages import EXTRA_PACKAGES

for name in EXTRA_PACKAGES:  # scikit-learn, which one of them imports, may not be installed
    assert "site-packages" in find_spec(name).origin
import wengert.compat.autograd.numpy as np

x = np.linspace(0.0, 1.0, 5)
assert np.allclose(wg.compat.autograd.grad(lambda x: np.sum(np.sin(x)))(x), np.cos(x))
with wg.backends.emulated_device():
    found = wg.device_get(wg.jit(wg.grad(lambda x: np.sum(x * x)), backend="cuda")(x))
    assert np.allclose(found, 2 * x)
print("wengert-extras works")
"""


def main() -> int:
    """Build, check, and install in new environments unless told not to."""
    parser = argparse.ArgumentParser(description="Check the wheel and the sdist.")
    parser.add_argument("--no-install", action="store_true", help="only build and look inside")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to install for")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = built(Path(folder))
        for path in paths:
            print(f"{path.name}: {checked(path):.2f} MB")
        for suffix in () if options.no_install else (".whl", ".gz"):
            wengert, extras = sorted(p for p in paths if p.suffix == suffix)
            installed(wengert, extras, Path(folder) / suffix.strip("."), options.python)
    return 0


def built(folder: Path) -> list[Path]:
    """The wheels and sdists of this checkout, in a folder."""
    for project in PROJECTS.values():
        options = ["--no-isolation", "--outdir", str(folder), str(project)]
        command = [sys.executable, "-m", "build", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return sorted(folder.glob("wengert*"))


def checked(path: Path) -> float:
    """The size of a wheel or an sdist in MB, after all checks without an installation."""
    contents(path)
    metadata(path)
    readable(path)
    size = path.stat().st_size / 1e6
    assert size < LARGEST, f"{path.name} has {size:.2f} MB"
    return size


def members(path: Path) -> set[str]:
    """The files of a wheel or an sdist, without the folder at the top of an sdist."""
    if path.suffix == ".whl":
        return set(zipfile.ZipFile(path).namelist())
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def extra_files() -> tuple[str, ...]:
    """The files and folders of src that wengert-extras has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names: list[str] = project["tool"]["hatch"]["build"]["exclude"]
    return tuple(name.removeprefix("/src/") for name in names)


def contents(path: Path) -> None:
    """All sources, type marker and templates are there; tests and benchmarks are not."""
    source = ROOT / "src"
    is_extra = path.name.startswith("wengert_extras")
    files = (source / "wengert").rglob("*")
    names = {
        file.relative_to(source).as_posix()
        for file in files
        if file.is_file() and "__pycache__" not in file.parts
    }
    extra = tuple(name if name.endswith(".py") else f"{name}/" for name in extra_files())
    expected = {name for name in names if name.startswith(extra) == is_extra}
    found = members(path)
    if path.suffix != ".whl":
        more = {"hatch_build.py"} if is_extra else {"CHANGELOG.md"}
        assert {"pyproject.toml", "README.md", "LICENSE", *more} <= found
        found = {name.removeprefix("src/") for name in found if name.startswith("src/wengert/")}
    else:
        found = {name for name in found if ".dist-info/" not in name}
    assert found == expected, sorted(found ^ expected)
    assert is_extra or "wengert/py.typed" in found


def metadata(path: Path) -> None:
    """What pip and package indexes read agrees with pyproject.toml."""
    folder = PROJECTS[path.name.partition("-")[0]]
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if path.suffix == ".whl":
        archive = zipfile.ZipFile(path)
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode("utf-8")
    else:
        with tarfile.open(path) as tar:
            file = tar.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
            assert file is not None
            text = file.read().decode("utf-8")
    read = email.message_from_string(text)
    assert (read["Name"], read["Version"]) == (project["name"], project["version"])
    assert read["Summary"] == project["description"]
    assert read["License-Expression"] == "Apache-2.0"
    assert read["Description-Content-Type"] == "text/markdown"
    assert read["Requires-Python"] == project["requires-python"]
    extras = project.get("optional-dependencies", {})
    assert set(read.get_all("Provides-Extra", [])) == set(extras)
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


def installed(wengert: Path, extras: Path, environment: Path, interpreter: str) -> None:
    """Install in a new environment, and run programs there."""
    subprocess.run([interpreter, "-m", "venv", str(environment)], check=True)
    python = str(environment / "bin" / "python")

    def pip(*arguments: str) -> None:
        command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
        subprocess.run(command, check=True)

    def run(program: str) -> None:
        subprocess.run([python, "-W", "error", "-c", program], check=True, cwd=environment)

    pip("install", str(wengert))
    pip("check")
    run(PROGRAM)
    doctor = [str(environment / "bin" / "wengert"), "doctor"]
    done = subprocess.run(doctor, cwd=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    pip("install", str(extras))
    pip("check")
    run(EXTRAS_PROGRAM)
    pip("uninstall", "--yes", "wengert-extras")  # which leaves the folders of both
    run(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
