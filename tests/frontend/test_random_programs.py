"""Random programs with loops: their values agree with NumPy, and their gradients with eager ones.

`programs.py` describes the programs.  ``python -m tests.frontend.test_random_programs 0 5000`` runs
a range of seeds, and prints which programs were refused.
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
    """The verdict on a program.

    "agrees"; "raises" (in Python); "ill-conditioned", if it differs, but no more than a change of
    its operands in the last digits changes it; or the reason of a refusal.
    """
    rng = np.random.default_rng(seed)
    given = rng.uniform(-1, 1, (N, N)), rng.uniform(-1, 1, N), rng.integers(0, N, N)
    f = load(program(seed), folder, f"program_{seed}")
    gradient = wg.grad(f, (0, 1))

    def copies(factor=1.0):
        return [a * a.dtype.type(factor) for a in given[:2]] + [given[2].copy()]

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
        compiled = wg.jit(gradient)(*copies())
        for name, mine, eager, tolerance in (
            ("value", [found], lambda *args: [f(*args)], 1e-9),
            ("gradient", compiled, gradient, 1e-7),
        ):
            try:
                wanted = eager(*copies())
            except wg.errors.ConversionError as error:  # float(x) of what is differentiated
                return str(error)
            if differs(mine, wanted, tolerance):
                if differs(eager(*copies(1.0 + 1e-14)), wanted, 0.1 * tolerance):
                    return "ill-conditioned"
                raise AssertionError(f"seed {seed}: {name} {mine}, not {wanted}")
    return "agrees"


def differs(found, wanted, tolerance):
    """Whether arrays differ by more than a tolerance, relative to their largest element."""
    return any(
        not np.allclose(a, b, rtol=tolerance, atol=0.1 * tolerance * max(1.0, np.abs(b).max()))
        for a, b in zip(found, wanted, strict=True)
    )


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(1000, 1024))
def test_program(seed, tmp_path):
    assert run(seed, tmp_path) in ("agrees", "raises", "ill-conditioned")


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
