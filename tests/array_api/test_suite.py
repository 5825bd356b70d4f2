"""The public test suite of the array API standard, run over tensors.

It is no package, so it runs where ARRAY_API_TESTS names a checkout of data-apis/array-api-tests,
with its submodule, and its requirements are installed (docs/coverage.md says how):

    ARRAY_API_TESTS=~/array-api-tests python -m pytest -m slow tests/array_api/test_suite.py

What may fail is in xfails.txt, with the reason; and only what fails of NumPy's arrays too.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import wengert

XFAILS = Path(__file__).parent / "xfails.txt"
EXPECTED = [line for line in XFAILS.read_text().splitlines() if line and line[0] != "#"]
OURS = "wengert.testing.array_api"


def checkout():
    """The folder of the suite; the test that asks is skipped where there is none."""
    folder = os.environ.get("ARRAY_API_TESTS")
    if not folder:
        pytest.skip("ARRAY_API_TESTS names no checkout of data-apis/array-api-tests")
    missing = [name for name in ("ndindex", "pytest_jsonreport") if find_spec(name) is None]
    if missing:
        pytest.skip(f"requirements of array-api-tests are not installed: {', '.join(missing)}")
    return Path(folder).expanduser()


def run(folder, module, tmp_path, *options):
    """The outcome of each test, by its name."""
    report = tmp_path / f"{module}.json"
    command = [sys.executable, "-m", "pytest", "-q", "--disable-deadline", "-p", "no:cacheprovider"]
    command += [
        "--json-report",
        f"--json-report-file={report}",
        "--tb=short",
        "-W",
        "ignore",
        *options,
    ]
    environment = {**os.environ, "ARRAY_API_TESTS_MODULE": module, "PYTEST_ADDOPTS": ""}
    environment["PYTHONPATH"] = str(Path(wengert.__file__).parents[1])  # also if not installed
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert report.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    found = {test["nodeid"]: test["outcome"] for test in json.loads(report.read_text())["tests"]}
    return found, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_suite_passes_over_tensors(tmp_path):
    found, said = run(
        checkout(), OURS, tmp_path, "array_api_tests", f"--xfails-file={XFAILS}", "--derandomize"
    )
    failed = [name for name, outcome in found.items() if outcome not in ("passed", "skipped")]
    failed = [name for name in failed if found[name] not in ("xfailed", "xpassed")]
    assert not failed, said[-6000:]
    assert sum(outcome == "passed" for outcome in found.values()) > 1300
    assert set(EXPECTED) <= set(found), "xfails.txt names tests that do not exist"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_fails_fails_of_numpy_too(tmp_path):
    folder, passed = checkout(), EXPECTED
    for _ in range(8):  # the examples are drawn, and not every draw meets the place
        found, _ = run(folder, "numpy", tmp_path, *passed, "--max-examples=300")
        passed = [name for name in passed if found[name] == "passed"]
        if not passed:
            return
    assert not passed
