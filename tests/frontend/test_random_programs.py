"""Random programs with loops: their values agree with NumPy, and their gradients with eager ones.

`programs.py`, `wider_programs.py` and `array_programs.py` describe the programs,
`program_checks.py` what is compared.
``python -m tests.frontend.test_random_programs 0 5000`` runs a range of seeds, and prints which
programs were refused.
"""

import collections
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import wengert as wg

from .array_programs import array_program
from .program_checks import Subject, Verdict, first_order, second_order
from .programs import load, program
from .wider_programs import wider_program

N = 12  # above the length of loops that are unrolled
WIDER = 40_000  # the first seed of the programs with more of Python and NumPy
UNKNOWN = 60_000  # the first seed of those that also have parts of unknown length
ARRAYS = 60_000  # and of those with loops over the elements of matrices


def run(seed, folder, deep=False):
    """The verdict on a program.

    "agrees"; "raises" (in Python); "ill-conditioned", if it differs, but no more than a change of
    its operands in the last digits changes it; or the reason of a refusal.  With `deep`, second
    order, forward mode and batches are compared too.
    """
    write = program if seed < WIDER else wider_program if seed < ARRAYS else array_program
    text = write(seed)
    f = load(text, folder, f"program_{seed}")
    subjects = []
    for k in (seed, seed + 1_000_000):
        rng = np.random.default_rng(k)
        given = rng.uniform(-1, 1, (N, N)), rng.uniform(-1, 1, N), rng.integers(0, N, N)
        subjects.append(Subject(f, given, seed, single="astype(np.float32)" in text))
    with np.errstate(all="ignore"):
        try:
            gradients = first_order(*subjects)
            if deep:
                second_order(*subjects, gradients)
        except Verdict as verdict:
            return str(verdict)
        except (wg.errors.TraceError, wg.errors.ConversionError) as error:
            return str(error)
    return "agrees"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "seed",
    [*range(1000, 1024), *range(WIDER + 2000, WIDER + 2024), *range(ARRAYS, ARRAYS + 24)],
)
def test_program(seed, tmp_path):
    assert run(seed, tmp_path) in ("agrees", "raises", "ill-conditioned")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "seed", [*range(WIDER + 2024, WIDER + 2036), *range(ARRAYS + 24, ARRAYS + 36)]
)
def test_second_order(seed, tmp_path):
    assert run(seed, tmp_path, deep=True) in ("agrees", "raises", "ill-conditioned")


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "first",
    [
        *range(10_000, 15_000, 100),
        *range(WIDER, WIDER + 2000, 100),
        *range(ARRAYS + 100, ARRAYS + 1100, 100),
    ],
)
def test_many_programs(first, tmp_path):
    found = collections.Counter(run(seed, tmp_path) for seed in range(first, first + 100))
    assert found["agrees"] >= 80


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        seeds = range(int(sys.argv[1]), int(sys.argv[2]))
        for reason, count in collections.Counter(run(s, Path(folder)) for s in seeds).most_common():
            print(count, reason)
