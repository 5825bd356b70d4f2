"""Sums and products in the same pass as fingerprints, and the search for NaN, beside NumPy's."""

import itertools

import numpy as np
import pytest

from wengert._engine.backends.llvm.abi import array_fingerprint
from wengert._engine.backends.llvm.abi.array_fingerprint import computed, has_nan, is_finite

DTYPES = [np.float64, np.float32]
SIZES = [0, 1, 5, 31, 32, 64, 100, 1000, 4099]
UFUNCS = list(array_fingerprint.UFUNCS)
HASHED = list(itertools.product((False, True), repeat=2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_results_are_those_of_numpy(dtype, size, rng):
    x, y = rng.normal(size=(2, size)).astype(dtype)
    for ufunc, hashed in itertools.product(UFUNCS, HASHED):
        found = computed(ufunc, x, y, hashed)
        np.testing.assert_array_equal(found.value, ufunc(x, y))
        assert found.value.dtype == dtype
        assert found.is_finite
        for z, wanted, taken in zip((x, y), hashed, found.fingerprints, strict=True):
            assert taken == (array_fingerprint.fingerprint(z) if wanted else None)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 40), (7, 5, 11), (1,), (2, 0)])
def test_shapes_and_repeated_numbers(dtype, shape, rng):
    y = rng.normal(size=shape).astype(dtype)
    repeated = np.broadcast_to(dtype(-1.5), shape)
    for ufunc in UFUNCS:
        found = computed(ufunc, repeated, y, (False, True))
        np.testing.assert_array_equal(found.value, ufunc(repeated, y))
        assert found.fingerprints == (None, array_fingerprint.fingerprint(y))
        np.testing.assert_array_equal(
            computed(ufunc, y, repeated, (True, False)).value, ufunc(y, repeated)
        )


@pytest.mark.parametrize("unaligned", range(1, 8))
def test_unaligned_arrays(unaligned, rng):
    x, y = rng.normal(size=(2, 300))
    memory = np.empty(2408, np.uint8)
    moved = memory[unaligned : unaligned + 2400].view(np.float64)
    moved[:] = x
    found = computed(np.multiply, moved, y, (True, True))
    np.testing.assert_array_equal(found.value, x * y)
    assert found.fingerprints[0] == array_fingerprint.fingerprint(x)
    moved[7] = np.nan
    assert has_nan(moved)


def test_the_same_array_twice(rng):
    x = rng.normal(size=500)
    found = computed(np.multiply, x, x, (True, True))
    np.testing.assert_array_equal(found.value, x * x)
    assert found.fingerprints == (array_fingerprint.fingerprint(x),) * 2


def test_what_is_left_to_numpy(rng):
    x = rng.normal(size=(64, 64))
    for y in (x.T, x[:, ::2], x.astype(np.float32), x[0], x + 0j, x.astype(int)):
        assert computed(np.add, x, y, (True, False)) is None
    assert computed(np.add, np.broadcast_to(1.0, x.shape), x, (True, False)) is None
    assert computed(np.divide, x, x, (True, False)) is None
    assert has_nan(x.T) is None
    assert has_nan(x.astype(int)) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [64, 100, 1000])
def test_numbers_that_are_not_finite_are_found_anywhere(dtype, size, rng):
    x, y = rng.normal(size=(2, size)).astype(dtype)
    assert has_nan(y) is False
    for k, bad in itertools.product(range(0, size, 7), (np.inf, -np.inf, np.nan)):
        z = y.copy()
        z[k] = bad
        for ufunc in UFUNCS:
            assert not computed(ufunc, x, z, (False, False)).is_finite
        assert has_nan(z) == np.isnan(bad)
    most = np.full(size, np.finfo(dtype).max)
    assert computed(np.multiply, most, np.ones(size, dtype), (True, False)).is_finite
    assert computed(np.multiply, -most, np.full(size, 0.5, dtype), (True, False)).is_finite
    assert not computed(np.add, most, most, (True, False)).is_finite


def test_signaling_nan_and_denormal_numbers():
    x = np.full(96, 5e-324)
    assert not has_nan(x)
    x.view(np.uint64)[40] = 0x7FF0000000000001
    assert has_nan(x)
    x.view(np.uint64)[40] = 0xFFF8000000000000
    assert has_nan(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_finite_arrays(dtype, size, rng):
    x = rng.normal(size=size).astype(dtype)
    x[: size // 3] *= np.finfo(dtype).max / 8
    assert is_finite(x)
    for place in {0, size // 2, size - 1} if size else ():
        for number in (np.nan, np.inf, -np.inf):
            y = x.copy()
            y[place] = number
            assert not is_finite(y)
            assert has_nan(y) == np.isnan(number)
    assert is_finite(x[::2]) is None or size <= 2
