"""What `make test-oldest` installs and runs is what pyproject.toml says, and is there."""

import importlib.util
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent


def oldest():
    spec = importlib.util.spec_from_file_location("oldest", TESTS / "oldest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_dependency_has_a_lower_bound_that_is_installed():
    with (TESTS.parent / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    lines = oldest().requirements(project)
    exact = {line.split("==")[0] for line in lines if "==" in line}
    assert exact == {"numpy", "scipy", "llvmlite", "optree"} and len(project["dependencies"]) == 4
    assert {"numpy==2.1", "pytest>=8.2"} <= set(
        oldest().requirements(project | {"dependencies": ["numpy>=2.1"]})
    )


def test_every_file_that_is_run_exists():
    assert all((TESTS / name).exists() for name in oldest().TESTS)
