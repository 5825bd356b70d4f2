"""Random programs: first and second derivatives by native code are those of eager execution.

The programs are those of test_random_programs.py, the loss is a sum over all their results.
"""

import pytest

from .random_programs import check

CHUNK = 20


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(6))
def test_gradients(seed):
    check(seed, "gradient")


@pytest.mark.parametrize("seed", range(1))
def test_second_derivatives(seed):
    check(seed, "second")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("chunk", range(43))
def test_gradients_of_many(chunk):
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    assert sum(check(seed, "gradient") for seed in seeds) > 5 * CHUNK


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("chunk", range(13))
def test_second_derivatives_of_many(chunk):
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    assert sum(check(seed, "second") for seed in seeds) > 5 * CHUNK
