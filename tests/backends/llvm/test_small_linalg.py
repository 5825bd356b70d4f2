"""Eigenvalues and eigenvectors of small matrices in batches; what Cholesky gives backwards.

Beside LAPACK over matrices that are random, graded, of all sizes of numbers, with equal
eigenvalues, and not numbers at all; what is compared for eigenvectors is that they solve the
equation and are orthonormal, and that they have LAPACK's signs where rounding does not decide.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from wengert.backends import backend

import wengert as wg
from wengert._engine.backends.llvm.kernels.linalg.symmetric_eigenvalues import ROWS
from wengert._engine.core.op import lookup

from .kernel_driver import agree

EPS = np.finfo(float).eps
cholesky_cotangent = lookup("cholesky_cotangent")
COUNT = 203  # not a multiple of a register's lanes


def native(fun, *args):
    """Its result, and nothing but its own code for it."""
    program = backend("llvm").program(wg.trace(fun)(*args))
    used = [s for s in program.symbols if s.startswith(("blas.", "lapack."))]
    assert not used and not program.host_callbacks
    return wg.jit(fun, host_callbacks="forbid")(*args)


def symmetric(a, uplo="L"):
    """The matrices that LAPACK reads in one triangle."""
    if uplo == "U":
        return np.triu(a) + np.triu(a, 1).mT
    return np.tril(a) + np.tril(a, -1).mT


def families(rng, n):
    """Matrices of every kind, by name."""
    g = rng.normal(size=(COUNT, n, n))
    a = g + g.mT
    q = np.linalg.qr(g)[0]
    far, near = (10.0 ** rng.uniform(low, 0, (COUNT, n, 1)) for low in (-100, -8))
    yield "random", a
    yield "one", a[0]
    yield "positive", g @ g.mT
    yield "all sizes", a * 10.0 ** rng.uniform(-150, 150, (COUNT, 1, 1))
    yield "graded", a * near * near.mT
    yield "graded to nothing", a * far * far.mT
    yield "integers", rng.integers(-1, 2, (COUNT, n, n)).astype(float)
    yield "equal", (q * rng.integers(0, 2, (COUNT, 1, n))) @ q.mT
    yield "nearly equal", np.eye(n) + 1e-14 * a
    yield "one block far below", _with_block(a, 1e-170)
    yield "one block near the end of numbers", _with_block(a, 1e-300)
    yield "below normal numbers", a * 1e-310
    yield "large", a * 1e307
    yield "diagonal", np.eye(n) * rng.integers(-2, 3, (COUNT, n, 1))
    yield "zero", np.zeros((COUNT, n, n))
    yield "rank one", g[:, :, :1] @ g[:, :, :1].mT
    yield "tridiagonal", np.eye(n) * 2.0 - np.eye(n, k=1) - np.eye(n, k=-1) + 0.0 * a
    yield "next to nothing beside the diagonal", np.eye(n) * a + 1e-160 * a


def _with_block(a, size):
    out = a.copy()
    out[:, :-2], out[:, :, :-2] = 0.0, 0.0
    out *= size
    out[:, 0, 0] += 1.0
    return out


@pytest.mark.sample(1)
@pytest.mark.parametrize("n", range(2, ROWS + 1))
def test_eigenvalues_and_vectors(n, rng):
    for uplo in "LU" if n < 5 else "L":
        compiled = {}
        for name, a in families(rng, n):
            run = compiled.setdefault(a.ndim, wg.jit(lambda a: tuple(np.linalg.eigh(a, uplo))))  # noqa: B023
            check(name, symmetric(a, uplo), run(a), np.linalg.eigh(a, uplo))


def check(name, a, found, lapack):
    """Residual, orthogonality and eigenvalues as good as LAPACK's; order; signs."""
    (w, v), (w0, v0) = found, lapack
    n = a.shape[-1]
    size = np.abs(a).max((-1, -2), keepdims=True)
    size = np.where(size == 0, 1.0, size)
    rounding = 4 * n * EPS + 5e-324 / size
    unit, values = a / size, w[..., None, :] / size
    assert (np.abs(unit @ v - v * values) <= rounding).all(), name
    assert (np.abs(v.mT @ v - np.eye(n)) <= 4 * n * EPS).all(), name
    assert (np.abs(w - w0)[..., None] / size <= rounding).all(), name
    assert (np.diff(w, axis=-1) >= 0).all(), name
    if name in ("random", "one", "positive", "all sizes", "large", "diagonal", "zero"):
        agree(v, v0, 1e-6)


def test_signs_are_lapacks_for_a_million_numbers(rng):
    for n in (2, 3, 4):
        a = rng.normal(size=(10_000, n, n))
        v, v0 = wg.jit(lambda a: np.linalg.eigh(a)[1])(a), np.linalg.eigh(a)[1]
        assert np.mean(np.abs(v - v0).max((-1, -2)) > 1e-6) <= 1e-3


def test_nothing_is_called(rng):
    for shape, dtype in [
        ((9, 3, 3), "f8"),
        ((2, 5, 4, 4), "f4"),
        ((2, 2), "f8"),
        ((3, 2, 2), "i4"),
    ]:
        g = rng.normal(size=shape)
        a = (4 * (g + g.mT)).astype(dtype)
        for x, y in zip(
            native(lambda a: tuple(np.linalg.eigh(a)), a), np.linalg.eigh(a), strict=True
        ):
            assert x.dtype == y.dtype
            agree(x, y)


@pytest.mark.sample(2)
@pytest.mark.parametrize("n", [2, 3, 6])
def test_eigenvalues_without_vectors(n, rng):
    """The same numbers, and no memory or code for the matrix of vectors."""
    shape = (31, n, n)
    alone, both = wg.jit(np.linalg.eigvalsh), wg.jit(lambda a: tuple(np.linalg.eigh(a)))
    for _, a in families(rng, n):
        if a.ndim == 3:
            np.testing.assert_array_equal(alone(a[:31]), both(a[:31])[0])
    short, long = (f.lower(wg.spec(shape, "f8")).llvm_ir for f in (alone, both))
    square = re.compile(rf"alloca \[{n * n} x <\d+ x double>\]")
    assert len(square.findall(short)) == 1  # the matrix
    assert len(square.findall(long)) == 2  # and its vectors
    assert len(short) < len(long)


def test_batches_of_all_sizes(rng):
    compiled = wg.jit(lambda a: tuple(np.linalg.eigh(a)), host_callbacks="forbid")
    for count in [5, 6, *range(2, 21), 100, 0]:
        g = rng.normal(size=(count, 3, 3))
        for x, y in zip(compiled(g + g.mT), np.linalg.eigh(g + g.mT), strict=True):
            agree(x, y)


def test_what_is_not_finite_is_refused(rng):
    """NumPy raises, has NaN, or has wrong numbers, as LAPACK happens to go on."""
    g = rng.normal(size=(12, 3, 3))
    fun = wg.jit(lambda a: tuple(np.linalg.eigh(a)))
    for value in (np.nan, np.inf):
        a = g + g.mT
        a[7, 1, 0] = a[7, 0, 1] = value
        with pytest.raises(np.linalg.LinAlgError, match="infs or NaNs"):
            fun(a)


def test_gradients(rng):
    for n in (2, 3, 5):
        g = rng.normal(size=(17, n, n))
        a, c = g + g.mT, rng.normal(size=(17, n, n))
        functions = [
            lambda a: np.sum(np.linalg.eigvalsh(a) ** 3),
            lambda a: np.sum(np.linalg.eigh(a)[1] ** 2 * c),  # noqa: B023
            lambda a: np.sum(np.exp(np.linalg.eigh(a)[0])[:, None, :] * np.linalg.eigh(a)[1] * c),  # noqa: B023
        ]
        for fun in functions:
            agree(wg.jit(wg.grad(fun), host_callbacks="forbid")(a), wg.grad(fun)(a), 1e-9)
    twice = wg.grad(lambda a: np.sum(wg.grad(functions[0])(a) ** 2))
    agree(wg.jit(twice, host_callbacks="forbid")(a), twice(a), 1e-9)


def test_threads(rng):
    g = rng.normal(size=(9_001, 3, 3))
    a = g + g.mT
    one, three = (wg.jit(lambda a: tuple(np.linalg.eigh(a)), threads=k)(a) for k in (1, 3))
    for x, y in zip(one, three, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((1, 1), "f8"), ((20, 2, 2), "f8"), ((2, 5, 3, 3), "f8"), ((20, 4, 4), "f4"),
        ((19, 6, 6), "f8"), ((2, 8, 8), "f8"), ((9, 9), "f8"), ((47, 47), "f8"),
        ((2, 48, 48), "f8"), ((49, 49), "f8"), ((150, 150), "f8"), ((3, 3), "c8"),
        ((97, 97), "f4"), ((100, 100), "c16"),
    ],
)  # fmt: skip
def test_the_cotangent_of_cholesky(shape, dtype, rng):
    """In lanes, and by blocks; only lower triangles are read."""
    n, kind = shape[-1], np.dtype(dtype).kind
    g, t, other = (rng.normal(size=shape) for _ in range(3))
    if kind == "c":
        g, t = g + 1j * rng.normal(size=shape), t - 1j * rng.normal(size=shape)
    low = np.linalg.cholesky(g @ np.conj(g.mT) + n * np.eye(n)).astype(dtype)
    t = t.astype(dtype)
    want = cholesky_cotangent.oracle(low, t)
    low += np.triu(other, 1).astype(dtype)
    compiled = wg.jit(lambda low, t: cholesky_cotangent(low, t), host_callbacks="forbid")
    tolerance = 3 * n * np.finfo(dtype).eps
    for found in (compiled(low, t), cholesky_cotangent.run(low, t)):
        assert found.dtype == dtype
        agree(found, want.astype(dtype), tolerance)
        np.testing.assert_array_equal(found, np.conj(found.mT))
    turned = wg.jit(lambda low, t: cholesky_cotangent(low.mT, t.mT), host_callbacks="forbid")
    agree(turned(low.mT.copy(), t.mT.copy()), want.astype(dtype), tolerance)


def test_cotangents_of_one_factor_with_many(rng):
    low = np.linalg.cholesky(9.0 * np.eye(60) + 0.1 * np.ones((60, 60)))
    t = rng.normal(size=(3, 60, 60))
    compiled = wg.jit(lambda low, t: cholesky_cotangent(low, t), host_callbacks="forbid")
    agree(compiled(low, t), cholesky_cotangent.oracle(low, t), 1e-13)
