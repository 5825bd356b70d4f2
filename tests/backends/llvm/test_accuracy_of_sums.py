"""Sums of any length are at least as accurate as NumPy's pairwise summation."""

import math

import numpy as np
import pytest

import wengert as wg

SIZES = [1, 7, 100, 1000, 12_345, 1_000_003]


def error(found, x):
    """The error, in units of what rounding each term once would do at most."""
    exact = math.fsum(x.astype(np.float64).tolist())
    return abs(float(found) - exact) / (np.finfo(x.dtype).eps * math.fsum(np.abs(x).tolist()))


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
def test_long_sums(dtype, size):
    rng = np.random.default_rng(size)
    f = wg.jit(lambda x: np.sum(x))
    ours, numpys = [], []
    for draw in (rng.random, rng.standard_normal, lambda n: np.full(n, 0.1)):
        x = draw(size).astype(dtype)
        ours.append(error(f(x), x))
        numpys.append(error(np.sum(x), x))
    assert max(ours) <= max(*numpys, 0.6)


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_along_axes(axis):
    x = np.random.default_rng(0).random((2000, 1500)).astype("float32")
    f = wg.jit(lambda x: np.sum(x, axis=axis))
    rows = x if axis else x.T
    exact = np.array([math.fsum(r.astype(float).tolist()) for r in rows])
    ours = np.max(np.abs(f(x) - exact) / exact)
    numpys = np.max(np.abs(np.sum(x, axis=axis) - exact) / exact)
    assert ours <= max(numpys, 6e-8)  # half a unit of the last place


def test_sums_beyond_infinity_and_of_what_is_no_number():
    f = wg.jit(lambda x: np.sum(x))
    for size in (5, 5000):
        x = np.ones(size)
        for odd in (np.inf, -np.inf, np.nan):
            x[size // 2] = odd
            assert np.array_equal(f(x), odd, equal_nan=True)
        x[0], x[-1] = np.inf, -np.inf
        assert np.isnan(f(x))
        assert f(np.full(size, 1e308)) == np.inf
