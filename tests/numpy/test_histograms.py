"""Histograms of points, and windows: values of NumPy; derivatives."""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.errors import ArgumentError, DtypeError, ShapeError

X = np.array([0.11, 0.52, 0.35, 0.98, 0.53, 0.07])
Y = np.array([0.64, 0.27, 0.83, 0.45, 0.91, 0.31])
WEIGHTS = np.array([0.5, 1.5, -0.7, 2.0, 0.3, 1.1])

CASES = {
    "2d": lambda xp, x, y, w: xp.histogram2d(x, y, 3),
    "2d range": lambda xp, x, y, w: xp.histogram2d(x, y, (2, 3), [[0, 1], [0, 0.5]], weights=w),
    "2d edges": lambda xp, x, y, w: xp.histogram2d(x, y, [0.0, 0.2, 0.7, 1.0], weights=w),
    "2d one": lambda xp, x, y, w: xp.histogram2d(x, y, [4, [0.0, 0.5, 1.0]], weights=w),
    "2d density": lambda xp, x, y, w: xp.histogram2d(x, y, 2, density=True, weights=w * w),
    "dd": lambda xp, x, y, w: xp.histogramdd((x, y, x * y), 2, weights=w),
    "dd matrix": lambda xp, x, y, w: xp.histogramdd(xp.stack([x, y], axis=1), 3, weights=w),
    "edges": lambda xp, x, y, w: xp.histogram_bin_edges(x, 4),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_histograms_agree_with_numpy(name, agree):
    agree(CASES[name], X, Y, WEIGHTS)


def test_automatic_edges_differentiate():
    want = np.histogram_bin_edges(X, "sturges")
    got = np.histogram_bin_edges(wg.tensor(X), "sturges")
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
    bar = wg.grad(lambda x: np.histogram_bin_edges(x, "sturges")[-1])(X)
    np.testing.assert_array_equal(bar, np.eye(6)[3])


def test_weights_alone_may_be_traced():
    x, w = np.array([0.1, 0.5, 0.7]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    want = [np.histogram(x, 3, weights=one)[0] for one in w]
    np.testing.assert_allclose(wg.vmap(lambda w: np.histogram(x, 3, weights=w)[0])(w), want)
    np.testing.assert_allclose(wg.jit(lambda w: np.histogram(x, 3, weights=w)[0])(w[0]), want[0])


@pytest.mark.parametrize("edges", [False, True], ids=["counts", "edges"])
def test_the_number_of_bins_may_be_an_argument(edges):
    x, w = np.array([0.1, 0.5, 0.7, 0.2]), np.arange(4.0)

    def program(x, w, n):
        if edges:
            return np.histogram_bin_edges(x, n)
        return np.histogram(x, n, weights=w)[0] * np.histogram(x, n)[0]

    np.testing.assert_allclose(wg.jit(program)(x, w, 3), program(x, w, 3))
    bar = wg.jit(wg.grad(lambda *args: np.sum(program(*args)), argnums=(0, 1)))(x, w, 3)
    want = wg.grad(lambda *args: np.sum(program(*args)), argnums=(0, 1))(x, w, 3)
    for a, b in zip(bar, want, strict=True):
        np.testing.assert_allclose(a, b)
    assert np.abs(want[0 if edges else 1]).max() > 0.5


def test_points_on_the_last_edge_are_inside():
    got = np.histogramdd((wg.tensor([1.0, 0.0, 2.0]),), bins=[[0.0, 0.5, 1.0]])[0]
    np.testing.assert_array_equal(got.numpy(), [1, 1])


def test_invalid_points_and_bins_are_errors():
    x = wg.tensor(X)
    with pytest.raises(ShapeError, match="coordinates"):
        np.histogramdd((x, x[:2]))
    with pytest.raises(ArgumentError, match="one for each coordinate"):
        np.histogramdd((x, x), bins=[2, 2, 2])


@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_kaiser(length, traced):
    want = np.kaiser(length, 2.5)
    np.testing.assert_allclose(wnp.kaiser(length, wg.tensor(2.5)).numpy(), want, rtol=1e-14)
    assert type(wnp.kaiser(length, 2.5)) is np.ndarray
    if length > 1:
        step = 1e-6
        want = (np.kaiser(length, 2.5 + step) - np.kaiser(length, 2.5 - step)) / (2 * step)
        got = wg.jacobian(lambda beta: wnp.kaiser(length, beta))(2.5)
        np.testing.assert_allclose(got, want, atol=1e-9)
        traced(lambda beta: wnp.kaiser(length, beta), np.float64(2.5))


def test_i0(agree):
    agree(lambda xp, x: xp.i0(x), np.array([-1.5, 0.0, 0.3, 4.0]), order=2)
    np.testing.assert_allclose(np.i0(wg.tensor([0, 2])).numpy(), np.i0([0, 2]), rtol=1e-14)
    with pytest.raises(DtypeError, match="complex"):
        np.i0(wg.tensor([1j]))


def test_orders_of_products_and_bits():
    a = np.ones((3, 4))
    want = np.einsum_path("ij,kj,kl->il", a, a, a)
    assert np.einsum_path("ij,kj,kl->il", wg.tensor(a), a, wg.tensor(a)) == want
    bits = np.array([1, 0, 1], np.uint8)
    packed = np.packbits(wg.tensor(bits))
    np.testing.assert_array_equal(packed.numpy(), np.packbits(bits))
    np.testing.assert_array_equal(np.unpackbits(packed, count=3).numpy(), bits)


def test_required_properties_keep_the_derivative():
    bar = wg.grad(lambda x: np.sum(wnp.require(x * x, None, ["C", "O"])))(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(bar, [2.0, 4.0])
