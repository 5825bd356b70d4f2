"""Matrices of up to eight rows: batches run one matrix per lane, without LAPACK or BLAS.

Eager runs are LAPACK's; what native code gives has to be as good a solution, and where a matrix is
singular, the same error.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from wengert.backends import backend

import wengert as wg
from wengert._engine.core.op import lookup
from wengert.errors import MatrixError

from .kernel_driver import agree, run

EPS = np.finfo(float).eps


def regular(rng, *shape, dtype="f8"):
    """Well conditioned matrices; of integers, too."""
    n = shape[-1]
    if np.dtype(dtype).kind in "iu":
        return (rng.integers(-3, 4, (*shape, n)) + 9 * np.eye(n)).astype(dtype)
    return (rng.normal(size=(*shape, n)) + 3.0 * np.eye(n)).astype(dtype)


def positive(rng, *shape, dtype="f8"):
    a = rng.normal(size=(*shape, shape[-1]))
    return (a @ a.mT + np.eye(shape[-1])).astype(dtype)


def native(fun, *args):
    """Its result, and nothing but its own code for it."""
    graph = wg.trace(fun)(*args)  # a program lives no longer
    program = backend("llvm").program(graph)
    used = [s for s in program.symbols if s.startswith(("blas.", "lapack."))]
    assert not used and not program.host_callbacks
    return wg.jit(fun, host_callbacks="forbid")(*args)


def check(fun, *args, tolerance=None):
    want, got = fun(*args), native(fun, *args)
    several = isinstance(want, tuple)
    for x, y in zip(got if several else [got], want if several else [want], strict=True):
        agree(x, np.asarray(y), tolerance)


UNARY = {
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": lambda a: tuple(np.linalg.slogdet(a)),
}


def all_of_one(a, p, b, c):
    """One program, so that compiling is paid once for all."""
    solved = np.linalg.solve(a, b), np.linalg.solve(a, c)
    return (
        np.linalg.inv(a),
        np.linalg.det(a),
        *np.linalg.slogdet(a),
        np.linalg.cholesky(p),
        *solved,
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("n", "dtype"),
    [(1, "f8"), (2, "f8"), (3, "f8"), (4, "f8"), (3, "f4"), (2, "i4"), (5, "f8"), (8, "f4")],
)
def test_values(n, dtype, rng):
    for lead in [(), (3,), (2, 5)]:
        real = "f4" if dtype == "f4" else "f8"
        a, p = regular(rng, *lead, n, dtype=dtype), positive(rng, *lead, n, dtype=real)
        b, c = (rng.normal(size=(*lead, n, columns)).astype(real) for columns in (1, 5))
        check(all_of_one, a, p, b, c)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", [*UNARY, "solve", "cholesky"])
def test_batches_of_all_sizes(name, rng):
    """One program for all lengths; a batch may be shorter than a register."""
    if name == "solve":
        compiled = wg.jit(lambda a: np.linalg.solve(a, a[..., :2] + 1.0), host_callbacks="forbid")
        fun = lambda a: np.linalg.solve(a, a[..., :2] + 1.0)  # noqa: E731
    else:
        fun = np.linalg.cholesky if name == "cholesky" else UNARY[name]
        compiled = wg.jit(fun, host_callbacks="forbid")
    for count in [5, 6, *range(2, 21), 100, 0]:
        a = positive(rng, count, 3)
        want, got = fun(a), compiled(a)
        several = isinstance(want, tuple)
        for x, y in zip(got if several else [got], want if several else [want], strict=True):
            agree(x, np.asarray(y))


def test_leading_axes_are_broadcast(rng):
    shapes = [((2, 1, 3, 3), (4, 3, 2)), ((3, 3), (9, 3, 1)), ((9, 3, 3), (3,)), ((3, 3), (3,))]
    for one, two in shapes:
        a, b = regular(rng, *one[:-1]), rng.normal(size=two)
        check(np.linalg.solve, a, b)
    check(np.linalg.solve, regular(rng, 2, 1, 9, 2), rng.normal(size=(5, 1, 2, 3)))


def test_operands_that_lie_otherwise(rng):
    a = regular(rng, 12, 4)
    check(lambda a: np.linalg.inv(a.mT), a)
    check(lambda a: np.linalg.inv(a[::-1, 1:, 1:]), a)
    check(lambda a: np.linalg.solve(a[::2].mT, a[1::2, :, :2]), a)
    check(lambda a: np.linalg.det(np.moveaxis(a, 0, -1)[1:, 1:].transpose(2, 1, 0)), a)


@pytest.mark.sample(3)
@pytest.mark.parametrize("n", [2, 3, 4, 6, 8])
def test_solutions_are_backward_stable(n, rng):
    """Whatever the condition, and with rows and columns of all sizes: the residual is rounding."""
    count = 400
    u, v = (np.linalg.qr(rng.normal(size=(count, n, n)))[0] for _ in range(2))
    values = 10.0 ** rng.uniform(-13, 0, (count, 1, n))
    a = (u * values) @ v
    a[::3] *= 10.0 ** rng.uniform(-90, 90, (len(a[::3]), n, 1))
    b = rng.normal(size=(count, n, 2)) * np.abs(a).max(-1, keepdims=True)
    x = wg.jit(np.linalg.solve)(a, b)
    residual = np.abs(a @ x - b)
    size = np.abs(a).max(-1, keepdims=True) * np.abs(x).max((-1, -2), keepdims=True)
    lapack = np.linalg.solve(a, b)
    usual = np.abs(a @ lapack - b) / (
        np.abs(a).max(-1, keepdims=True) * np.abs(lapack).max((-1, -2), keepdims=True)
    )
    assert (residual / size).max() <= max(64 * EPS, 4 * usual.max())
    assert np.median(residual / size) <= 2 * np.median(usual) + EPS


@pytest.mark.sample(2)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_rows_are_exchanged(n):
    every = np.array([np.eye(n)[list(p)] for p in itertools.permutations(range(n))])
    np.testing.assert_array_equal(native(np.linalg.inv, every), every.mT)
    np.testing.assert_array_equal(native(np.linalg.det, every), np.round(np.linalg.det(every)))
    for x, y in zip(native(UNARY["slogdet"], every), UNARY["slogdet"](every), strict=True):
        np.testing.assert_array_equal(x, y)
    a = np.array([[1e-20, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(native(np.linalg.solve, a, np.array([1.0, 2.0])), [1.0, 1.0])


def singular_matrices():
    yield np.zeros((3, 3))
    yield np.ones((2, 2))
    yield np.arange(9.0).reshape(3, 3)
    yield np.outer([1.0, 2.0, -1.0, 0.5], [0.5, 1.0, 3.0, 7.0])
    yield np.diag([1.0, 0.0, 2.0])
    yield np.array([[0.1, 0.3], [0.2, 0.6]])
    yield np.array([[3.0, 1.0], [1.0, 1.0 / 3.0]])
    yield np.arange(36.0).reshape(6, 6)
    yield np.diag([1.0, 2.0, 0.0, 1.0, 1.0, 1.0, 3.0])
    yield np.ones((8, 8)) + np.eye(8, k=1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", range(10))
def test_singular_matrices_are_what_lapack_says(case, rng):
    """Also where it is rounding that decides, and in the middle of others."""
    flat = [*singular_matrices()][case]
    n = len(flat)
    several = regular(rng, 20, n)
    several[13] = flat
    b = rng.normal(size=(n, 1))
    for a in (flat, several):
        for fun in (np.linalg.inv, lambda a: np.linalg.solve(a, b), UNARY["slogdet"]):
            try:
                want = fun(a)
            except np.linalg.LinAlgError:
                with pytest.raises(MatrixError, match=r"[Ss]ingular"):
                    wg.jit(fun)(a)
                continue
            got = wg.jit(fun)(a)
            for x, y in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
                np.testing.assert_array_equal(np.isfinite(x), np.isfinite(y))
        size = np.prod(np.linalg.norm(a, axis=-1), axis=-1)
        assert (np.abs(wg.jit(np.linalg.det)(a) - np.linalg.det(a)) <= 64 * EPS * size).all()


@pytest.mark.parametrize("more", [0, 3])
def test_determinants_beyond_the_numbers_on_the_way(more):
    big, small = 1e200, 1e-200
    a = np.stack(
        [
            np.diag([big, big, small, small]),
            np.diag([small, small, big, big]),
            np.diag([big, big, 1.0, 1.0]),
            np.diag([small, small, -1.0, 1.0]),
            np.diag([-1e-100, 1e-100, 1e-100, 1.0]),
            np.diag([2.0, 3.0, 4.0, 0.0]),
        ]
    )
    wide = np.zeros((len(a), 4 + more, 4 + more)) + np.eye(4 + more)
    wide[:, :4, :4] = a
    a = wide
    with np.errstate(over="ignore"):
        want = np.linalg.det(a)
    got = native(np.linalg.det, a)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_allclose(got[[0, 1, 4]], [1.0, 1.0, -1e-300], rtol=1e-12)
    assert got[2] == np.inf and got[3] == 0.0 and got[5] == 0.0


def test_not_a_number(rng):
    a = regular(rng, 10, 3)
    b = rng.normal(size=(10, 3, 1))
    a[4, 1, 2], a[7, 0, 0] = np.nan, np.inf
    with np.errstate(all="ignore"):
        for fun in (np.linalg.inv, np.linalg.det, lambda a: np.linalg.solve(a, b)):
            want, got = fun(a), wg.jit(fun)(a)
            sound = np.isfinite(a).all((-1, -2))
            np.testing.assert_allclose(got[sound], want[sound], rtol=1e-12)
            assert np.isnan(got[4]).any() and np.isnan(want[4]).any()


# ---- triangles ---------------------------------------------------------------------------------


@pytest.mark.sample(6)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1, "C"])
def test_triangles(n, lower, trans, rng):
    for unit, dtype in [(False, "f8"), (True, "f4")]:
        for lead, columns in [((), 2), ((11,), 1), ((2, 3), 3)]:
            a = regular(rng, *lead, n, dtype=dtype)
            b = rng.normal(size=(*lead, n, columns)).astype(dtype)
            params = {"lower": lower, "trans": trans, "unit_diagonal": unit}
            want = [lookup("solve_triangular").run(a, b, **params)]
            status, (got,) = run("solve_triangular", a, b, outputs=want, **params)
            assert status == 0
            agree(got, want[0])
            if not unit:
                a[..., n - 1, n - 1] = 0
                assert run("solve_triangular", a, b, outputs=want, **params)[0] == 1


@pytest.mark.parametrize("n", [3, 6])
@pytest.mark.parametrize("upper", [False, True])
def test_one_triangle_of_a_positive_matrix(upper, n, rng):
    a = positive(rng, 17, n)
    other = np.triu if not upper else np.tril
    a += other(rng.normal(size=a.shape), 1 if not upper else -1)
    check(lambda a: np.linalg.cholesky(a, upper=upper), a)
    a[11, 2, 2] = -1.0
    with pytest.raises(MatrixError, match="positive"):
        wg.jit(lambda a: np.linalg.cholesky(a, upper=upper))(a)


# ---- derivatives -------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("n", [2, 3, 6])
def test_gradients(n, rng):
    a, b = positive(rng, 19, n), rng.normal(size=(19, n, 2))
    functions = [
        lambda a, b: np.sum(np.linalg.solve(a, b) ** 2),
        lambda a, b: np.sum(np.linalg.inv(a) @ b),
        lambda a, b: np.sum(np.linalg.det(a) * b[:, 0, 0]),
        lambda a, b: np.sum(np.linalg.slogdet(a)[1] * b[:, 0, 0]),
        lambda a, b: np.sum(np.linalg.cholesky(a) @ b),
        lambda a, b: np.sum((a @ a.mT @ b) ** 2),
    ]
    for fun in functions:
        slope = wg.grad(fun, argnums=(0, 1))
        for x, y in zip(wg.jit(slope, host_callbacks="forbid")(a, b), slope(a, b), strict=True):
            agree(x, y, 1e-11)
    twice = wg.grad(lambda a: np.sum(wg.grad(functions[0])(a, b) ** 2))
    agree(wg.jit(twice, host_callbacks="forbid")(a), twice(a), 1e-10)


def test_the_derivative_of_a_singular_determinant(rng):
    a = regular(rng, 9, 3)
    a[4] = np.diag([2.0, 0.0, 1.0])
    slope = wg.grad(lambda a: np.sum(np.linalg.det(a)))
    agree(wg.jit(slope)(a), slope(a), 1e-11)


# ---- products ----------------------------------------------------------------------------------


PRODUCTS = {
    "product": lambda a, b, v: a @ b,
    "transposed": lambda a, b, v: a.mT @ b,
    "with a transpose": lambda a, b, v: a @ b.mT,
    "both": lambda a, b, v: a.mT @ b.mT,
    "vectors": lambda a, b, v: (a @ v[..., None])[..., 0],
    "rows": lambda a, b, v: v[..., None, :] @ a,
    "outer": lambda a, b, v: v[..., :, None] @ v[..., None, :],
    "one with many": lambda a, b, v: a[0] @ b,
    "many with one": lambda a, b, v: a @ b[0],
    "letters": lambda a, b, v: np.einsum("nij,nkj->nki", a, b),
    "chain": lambda a, b, v: a @ b @ a @ b,
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, rng):
    fun = PRODUCTS[name]
    for n, dtype, count in [(3, "f8", 29), (4, "f4", 3), (2, "i8", 8), (3, "f2", 17)]:
        a, b = ((4 * rng.normal(size=(count, n, n))).astype(dtype) for _ in range(2))
        v = (4 * rng.normal(size=(count, n))).astype(dtype)
        agree(wg.jit(fun, host_callbacks="forbid")(a, b, v), fun(a, b, v))
    native(fun, a.astype("f8"), b.astype("f8"), v.astype("f8"))


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_all_sizes(name, rng):
    compiled = wg.jit(PRODUCTS[name], host_callbacks="forbid")
    for count in (5, 6, 7, 8, 9, 16, 31):
        a, b, v = (rng.normal(size=(count, 3, 3)[:k]) for k in (3, 3, 2))
        agree(compiled(a, b, v), PRODUCTS[name](a, b, v))


def test_products_that_are_scaled_and_added(rng):
    a, b, c = (rng.normal(size=(21, 3, 3)) for _ in range(3))
    for fun in (
        lambda a, b, c: 2.0 * (a @ b) + c,
        lambda a, b, c: c - a @ b,
        lambda a, b, c: c + 0.5 * (a.mT @ b),
    ):
        check(fun, a, b, c)


def test_options_of_a_product(rng):
    """What is added may be what the result was before: then no block may be computed twice."""
    for count in (3, 8, 21):
        a, b, c = (rng.normal(size=(count, 3, 3)) for _ in range(3))
        want = 2.0 * (a @ b) + 0.5 * c
        for operands, begin in [((a, b), c), ((a, b, c), None)]:
            status, (got,) = run(
                "matmul",
                *operands,
                outputs=[want],
                begin=begin,
                options={"alpha": 2.0, "beta": 0.5},
            )
            assert status == 0
            agree(got, want)


def test_larger_matrices_are_lapacks(rng):
    a, b = regular(rng, 5, 9), rng.normal(size=(5, 9, 3))
    agree(wg.jit(np.linalg.solve)(a, b), np.linalg.solve(a, b))
    z = regular(rng, 5, 3) + 0.5j
    agree(wg.jit(np.linalg.inv)(z), np.linalg.inv(z))


# ---- threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [9_000, 20_011])
def test_threads(count, rng):
    """Parts of a batch run on several threads; a singular matrix is found in each."""
    a, b = regular(rng, count, 3), rng.normal(size=(count, 3, 1))

    def fun(a, b):
        return np.linalg.solve(a, b), np.linalg.det(a), a @ a.mT

    compiled = [wg.jit(fun, threads=n, host_callbacks="forbid") for n in (1, 3)]
    one, three = (f(a, b) for f in compiled)
    for x, y, z in zip(one, three, fun(a, b), strict=True):
        np.testing.assert_array_equal(x, y)
        agree(x, z)
    for place in (0, count // 2, count - 1):
        flat = a.copy()
        flat[place] = np.ones((3, 3))
        with pytest.raises(MatrixError, match=r"[Ss]ingular"):
            compiled[1](flat, b)


def test_a_batch_is_split():
    """Into as many parts as are worth it, and not below that."""
    for count, several in [(9_000, True), (900, False), ("n", True)]:
        compiled = wg.jit(np.linalg.inv, threads=3)
        shape = (wg.dim(count) if isinstance(count, str) else count, 3, 3)
        text = compiled.lower(wg.spec(shape, "f8")).llvm_ir
        assert ("@wengert_parallel" in text) == several
