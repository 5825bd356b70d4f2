"""Random programs: eager execution, the interpreter and native code give the same values.

Eight programs share a graph, so that compiling is paid once for all (random_programs.py).  Every
third bundle has symbolic lengths and runs at two sets of sizes; every second is simplified first.
Derivatives of such programs: test_random_gradients.py.
"""

import pytest

from .random_programs import check

CHUNK = 50


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(9))  # names of sizes and simplified graphs: all pairs
def test_values(seed):
    check(seed, "values")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("chunk", range(53))
def test_values_of_many(chunk):
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    assert sum(check(seed, "values") for seed in seeds) > 7 * CHUNK


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
def test_values_by_several_threads(chunk):
    """Arrays of programs are too small to be shared, so what is found is what asks for threads."""
    for seed in range(10_000 + 10 * chunk, 10_010 + 10 * chunk):
        check(seed, "values", threads=2)
