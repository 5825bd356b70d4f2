"""The wheel and the sdist, as tools/package_check.py sees them.

`make package` also installs them in new environments; here the wheel runs with the packages that
are installed.
"""

import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytest.importorskip("build", reason="needs the extra `dev`")
pytest.importorskip("hatchling", reason="needs the extra `dev`")


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("package_check", ROOT / "tools/package_check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def paths(check, tmp_path_factory):
    return check.built(tmp_path_factory.mktemp("built"))


def run_in(site, code):
    """A program that finds no other wengert than that of a folder."""
    start = f"""
import sys
from pathlib import Path
sys.path[:] = [{str(site)!r}, *(p for p in sys.path if not Path(p, "wengert").exists())]
"""
    command = [sys.executable, "-c", start + code]
    return subprocess.run(command, capture_output=True, text=True, cwd=site)


def unpacked(paths, folder, *names):
    for path in paths:
        if path.suffix == ".whl" and path.name.partition("-")[0] in names:
            zipfile.ZipFile(path).extractall(folder)
    return folder


def test_wheels_and_sdists(check, paths):
    assert [path.suffix for path in paths] == [".whl", ".gz"] * 2
    for path in paths:
        assert check.checked(path) < check.LARGEST


def test_wengert_without_wengert_extras(check, paths, tmp_path):
    site = unpacked(paths, tmp_path / "site-packages", "wengert")
    done = run_in(site, check.PROGRAM)
    assert done.returncode == 0, done.stderr
    code = """
import importlib, pkgutil, pydoc, wengert as wg
from wengert._engine.core.extra_packages import EXTRA_PACKAGES

for name, extra in EXTRA_PACKAGES.items():
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert f"pip install 'wengert[{extra}]'" in str(error) and error.name == name, error
    else:
        raise AssertionError(name)
try:
    from wengert import onnx
except ModuleNotFoundError as error:
    assert "wengert[onnx]" in str(error)
from wengert import *
from wengert.backends import *
from wengert.compiling import *
from wengert.memory import *
from wengert.optim import *
assert callable(grad) and not {"onnx", "device_put"} & set(dir(wg))
assert "value_and_grad" in pydoc.render_doc(wg)
assert "cuda" in wg.backends.backends()
try:
    wg.jit(lambda x: x, backend="cuda")(1.0)
except ModuleNotFoundError as error:
    assert "wengert[cuda]" in str(error)
names = [m.name for m in pkgutil.walk_packages(wg.__path__, "wengert.")]
assert len(names) > 500
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
"""
    done = run_in(site, code)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_both_distributions(check, paths, tmp_path):
    site = unpacked(paths, tmp_path / "site-packages", "wengert", "wengert_extras")
    done = run_in(site, check.EXTRAS_PROGRAM)
    assert done.returncode == 0, done.stderr


def test_wengert_extras_in_another_folder(paths, tmp_path):
    site = unpacked(paths, tmp_path / "site-packages", "wengert")
    other = unpacked(paths, tmp_path / "user" / "site-packages", "wengert_extras")
    code = f"""
sys.path.append({str(other)!r})
import wengert._engine.backends.cuda, wengert.compat.sklearn, wengert.onnx
assert wengert.onnx.__file__.startswith({str(other)!r})
"""
    done = run_in(site, code)
    assert done.returncode == 0, done.stderr


def test_the_distributions_agree_on_packages_and_version(check):
    from wengert._engine.core.extra_packages import EXTRA_PACKAGES

    names = {name.replace(".", "/") for name in EXTRA_PACKAGES}
    assert names == {name.removesuffix(".py") for name in check.extra_files()}
    read = [
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in check.PROJECTS.values()
    ]
    version = read[0]["version"]
    assert read[1]["version"] == version
    assert read[1]["dependencies"] == [f"wengert=={version}"]
    assert read[1]["requires-python"] == read[0]["requires-python"]
    extras = read[0]["optional-dependencies"]
    for name in EXTRA_PACKAGES.values():
        assert f"wengert-extras=={version}" in extras[name]
    needed = {r for some in extras.values() for r in some if r.startswith("wengert-extras")}
    assert needed == {f"wengert-extras=={version}"}
    license = [(folder / "LICENSE").read_bytes() for folder in check.PROJECTS.values()]
    assert license[0] == license[1]


def test_the_first_commands_and_pages_are_there():
    spec = importlib.util.spec_from_file_location("first_steps", ROOT / "tools/first_steps.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.commands(module.INSTALLATION) == ["python -m pip install .", "wengert doctor"]
    assert all(page.exists() for page in module.PAGES)


def test_the_page_of_installation_has_all_extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.M)
    listed = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert listed == set(project["optional-dependencies"]) - {"all", "bench-pytensor"}


def test_citation_and_changelog_have_the_version_of_the_package():
    import wengert

    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (date,) = re.findall(r"^date-released: (\S+)$", text, re.M)
    assert f"version: {wengert.__version__}\n" in text
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {wengert.__version__} ({date})\n" in changes
