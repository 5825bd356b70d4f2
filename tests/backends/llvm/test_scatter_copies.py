"""Sums into few elements, by copies of them: as `np.add.at`, for all lengths and positions."""

import ctypes

import numpy as np
import pytest

import wengert as wg


def transposed(positions, n):
    """The cotangent of `a` in a[positions]."""
    return wg.jit(lambda w: wg.vjp(lambda a: a[positions], np.zeros(n, w.dtype))[1](w))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "count"), [(1, 8), (1, 9), (3, 31), (5, 42), (40, 1001)])
def test_many_values_of_few_elements(n, count, dtype):
    rng = np.random.default_rng(n + count)
    for positions in (rng.integers(-n, n, count), np.sort(rng.integers(0, n, count))):
        values = rng.normal(size=count).astype(dtype)
        expected = np.zeros(n, dtype)
        np.add.at(expected, positions, values)
        found = transposed(positions, n)(values)
        found = found[0] if isinstance(found, tuple) else found
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_sums_are_added_to_what_was_there():
    positions = np.arange(50) % 3

    @wg.jit
    def added(x, v):
        x = x * 2.0
        np.add.at(x, positions, v)
        return x

    x, v = np.array([1.0, -2.0, 3.0]), np.linspace(0.0, 1.0, 50)
    expected = 2.0 * x
    np.add.at(expected, positions, v)
    np.testing.assert_allclose(added(x, v), expected, rtol=1e-13)


def test_a_strided_value_and_a_strided_index():
    table = np.arange(120).reshape(60, 2) % 5
    f = wg.jit(wg.grad(lambda a, w: np.sum(a[table[:, 1]] * w[:, 1])))
    w = np.random.default_rng(0).normal(size=(60, 3))
    expected = np.zeros(5)
    np.add.at(expected, table[:, 1], w[:, 1])
    np.testing.assert_allclose(f(np.ones(5), w), expected, rtol=1e-13)


@pytest.mark.parametrize("place", [0, 30, 41])
def test_a_position_out_of_range(place):
    """In the first loop, and among the values that are left over."""
    positions = np.zeros(42, np.int64)
    f = wg.jit(lambda w, p: wg.vjp(lambda a: a[p], np.zeros(4))[1](w))
    f(np.ones(42), positions)
    positions[place] = 4
    with pytest.raises(IndexError):
        f(np.ones(42), positions)


def test_exported_code_has_copies_in_its_workspace(tmp_path):
    positions = np.arange(64) % 4
    backward = wg.jit(wg.grad(lambda a, w: np.sum(a[positions] * w)))
    path = tmp_path / "sums.so"
    backward.export(path, (wg.spec(4), wg.spec(64)), name="sums")
    library = ctypes.CDLL(str(path))
    library.sums_work.restype = ctypes.c_int64
    work = np.empty(max(library.sums_work(), 1), np.uint8)
    a, w, out = np.ones(4), np.arange(64.0), np.empty(4)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (a, w, out, work)]
    assert library.sums(*pointers, ctypes.c_int64(work.size)) == 0
    assert np.array_equal(out, w.reshape(-1, 4).sum(axis=0))
