"""Products as kernels: BLAS with operands of any layout, our own loops for other dtypes.

Compared with what the interpreter runs; memory around each result must stay as it is.
"""

from __future__ import annotations

import numpy as np
import pytest

from wengert._engine.core.op import lookup

from .kernel_driver import Compiled, agree, run

FLOATS = ["f4", "f8", "c8", "c16"]
OTHERS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2"]


def draw(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.3
    return rng.integers(0, 127, shape).astype(dtype)


def check(name, *operands, strided=False, **params):
    with np.errstate(all="ignore"):
        wanted = np.asarray(lookup(name).run(*operands, **params))
    status, (found,) = run(name, *operands, outputs=[wanted], strided=strided, **params)
    assert status == 0
    agree(found, wanted)


SHAPES = [
    ((5, 7), (7, 6)),
    ((5, 7), (7,)),
    ((7,), (7, 6)),
    ((7,), (7,)),
    ((3, 5, 7), (7, 6)),
    ((3, 5, 7), (3, 7, 6)),
    ((1, 5, 7), (4, 7, 6)),
    ((2, 1, 5, 7), (3, 7, 6)),
    ((5, 1), (1, 6)),
    ((1, 7), (7, 6)),
    ((5, 7), (7, 1)),
    ((0, 7), (7, 6)),
    ((5, 0), (0, 6)),
    ((5, 0), (0,)),
    ((3, 5, 0), (3, 0, 6)),
    ((0, 5, 7), (7, 6)),
    ((33, 40), (40, 37)),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", FLOATS + OTHERS)
def test_matmul_in_all_dtypes(dtype):
    rng = np.random.default_rng(0)
    for left, right in SHAPES:
        check("matmul", draw(rng, left, dtype), draw(rng, right, dtype))


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["f8", "c8", "i4"])
def test_matmul_of_views(dtype):
    rng = np.random.default_rng(1)
    a, b = draw(rng, (9, 8), dtype), draw(rng, (8, 9), dtype)
    for x in (
        b.T,
        a[::2],
        a[:, ::2].repeat(2, 1)[:, :8],
        a[::-1],
        a[:, ::-1],
        np.broadcast_to(a[0], (3, 8)),
    ):
        for y in (
            a.T,
            b[:, ::3],
            b[:, 1:4],
            b[:, ::-1],
            np.broadcast_to(b[:, :1], (8, 4)),
            b[:, 0],
        ):
            check("matmul", x, y, strided=True)
    big = draw(rng, (4, 6, 5), dtype)
    check("matmul", big.transpose(0, 2, 1), big, strided=True)
    check("matmul", big.transpose(2, 1, 0), big.transpose(2, 0, 1), strided=True)
    check("matmul", np.broadcast_to(big[0], (3, 6, 5)), big[:3].mT, strided=True)


@pytest.mark.sample(3)
@pytest.mark.parametrize("pair", ["f4 f8", "i4 f8", "? f4", "f8 c16", "i2 u2", "u1 i8", "f2 f4"])
def test_operands_of_two_dtypes(pair):
    rng = np.random.default_rng(2)
    one, two = pair.split()
    check("matmul", draw(rng, (5, 7), one), draw(rng, (7, 6), two))
    check("dot", draw(rng, (5, 7), one), draw(rng, (2, 7, 6), two))


EINSUMS = [
    ("ab", "bc", "ac"),
    ("ab", "bc", "ca"),
    ("abc", "cbd", "ad"),
    ("abc", "bcd", "ad"),
    ("abc", "dbc", "da"),
    ("abcd", "cdab", ""),
    ("abc", "dbe", "adec"),
    ("abc", "abc", "b"),
    ("ab", "ab", "a"),
    ("ab", "cd", "cadb"),
    ("abc", "b", "a"),
    ("abc", "cd", "bd"),
    ("abc", "ca"),
    ("ab", "bc", "cd", "ad"),
    ("ab", "bc", "c", "ac"),
    ("ab", "ac", "ad", "bcd"),
    ("a", "b", "c", "abc"),
]


@pytest.mark.sample(16)
@pytest.mark.parametrize("subscripts", EINSUMS, ids=">".join)
@pytest.mark.parametrize("dtype", ["f8", "c8", "i2"])
def test_einsum(subscripts, dtype):
    rng = np.random.default_rng(3)
    lengths = dict(a=4, b=5, c=3, d=6, e=2)
    operands = [draw(rng, [lengths[c] for c in w], dtype) for w in subscripts[:-1]]
    check("einsum", *operands, subscripts=subscripts)
    turned = [np.ascontiguousarray(x.T).T for x in operands]
    check("einsum", *turned, strided=True, subscripts=subscripts)


def test_axes_of_length_one_meet_longer_ones():
    rng = np.random.default_rng(4)
    check("einsum", rng.normal(size=(1, 3)), rng.normal(size=(2, 1)), subscripts=("ab", "ab", "b"))
    check("einsum", rng.normal(size=(4, 1)), rng.normal(size=(3, 5)), subscripts=("ab", "bc", "ac"))


def test_zero_sizes_of_einsum():
    check(
        "einsum",
        np.ones((2, 0)),
        np.ones((0, 3)),
        np.ones((3, 2)),
        subscripts=("ab", "bc", "ca", "ac"),
    )
    check("einsum", np.ones((2, 0), int), np.ones((0, 3), int), subscripts=("ab", "bc", "ac"))


@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_scaled_and_added(dtype):
    rng = np.random.default_rng(5)
    for left, right in SHAPES:
        a, b = draw(rng, left, dtype), draw(rng, right, dtype)
        c = draw(rng, np.shape(a @ b), dtype)
        options = {"alpha": -2.5, "beta": 1.0}
        status, (found,) = run("matmul", a, b, outputs=[c], begin=c, options=options)
        assert status == 0
        agree(found, (-2.5 * (a @ b) + c).astype(dtype))
    a, b = draw(rng, (4, 5), dtype), draw(rng, (6, 5, 3), dtype)
    wanted = np.einsum("ab,dbe->dae", a, b)
    options = {"beta": 1.0}
    _, (found,) = run(
        "einsum",
        a,
        b,
        outputs=[wanted],
        begin=wanted,
        options=options,
        subscripts=("ab", "dbe", "dae"),
    )
    agree(found, 2 * wanted)


def test_infinity_and_nan_are_as_of_numpy():
    a = np.array([[np.inf, 0.0, 1.0], [np.nan, 1.0, 2.0], [1.0, 2.0, 3.0]])
    b = np.array([[1.0, 0.0], [2.0, np.inf], [3.0, 4.0]])
    check("matmul", a, b)
    check("matmul", a, b[:, 0])
    check("matmul", a[2], b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_strong_zeros(dtype):
    rng = np.random.default_rng(6)
    t, x, y = draw(rng, (6, 4), dtype), draw(rng, (4, 5), dtype), draw(rng, (5, 3), dtype)
    t[1, 2] = t[3, :] = t[4, 1] = 0.0
    x[2, 0], x[1, 3], x[1, 4] = np.inf, np.nan, -np.inf
    check("strong_einsum", t, x, subscripts=("ab", "bc", "ac"))
    y[0, 1] = np.nan
    check("strong_einsum", t, x, y, subscripts=("ab", "bc", "cd", "ad"))
    check("strong_einsum", t, x[:, 0], subscripts=("ab", "b", "a"))
    t[0, 0] = np.nan
    check("strong_einsum", t, x, subscripts=("ab", "bc", "ac"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_strong_zeros_of_a_mask_and_of_a_cotangent(dtype):
    rng = np.random.default_rng(7)
    mask, t, x = np.tri(6, 4, dtype=dtype), draw(rng, (6, 5), dtype), draw(rng, (5, 4), dtype)
    t[2, 1] = t[3] = 0.0
    t[1, 3] = np.nan
    x[1, 0], x[2, 3] = np.inf, np.nan
    check("masked_einsum", mask, t, x, subscripts=("ab", "ac", "cb", "ab"))
    check("masked_einsum", mask, t, x, subscripts=("ab", "ac", "cb", "cb"))


def test_sizes_that_are_not_known():
    kernel = Compiled(
        "matmul",
        {},
        [(("n", "k"), ("k", 1), "f8"), (("k", "m"), ("m", 1), "f8")],
        [(("n", "m"), ("m", 1), "f8")],
    )
    vector = Compiled(
        "matmul",
        {},
        [(("n", "k - 1"), ("k - 1", 1), "f8"), (("k - 1",), (1,), "f8")],
        [(("n",), (1,), "f8")],
    )
    rng = np.random.default_rng(7)
    for n, k, m in [(1, 1, 1), (5, 7, 3), (1, 4, 2), (3, 1, 2), (40, 50, 60)]:
        a, b, c = rng.normal(size=(n, k)), rng.normal(size=(k, m)), np.full((n, m), np.nan)
        assert kernel([x.ctypes.data for x in (a, b, c)], {"n": n, "k": k, "m": m}) == 0
        agree(c, a @ b)
        a, b, c = rng.normal(size=(n, k - 1)), rng.normal(size=k - 1), np.full(n, np.nan)
        assert vector([x.ctypes.data for x in (a, b, c)], {"n": n, "k": k}) == 0
        agree(c, a @ b)


def test_a_step_that_is_taken_twice_is_written_once():
    kernel = Compiled(
        "matmul", {}, [((3, 4), (4, 1), "f8"), ((4, 2), (2, 1), "f8")], [((3, 2), (2, 1), "f8")]
    )
    assert kernel.text.count("define internal i64 @step") == 1
