"""Random programs with loops in loops: every way to run them gives the same (random_loops.py).

Minimise what fails by hand: the message holds the program as text.
"""

import pytest

from .random_loops import check, written

CHUNK = 40


def slow(seed):
    return pytest.param(seed, marks=pytest.mark.slow)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [*range(6), *(slow(k) for k in range(6, 40))])
def test_values_and_gradients(seed):
    assert check(seed, most=2, second=False, many=seed % 2 == 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [40, 41, *(slow(k) for k in range(42, 46))])
def test_second_derivatives(seed):
    assert check(seed, most=2, native=seed % 2 == 0)


@pytest.mark.parametrize("seed", [27, slow(33), slow(59)])
def test_second_derivatives_with_little_memory(seed):
    """Loops of unknown length with `memory=` are in all of these."""
    assert "memory=" in written(seed, 2)
    assert check(seed, most=2, native=False)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("chunk", range(2, 54))
def test_many_programs(chunk):
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    compared = [check(seed, second=seed % 4 == 0, many=seed % 2 == 0) for seed in seeds]
    assert sum(compared) > 0.9 * CHUNK
