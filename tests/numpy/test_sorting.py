"""Sorting, searching, unique elements: values of NumPy; derivatives follow the permutation."""

import numpy as np
import pytest

import wengert as wg
from wengert.testing import check_grads


def leaves(x):
    return list(x) if isinstance(x, tuple | list) else [x]


def same(f, *arrays):
    for got, want in zip(leaves(f(*map(wg.tensor, arrays))), leaves(f(*arrays)), strict=True):
        assert isinstance(got, wg.Tensor)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.numpy(), want)


def check(f, *arrays):
    same(f, *arrays)
    check_grads(f, arrays, 2)


@pytest.mark.parametrize("axis", [0, -1, None])
def test_sort(axis, rng):
    x = rng.permutation(12).reshape(3, 4) + rng.random((3, 4)) * 0.5
    check(lambda x: np.sort(x, axis=axis) ** 2, x)
    check(lambda x: np.sort(x, axis, kind="stable"), x)
    same(lambda x: np.sort(x, axis, stable=True), x)
    same(lambda x: np.argsort(x, axis), x)
    same(lambda x: np.argsort(x, axis, stable=True), x)


def test_sort_of_special_values_and_types():
    same(np.sort, np.array([np.nan, 2.0, -np.inf, np.nan, 1.0]))
    same(np.sort, np.array([3, 1, 2]))
    same(np.sort, np.array([1 + 2j, 1 - 1j, 0j]))
    same(np.sort_complex, np.array([2.0, 1.0]))
    same(np.sort, np.zeros((0, 3)))
    same(lambda x: np.sort(x, axis=0), np.zeros((0, 3)))
    check_grads(np.sort, (np.array([1 + 2j, 2 - 1j, 0.5j]),), 2)
    assert wg.grad(lambda x: np.sort(x)[0])(np.float32([2, 1])).dtype == np.float32
    with pytest.raises(ValueError, match="axis -1"):
        np.sort(wg.tensor(1.0))
    with pytest.raises(TypeError, match="fields"):
        np.sort(wg.tensor([1.0]), order="f")


def test_equal_elements_keep_their_order():
    x = np.array([2.0, 1.0, 1.0])
    slope = wg.grad(lambda x: np.sort(x, kind="stable") @ np.array([1.0, 10.0, 100.0]))(x)
    np.testing.assert_array_equal(slope, [100.0, 1.0, 10.0])


def test_sort_method_in_place(rng):
    x = rng.normal(size=5)
    t = wg.tensor(x, requires_grad=True)
    y = t * 2.0
    y.sort()
    (y * np.arange(5.0)).sum().backward()
    np.testing.assert_allclose(t.grad, 2.0 * np.argsort(np.argsort(x)))
    np.testing.assert_array_equal(t.argsort(), x.argsort())
    np.testing.assert_array_equal(np.argpartition(t, 2).numpy()[2], np.argpartition(x, 2)[2])


@pytest.mark.parametrize("kth", [1, (0, 2), [1, 3], -1])
def test_partition(kth, rng):
    x = rng.permutation(12).reshape(3, 4) + rng.random((3, 4)) * 0.5
    check(lambda x: np.partition(x, kth, axis=1), x)
    same(lambda x: np.partition(x, 1, axis=None), x)
    same(lambda x: np.argpartition(x, kth), x)


def test_searching(rng):
    x, v = np.sort(rng.normal(size=6)), rng.normal(size=(2, 3))
    order = rng.permutation(6)
    same(np.searchsorted, x, v)
    same(lambda x, v: np.searchsorted(x, v, "right"), x, v)
    same(lambda x, v: np.searchsorted(x[order], v, sorter=np.argsort(order)), x, v)
    same(lambda x, v: np.digitize(v, x), x, v)
    same(lambda x, v: np.lexsort((v[0], x[:3])), x, v)
    t = wg.tensor(x)
    assert int(t.searchsorted(0.0)) == x.searchsorted(0.0)


def test_nonzero():
    x = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    same(np.nonzero, x)
    same(np.flatnonzero, x)
    same(np.argwhere, x)
    assert isinstance(wg.tensor(x).nonzero(), tuple)
    chosen = wg.grad(lambda x: np.sum(x[np.nonzero(x)] ** 2))(x)
    np.testing.assert_array_equal(chosen, 2 * x)


def test_unique(rng):
    x = np.array([3.0, 1.0, 3.0, 2.0, 1.0])
    same(np.unique, x)
    same(lambda x: np.unique(x, True, True, True), x)
    same(lambda x: np.unique(x, axis=0), np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]]))
    same(np.unique_counts, x)
    same(np.unique_inverse, x)
    same(np.unique_all, x)
    assert np.unique_counts(wg.tensor(x)).counts.shape == (3,)
    same(np.unique, np.array([np.nan, 1.0, np.nan]))
    same(np.unique_values, np.array([2.0, 1.0]))
    slope = wg.grad(lambda x: np.unique(x) @ np.array([1.0, 10.0, 100.0]))(x)
    np.testing.assert_array_equal(slope, [100.0, 1.0, 0.0, 10.0, 0.0])


def test_integers_have_derivative_zero(rng):
    x = rng.normal(size=4)
    for f in (np.argsort, np.argmax, lambda x: np.searchsorted(x, 0.1), np.flatnonzero):
        out = f(wg.tensor(x, requires_grad=True))
        assert not out.requires_grad
        np.testing.assert_array_equal(
            wg.grad(lambda x, f=f: np.sum(f(x) * 1.0) + 0.0 * x[0])(x), np.zeros(4)
        )
