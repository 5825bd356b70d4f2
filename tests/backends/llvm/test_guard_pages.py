"""No native program touches a byte outside its arrays: each lies between pages without access.

A faulting access kills the process, so the check runs in one of its own (guard_pages.py).
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def run(*arguments, **more):
    """Run guard_pages.py; what it said at last is the seed that did it."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "WENGERT_CACHE": "0", **more}
    done = subprocess.run(
        [sys.executable, "-m", "tests.backends.llvm.guard_pages", *map(str, arguments)],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1000,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-200:]}\n{done.stderr[-3000:]}"


def test_nothing_is_touched_outside():
    run(20_006, 20_008, "values", "gradient")


@pytest.mark.slow
def test_sums_of_one_term_are_not_read_beyond_the_end():
    run(30_130, 30_131, "values")  # a matrix with one column, times a vector


@pytest.mark.sample(1)
@pytest.mark.parametrize("fault", ["read", "write", "before"])
def test_the_testers_find_what_is_touched(fault):
    with pytest.raises(AssertionError, match=r"Segmentation|SIGSEGV|-11"):
        run(fault)


@pytest.mark.slow
def test_nothing_is_touched_outside_by_others():
    run(20_000, 20_006, "values")
    run(20_006, 20_008, "gradient")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("chunk", range(12))
def test_nothing_is_touched_outside_by_many(chunk):
    run(30_000 + 25 * chunk, 30_025 + 25 * chunk, "values", "gradient")
