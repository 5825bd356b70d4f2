"""Test suites of programs written for autograd, run with autograd and with the import hook.

    python tests/compat/autograd_suites.py [--python PYTHON] [--kinds hook strict ...]
        [--report FILE] -- autograd=~/autograd lifelines=~/lifelines ...

Each argument names a checkout; SUITES says what of it runs.  The Python given needs the
requirements of these packages, autograd, pytest, pytest-timeout, pytest-cov, pytest-xdist and those
of wengert, but not wengert itself, whose sources are found by PYTHONPATH.  Nothing of the checkouts
is changed.

Prints for each suite how many tests pass with autograd, with the hook, and with the hook and
`--strict`, and the tests that pass with autograd only; without autograd, those that
fail.  Seeds of NumPy's generator are the same in all runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"
# By package: arguments of pytest.  Files of pymanopt that import TensorFlow and PyTorch are left
# out, as is its conftest.py, which imports both to seed them.
SUITES: dict[str, list[str]] = {
    "autograd": ["tests"],
    "autograd-gamma": ["tests"],
    "pymanopt": [
        "--noconftest",
        "tests/backends/test_autograd.py",
        "tests/test_problem_backend_interface.py",
        "tests/optimizers",
        "tests/manifolds",
    ],
    "pyerrors": ["tests/*_test.py"],
    "SurPyval": ["surpyval/tests"],
    "lifelines": ["lifelines/tests"],
}
HOOK = ["-m", "wengert.compat.autograd"]
KINDS: dict[str, list[str]] = {"autograd": [], "hook": HOOK, "strict": [*HOOK, "--strict"]}
TIMEOUT_SECONDS = 600  # of one test
SEEDED = '''
"""A plugin of pytest: the same seed before each test."""
import random
import numpy
import pytest

@pytest.fixture(autouse=True)
def _seeded():
    random.seed(0)
    numpy.random.seed(0)
'''


def outcomes(python: str, folder: Path, arguments: list[str], kind: str) -> dict[str, str]:
    """The outcome of each test of a suite, by its name."""
    given = [str(p.relative_to(folder)) for a in arguments if "*" in a
             for p in sorted(folder.glob(a))]  # fmt: skip
    given += [a for a in arguments if "*" not in a]
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        (Path(place) / "seeded_tests.py").write_text(SEEDED)
        command = [python, *KINDS[kind], "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "seeded_tests"]
        command += ["-o", "addopts=", f"--timeout={TIMEOUT_SECONDS}", f"--junitxml={report}"]
        paths = [place, str(SOURCES), str(folder / "src")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg"}
        done = subprocess.run(
            [*command, *given], cwd=folder, env=environment, capture_output=True, text=True
        )
        if not report.exists():
            raise SystemExit(f"{folder}: pytest failed\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return {
            f"{case.get('classname')}::{case.get('name')}": _outcome(case)
            for case in ElementTree.parse(report).iter("testcase")
        }


def _outcome(case: ElementTree.Element) -> str:
    kinds = {child.tag for child in case}
    return next((kind for kind in ("failure", "error", "skipped") if kind in kinds), "passed")


def compare(name: str, found: dict[str, dict[str, str]]) -> str:
    """A line for each suite, and one for each test that passes with autograd only."""
    counts = {
        kind: (sum(o == "passed" for o in of.values()), sum(o != "skipped" for o in of.values()))
        for kind, of in found.items()
    }
    lines = [f"{name}: " + ", ".join(f"{kind} {n} of {m}" for kind, (n, m) in counts.items())]
    theirs = found.get("autograd", {})
    for kind, ours in found.items():
        if not theirs:
            lines += [
                f"    {o} with {kind}: {t}" for t, o in ours.items() if o in ("failure", "error")
            ]
        if not theirs or kind == "autograd":
            continue
        for test in theirs:
            if theirs[test] == "passed" and ours.get(test, "missing") != "passed":
                lines.append(f"    not with {kind}: {test} ({ours.get(test, 'missing')})")
        for test in ours:
            if ours[test] == "passed" and theirs.get(test, "missing") != "passed":
                lines.append(f"    only with {kind}: {test} ({theirs.get(test, 'missing')})")
    return "\n".join(lines)


def main() -> None:
    """Run the suites that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--report", type=Path, help="write the outcomes as JSON")
    options = parser.parse_args()
    python = str(Path(options.python).expanduser().absolute())
    report = {}
    for checkout in options.checkouts:
        name, _, folder = checkout.partition("=")
        if name not in SUITES or not folder:
            parser.error(f"{checkout!r}: pass NAME=FOLDER, with a name of {', '.join(SUITES)}")
        place = Path(folder).expanduser().resolve()
        found = {kind: outcomes(python, place, SUITES[name], kind) for kind in options.kinds}
        print(compare(name, found), flush=True)
        report[name] = found
    if options.report is not None:
        options.report.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
