"""Sorting, searching and counting as kernels: the very positions of the interpreter's run."""

from __future__ import annotations

import numpy as np
import pytest

import wengert  # noqa: F401 - enters the operations
from wengert._engine.core.op import lookup

from .kernel_driver import run

DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"]


def draw(rng, shape, dtype):
    """Numbers many of which are equal, and NaN among them."""
    dtype = np.dtype(dtype)
    x = rng.integers(0, 12, shape).astype(dtype)
    if dtype.kind in "fc":
        x = np.where(rng.random(shape) < 0.1, np.nan, x).astype(dtype)
    if dtype.kind == "c":
        x = (x + 1j * rng.integers(0, 3, shape)).astype(dtype)
    return x


def check(name, *operands, strided=False, **params):
    wanted = np.asarray(lookup(name).run(*operands, **params))
    status, (found,) = run(name, *operands, outputs=[wanted], strided=strided, **params)
    assert status == 0
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def refused(name, *operands, outputs, **params):
    return run(name, *operands, outputs=outputs, **params)[0] == 1


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_argsort(dtype):
    rng = np.random.default_rng(0)
    for kind in (None, "stable", "mergesort"):
        check("argsort", draw(rng, 300, dtype), axis=0, kind=kind)
        check("argsort", draw(rng, (3, 40, 2), dtype), axis=1, kind=kind)
    check("argsort", draw(rng, (3, 0), dtype), axis=-1)
    check("argsort", draw(rng, (30, 4), dtype).T, axis=-1, strided=True)
    check("argsort", draw(rng, (4, 60), dtype)[:, ::-2], axis=-1, strided=True)


def test_lexsort():
    rng = np.random.default_rng(1)
    one, two, three = draw(rng, (3, 50), "f8"), draw(rng, (3, 50), "i4"), draw(rng, (3, 50), "?")
    check("lexsort", one, two, axis=-1)
    check("lexsort", three, one, two, axis=0)
    check("lexsort", one.T, two.T, axis=0, strided=True)


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f8"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(dtype, side):
    rng = np.random.default_rng(2)
    x, v = np.sort(draw(rng, 30, dtype)), draw(rng, (4, 5), dtype)
    check("searchsorted", x, v, side=side)
    check("searchsorted", x, v.astype("f8"), side=side)
    check("searchsorted", x, v[0, 0], side=side)
    check("searchsorted", x[:0], v, side=side)
    turned = draw(rng, 30, dtype)
    check("searchsorted", turned, v.T, np.argsort(turned), side=side, strided=True)
    if dtype == "f8":
        bad = np.full(30, 99)
        assert refused("searchsorted", turned, v, bad, outputs=[np.ones(v.shape, int)], side=side)


@pytest.mark.sample(6)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u8"])
def test_searching_equally_spaced_numbers(dtype, side):
    rng = np.random.default_rng(5)
    for low, high, n in ((-3, 60, 64), (0, 1, 100), (5, 5, 20), (0, 300, 301)):
        x = np.sort(np.linspace(low, high, n).astype(dtype))
        keys = [x, rng.uniform(low, high + 2, 90).astype(dtype)]
        if np.dtype(dtype).kind == "f":
            odd = np.array([np.nan, np.inf, -np.inf, -0.0], dtype)
            keys += [np.nextafter(x, odd[1]), np.nextafter(x, odd[2]), odd]
        check("searchsorted", x, np.concatenate(keys), side=side)
        check("searchsorted", x[::2], x, side=side, strided=True)
        if np.dtype(dtype).kind == "f":  # spaced where it is looked at, and nowhere else
            x[1 : n // 4 - 1] = x[0]
            x[-2:] = np.inf, np.nan
            check("searchsorted", x, np.concatenate(keys), side=side)
            x[-2:] = x[-3]
            check("searchsorted", x, np.concatenate(keys), side=side)


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    rng = np.random.default_rng(3)
    x = draw(rng, (5, 6), "f8")
    for bins in ([1.0, 3.0, 3.0, 7.5], [9.0, 4.0, 4.0, 1.0], [2.0], [2.0, 2.0], [3, 5]):
        check("digitize", x, np.array(bins), right=right)
        check("digitize", draw(rng, 9, "i4"), np.array(bins), right=right)
    for bins in ([1.0, 3.0, 2.0], [1.0, np.nan]):
        assert refused("digitize", x, np.array(bins), outputs=[np.ones(x.shape, int)], right=right)


def test_histogram():
    rng = np.random.default_rng(4)
    for edges in ([0.0, 1.0, 5.0, 11.0], [2.0, 3.0, 3.0, 4.0], [1.0, 2.0, 2.0], [0, 3, 6], [1, 2]):
        check("histogram_counts", draw(rng, (7, 9), "f8"), np.array(edges))
        check("histogram_counts", draw(rng, 50, "i2"), np.array(edges))
    for bins in (16, 50, 1000):
        x = rng.normal(size=500)
        edges = np.histogram_bin_edges(x, bins)
        check("histogram_counts", np.concatenate([x, edges]), edges)
    assert refused("histogram_counts", np.ones(3), np.array([2.0, 1.0]), outputs=[np.ones(1, int)])


EDGES = {
    "equal": np.linspace(-1.0, 2.0, 31),
    "nearly equal": np.linspace(-1.0, 2.0, 31) + 0.02 * np.sin(np.arange(31)),
    "not equal": np.array([-1.0, 0.1, 0.2, 0.2, 0.5, 2.0]),
    "first half equal": np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 10.0]),
    "one": np.array([-0.5, 0.5]),
    "empty": np.array([0.5, 0.5]),
    "single": np.array([0.5]),
    "infinite": np.array([-np.inf, 0.0, 1.0, np.inf]),
    "far apart": np.array([-1e308, 0.0, 1e308]),
    "close": 1e16 + np.array([0.0, 2.0, 4.0, 6.0]),
    "integers": np.arange(-3, 9, 2),
    "large integers": 2**60 + np.arange(5) * 1000,
    "single precision": np.linspace(0.0, 1.0, 12, dtype="f4"),
}


@pytest.mark.parametrize("name", EDGES)
def test_elements_at_edges_are_in_the_bin_above(name):
    """Elements equal to edges, next to them, outside of them, and not finite."""
    edges, rng = EDGES[name], np.random.default_rng(5)
    at = edges.astype("f8")
    near = [np.nextafter(at, np.inf), np.nextafter(at, -np.inf), at[[0]] - 1.0, at[[-1]] + 1.0]
    x = np.concatenate([at, *near, [np.nan, np.inf, -np.inf, 0.3], rng.normal(size=40)])
    check("histogram_counts", x, edges)
    check("histogram_sums", rng.normal(size=x.size), x, edges)
    if edges.dtype.kind == "i":
        x = np.concatenate([edges, edges - 1, edges + 1])
        check("histogram_counts", x, edges)
        check("histogram_sums", rng.integers(0, 9, x.size), x, edges)
    check("histogram_counts", x[np.abs(x) < 1e30].astype("f4"), edges)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4", "u1"])
def test_weights(dtype):
    rng = np.random.default_rng(6)
    x, edges = draw(rng, 50, "f8"), np.linspace(0.0, 9.0, 7)
    check("histogram_sums", draw(rng, 50, dtype), x, edges)
    outputs = [np.ones(1)]
    assert refused("histogram_sums", np.ones(3), np.ones(3), np.array([2.0, 1.0]), outputs=outputs)
