"""Random programs with loops: NumPy's values, and the gradients of the eager tape.

`programs.py` says what is in them.  ``python -m tests.frontend.test_random_programs 0 5000`` runs a
range of seeds and prints what was refused.
"""

import collections
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import wengert as wg

from .programs import load, program

N = 12  # above the length of loops that are unrolled


def run(seed, folder):
    """The verdict on a program: "agrees", "raises" (in Python), or the reason of a refusal."""
    rng = np.random.default_rng(seed)
    given = rng.uniform(-1, 1, (N, N)), rng.uniform(-1, 1, N), rng.integers(0, N, N)
    f = load(program(seed), folder, f"program_{seed}")

    def copies():
        return [a.copy() for a in given]

    with np.errstate(all="ignore"):
        try:
            want = f(*copies())
        except (ArithmeticError, IndexError, ValueError, UnboundLocalError):
            return "raises"
        if not np.isfinite(want):
            return "raises"
        try:
            found = wg.jit(f)(*copies())
        except wg.errors.TraceError as error:
            return str(error)
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9, err_msg=f"seed {seed}")
        compiled = wg.jit(wg.grad(f, (0, 1)))(*copies())
        eager = wg.grad(f, (0, 1))(*copies())
    for a, b in zip(compiled, eager, strict=True):
        size = max(1.0, np.abs(b).max())
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8 * size, err_msg=f"seed {seed}")
    return "agrees"


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(1000, 1024))
def test_program(seed, tmp_path):
    assert run(seed, tmp_path) in ("agrees", "raises")


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("first", range(10_000, 15_000, 100))
def test_many_programs(first, tmp_path):
    found = collections.Counter(run(seed, tmp_path) for seed in range(first, first + 100))
    assert found["agrees"] >= 80


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        seeds = range(int(sys.argv[1]), int(sys.argv[2]))
        for reason, count in collections.Counter(run(s, Path(folder)) for s in seeds).most_common():
            print(count, reason)
