"""Running sums, recurrences and convolutions as kernels, compared with the interpreter's run."""

from __future__ import annotations

import numpy as np
import pytest

import wengert  # noqa: F401 - enters the operations
from wengert._engine.core.op import lookup

from .kernel_driver import Compiled, agree, run

DTYPES = ["f2", "f4", "f8", "c8", "c16", "i1", "u2", "i8", "?"]
SHAPES = [
    ((7,), 0),
    ((3, 5), 1),
    ((3, 5), 0),
    ((2, 4, 19), 1),
    ((2, 3, 4, 5), 1),
    ((0, 4), 0),
    ((4, 0), 0),
    ((1, 1), 0),
    ((3, 4, 1), 1),
]


def draw(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    x = rng.normal(size=shape)
    if dtype.kind == "b":
        return x > 0
    return (x + 1j * rng.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


def check(name, *operands, strided=False, tolerance=None, **params):
    with np.errstate(all="ignore"):
        wanted = np.asarray(lookup(name).run(*operands, **params))
    status, (found,) = run(name, *operands, outputs=[wanted], strided=strided, **params)
    assert status == 0
    agree(found, wanted, tolerance)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_running_sums(dtype):
    rng = np.random.default_rng(0)
    for shape, axis in SHAPES:
        check("cumsum", draw(rng, shape, dtype), axis=axis)
        check("cumsum", draw(rng, shape, dtype), axis=axis - len(shape), reverse=True)
    x = draw(rng, (4, 6, 5), dtype)
    check("cumsum", x.T, axis=0, strided=True)
    check("cumsum", x[:, ::-2, 1:], axis=0, strided=True)


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_running_products(dtype):
    rng = np.random.default_rng(1)
    for shape, axis in SHAPES[:5]:
        check("cumprod", draw(rng, shape, dtype), axis=axis)
    check("cumprod", draw(rng, (5, 4), dtype).T, axis=1, strided=True)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u8", "?"])
def test_running_extremes(dtype):
    rng = np.random.default_rng(2)
    for shape, axis in SHAPES[:5]:
        x = draw(rng, shape, dtype)
        check("running", x, axis=axis, largest=True)
        if np.dtype(dtype).kind == "f":
            x[np.unravel_index(x.size // 2, shape)] = np.nan
        check("running", x, axis=axis, largest=False)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_recurrences(dtype):
    rng = np.random.default_rng(3)
    for shape, axis in SHAPES:
        a, b = draw(rng, shape, dtype) * 0.5, draw(rng, shape, dtype)
        check("recurrence", a.astype(dtype), b, axis=axis)
        check("recurrence", a.astype(dtype), b, axis=axis, reverse=True)
    a, b = draw(rng, (4, 6), dtype), draw(rng, (6, 4), dtype)
    check("recurrence", a, b.T, axis=0, strided=True)
    wider = b.T.astype(np.result_type(dtype, "f8"))
    check("recurrence", a, wider, axis=1, strided=True, tolerance=1e-6)
    zero, one = np.broadcast_to(a[:, :1], (4, 6)), np.broadcast_to(b[0, 0], (4, 6))
    check("recurrence", zero, one, axis=1, strided=True)


def test_the_first_factor_is_not_used():
    a, b = np.array([np.nan, 0.5, 2.0]), np.array([1.0, 1.0, 1.0])
    check("recurrence", a, b, axis=0)
    check("recurrence", a[::-1], b, axis=0, reverse=True, strided=True)


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i1", "u8"])
@pytest.mark.parametrize("name", ["slide", "convolve"])
def test_products_of_sequences(name, dtype):
    rng = np.random.default_rng(4)
    for n, k in [(9, 3), (3, 3), (5, 1), (200, 7)]:
        check(name, draw(rng, n, dtype), draw(rng, k, dtype))
    check(name, draw(rng, 9, dtype)[::-1], draw(rng, 8, dtype)[::3], strided=True)
    if name == "convolve":
        check(name, draw(rng, 3, dtype), draw(rng, 9, dtype))


def test_infinity_at_the_ends_of_a_convolution():
    check("convolve", np.ones(80), np.array([1.0, 2.0, np.inf]))
    check("slide", np.arange(80.0), np.array([1.0, np.inf, -np.inf]))


def test_sizes_that_are_not_known():
    shape = (("n", "m"), ("m", 1), "f8")
    rng = np.random.default_rng(5)
    for axis in (0, 1):
        kernel = Compiled("cumsum", {"axis": axis}, [shape], [shape])
        for n, m in [(1, 1), (3, 5), (4, 33)]:
            x, y = rng.normal(size=(n, m)), np.full((n, m), np.nan)
            assert kernel([x.ctypes.data, y.ctypes.data], {"n": n, "m": m}) == 0
            agree(y, np.cumsum(x, axis))
