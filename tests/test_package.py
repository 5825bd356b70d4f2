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


def test_wheel_and_sdist(check, tmp_path):
    paths = check.built(tmp_path)
    assert [path.suffix for path in paths] == [".whl", ".gz"]
    for path in paths:
        assert check.checked(path) < check.LARGEST[path.suffix]
    site = tmp_path / "site-packages"
    zipfile.ZipFile(paths[0]).extractall(site)
    code = f"import sys; sys.path.insert(0, {str(site)!r})\n{check.PROGRAM}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=site)
    assert done.returncode == 0, done.stderr


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
