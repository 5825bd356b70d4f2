"""Sums over rows, which are added several rows at a time, and products of vectors and matrices."""

import numpy as np
import pytest
from wengert.backends import backend

import wengert as wg
from wengert._engine.backends.llvm.tuning import thresholds, using

RNG = np.random.default_rng(0)
LARGE = (131, 150)  # rows are summed along together
SHAPES = [LARGE, (1, 70), (7, 65), (8, 64), (9, 130), (67, 100), (70, 3), (3, 0), (0, 70), (64, 64)]
DTYPES = ["float64", "float32", "complex128", "complex64", "int64", "bool", "float16"]


def drawn(shape, dtype="float64"):
    """Numbers of a dtype, small enough to be added exactly as integers."""
    x = RNG.integers(-3, 4, size=shape)
    if np.dtype(dtype).kind == "c":
        return (x + 1j * RNG.integers(-3, 4, size=shape)).astype(dtype)
    return x.astype(dtype)


def blocks_of(f, *args):
    """The rows of a block, of every nest of a program."""
    return [nest.fused.block for nest, _ in backend("llvm").program(wg.trace(f)(*args)).nests]


# ---- values ------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_vectors_and_matrices(shape, dtype):
    a, x, y = drawn(shape, dtype), drawn(shape[1], dtype), drawn(shape[0], dtype)
    f = lambda a, x, y: (a @ x, y @ a, a.T @ y, x @ a.T)  # noqa: E731
    for given in (a, np.asfortranarray(a), np.kron(a, np.ones((2, 2), a.dtype))[::2, ::2]):
        compiled = wg.jit(f)
        for _ in range(4):  # copied at first, then read where it lies
            for found, expected in zip(compiled(given, x, y), f(given, x, y), strict=True):
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)


@pytest.mark.sample(5)
@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("shape", [*SHAPES, (5, 9, 70), (2, 3, 4, 65)], ids=str)
def test_sums_over_rows(shape, named):
    x = drawn(shape)
    axes = tuple(range(len(shape) - 1))

    def f(x):
        return np.sum(x, axis=axes), np.prod(x * 0.5, axis=axes), np.sum(x * x, axis=0), x + 1.0

    of = wg.spec(tuple("ijkl"[: x.ndim])) if named and x.size else x  # a named size is at least 1
    found = wg.computation(wg.trace(f)(of), backend="llvm")(x)
    for one, expected in zip(found, f(x), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("shape", [(7, 65), (64, 64), (67, 100), (203, 81), LARGE], ids=str)
def test_rows_and_columns_in_one_pass(shape):
    a, x, y = drawn(shape), drawn(shape[1]), drawn(shape[0])

    def f(a, x, y):
        b = a @ x  # a number for each row, kept for a block
        c = a * b[:, None]  # so is a row
        return b @ a, np.sum(c, axis=0), np.max(a, axis=0), np.sum(a * y[:, None]), b

    for named in (False, True):
        of = (wg.spec(("m", "n")), wg.spec("n"), wg.spec("m")) if named else (a, x, y)
        found = wg.computation(wg.trace(f)(*of), backend="llvm")(a, x, y)
        for one, expected in zip(found, f(a, x, y), strict=True):
            np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_are_shared_out(threads):
    a, y = drawn((203, 300)), drawn(203)
    with using(parallel_loop_work=2000):
        f = wg.jit(lambda a, y: (y @ a, np.sum(a, axis=0)), threads=threads)
        for found, expected in zip(f(a, y), (y @ a, np.sum(a, axis=0)), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_failure_within_a_block_raises():
    f = wg.jit(lambda a, k: np.sum(a[k] * 2.0, axis=0))
    a, k = drawn((20, 70)), np.arange(20)
    np.testing.assert_array_equal(f(a, k), np.sum(a * 2.0, axis=0))
    k[13] = 20
    with pytest.raises(IndexError, match="20 is out of bounds"):
        f(a, k)


def test_gradients_of_products():
    a, x, y = RNG.normal(size=(37, 81)), RNG.normal(size=81), RNG.normal(size=37)
    f = lambda a, x, y: np.sum(np.sin(a @ x)) + np.sum(np.cos(y @ a))  # noqa: E731
    found = wg.jit(wg.grad(f, argnums=(0, 1, 2)))(a, x, y)
    rows, columns = np.cos(a @ x), -np.sin(y @ a)
    expected = np.outer(rows, x) + np.outer(y, columns), rows @ a, a @ columns
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(8, 64), (9, 70), (67, 300), (130, 1000), LARGE], ids=str)
def test_several_sums_along_rows(shape):
    a, b, x = drawn(shape), drawn(shape), drawn(shape[1])

    def f(a, b, x):
        along = np.arange(shape[0])[:, None] * a  # the row itself is a factor
        return a @ x, np.sum(a * b, axis=1), np.sum(along, axis=1), np.sum(a[::-1] * b, axis=1)

    for named in (False, True):
        of = (wg.spec(("m", "n")), wg.spec(("m", "n")), wg.spec("n")) if named else (a, b, x)
        if named:
            g = lambda a, b, x: (a @ x, np.sum(a * b, axis=1), np.sum(a[::-1] * b, axis=1))  # noqa: E731
        else:
            g = f
        found = wg.computation(wg.trace(g)(*of), backend="llvm")(a, b, x)
        for one, expected in zip(found, g(a, b, x), strict=True):
            np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_as_accurate_as_blas(dtype):
    a, x = RNG.random((50, 4000)).astype(dtype), RNG.random(4000).astype(dtype)
    exact = (a.astype("longdouble") @ x.astype("longdouble")).astype("longdouble")
    found, blas = (np.max(np.abs(y - exact) / exact) for y in (wg.jit(np.matmul)(a, x), a @ x))
    assert found <= max(blas, np.finfo(dtype).eps)


# ---- decisions ---------------------------------------------------------------------------------


def test_what_is_blocked():
    a, x, y = drawn((300, 200)), drawn(200), drawn(300)
    assert blocks_of(lambda a, y: y @ a, a, y) == [thresholds.row_block]
    assert blocks_of(lambda a, x: a @ x, a, x) == [thresholds.row_block]
    assert blocks_of(lambda a: np.sum(a[:7], axis=1), a) == [1]
    assert blocks_of(lambda a: np.max(a, axis=1), a) == [1]
    assert blocks_of(lambda a: np.sum(a[:100, :100], axis=1), a) == [1]  # code for little
    assert blocks_of(lambda a: np.sum(np.exp(a), axis=1), a) == [1]  # rows do not wait for memory
    assert blocks_of(lambda a, x, y: (a @ x, y @ a), a, x, y) == [thresholds.row_block]
    assert blocks_of(lambda a, x: (a @ x) @ a, a, x) == [thresholds.row_block]
    assert blocks_of(lambda a: np.sum(a[:7], axis=0), a) == [1]  # fewer rows than a block
    long = wg.spec((300, thresholds.row_block_bytes))
    assert blocks_of(lambda a, x: (a @ x) @ a, long, wg.spec(long.shape[1])) == [1]


def test_square_matrices_are_read_along_their_rows():
    a, x, y = drawn((300, 300)), drawn(300), drawn(300)
    program = backend("llvm").program(wg.trace(lambda a, x, y: (a @ x, y @ a))(a, x, y))
    ((nest, _),) = program.nests
    assert {group.reduced for group in nest.fused.groups} == {(0,), (1,)}
    for space in nest.spaces:
        assert space.axes[space.vector].counter == 1


@pytest.mark.sample(10)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "int64"])
@pytest.mark.parametrize("count", [2, 3, 4, 7, 8, 9])
def test_a_few_short_rows_are_combined_column_by_column(count, dtype):
    x, t = drawn((count, 9, 9, 3), dtype), drawn((count, 6), dtype)

    def f(x, t):
        window = x[:, 2:7, 1:6, :, None]
        products = window * t[:, None, None, None, :]
        return np.sum(products, axis=0), np.prod(products, axis=0), np.max(np.abs(x), axis=0)

    program = backend("llvm").program(wg.trace(f)(x, t))
    rows = [nest.fused.rows for nest, _ in program.nests if nest.fused.groups[0].reduced]
    assert rows and all(n == (count > thresholds.row_block) for n in rows)
    for found, expected in zip(wg.jit(f)(x, t), f(x, t), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    wide = drawn((count, 40_000))
    np.testing.assert_array_equal(wg.jit(lambda x: np.sum(x, axis=0))(wide), np.sum(wide, axis=0))


def test_copies_of_rows_to_large_arrays_are_loops_of_their_own():
    """Sums over rows take blocks of rows; memory is written fastest row by row."""

    def f(a, x):
        return np.sum(a, axis=0), np.broadcast_to(x, a.shape) * 2.0

    for rows, nests in ((64, 1), (2000, 2)):
        a, x = drawn((rows, 400)), drawn(400)
        assert len(backend("llvm").program(wg.trace(f)(a, x)).nests) == nests
        for found, expected in zip(wg.jit(f)(a, x), f(a, x), strict=True):
            np.testing.assert_array_equal(found, expected)
