"""Factorizations with triangular factors: Cholesky, QR, and triangular solves.

    solve_triangular   x with op(a) @ x = b, a triangular
    cholesky           a = L @ adjoint(L)
    cholesky_cotangent its reverse-mode derivative in graphs
    qr                 a = Q @ R

The derivatives follow from differentiating the factorization and splitting the result into
triangles: I. Murray, "Differentiation of the Cholesky decomposition", 2016; S. F. Walter and
L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2018.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # scipy.linalg is loaded at first use
from numpy.linalg import LinAlgError

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.op_facts import facts
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.kinds.batching import on_last_axes
from wengert._engine.ops import cost_model
from wengert.errors import MatrixError, at, user_line

from ..creation import identity, triangle_mask
from ..elementwise.selection import where
from .linear_solve import adjoint, hermitian, matrices, real_dtype, regular, solving

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

TRANS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


# ---- triangles ---------------------------------------------------------------------------------


@facts(flops=cost_model.cubes(0.0))
@matrices("Check how the triangular matrix is computed, or use lstsq")
def solve_triangular(
    a: Array, b: Array, *, lower: bool = False, trans: int | str = 0, unit_diagonal: bool = False
) -> Any:
    """x with op(a) @ x = b, reading one triangle of `a`; op: identity, transpose, adjoint (0-2)."""
    a, b = np.asarray(a), np.asarray(b)
    columns = b[:, None] if b.ndim == 1 else b
    batch = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    if a.shape[-1] != a.shape[-2] or a.shape[-1] != columns.shape[-2]:
        raise ValueError(f"incompatible shapes: matrix {a.shape}, right-hand side {b.shape}")
    dtype = np.result_type(a.dtype, b.dtype, np.float32)
    if dtype.char not in _TRTRS:
        raise TypeError(f"array type {dtype} is unsupported in linalg")
    flags = (bool(lower), TRANS[trans], bool(unit_diagonal))
    x = np.empty((*batch, *columns.shape[-2:]), dtype)
    if x.size and not batch:
        x = _solve_one(a.astype(dtype, copy=False), columns, *flags)
    elif x.size:
        left = np.broadcast_to(a.astype(dtype, copy=False), (*batch, *a.shape[-2:]))
        right = np.broadcast_to(columns, x.shape)
        for i in np.ndindex(*batch):
            x[i] = _solve_one(left[i], right[i], *flags)
    return x[..., 0] if b.ndim == 1 else x


_TRTRS = {"f": "strtrs", "d": "dtrtrs", "F": "ctrtrs", "D": "ztrtrs"}


def _solve_one(a: Any, b: Array, lower: bool, trans: int, unit_diagonal: bool) -> Any:
    run = getattr(scipy.linalg.lapack, _TRTRS[a.dtype.char])
    if trans == 2 and a.dtype.kind == "f":
        trans = 1
    if trans < 2 and a.flags.c_contiguous:  # in LAPACK's order it is the transpose: no copy
        a, lower, trans = a.T, not lower, 1 - trans
    x, info = run(a, b, lower=lower, trans=trans, unitdiag=unit_diagonal)
    if info:
        raise LinAlgError(f"Singular triangular matrix: diagonal element {info - 1} is zero")
    return x


def triangle(x: Array, lower: bool, strict: bool = False) -> Any:
    """One triangle of `x`, without the diagonal if `strict`."""
    rows, columns = x.shape[-2:]
    if lower:
        mask = triangle_mask(rows, columns, -1 if strict else 0)
    else:
        mask = ~triangle_mask(rows, columns, 0 if strict else -1)
    return where(mask, x, 0.0)


def _solve_adjoint(a: Array, t: Array, lower: bool, trans: int, unit_diagonal: bool) -> Any:
    """The solution with the adjoint of op(a)."""
    if trans == 1 and a.dtype.kind == "c":
        a, back = np.conjugate(a), 0
    else:
        back = 0 if trans else 2
    return solve_triangular(a, t, lower=lower, trans=back, unit_diagonal=unit_diagonal)


@solve_triangular.define_vjp
def _solve_triangular_vjp(
    t: Array,
    out: Array,
    a: Array,
    b: Array,
    *,
    lower: bool = False,
    trans: int = 0,
    unit_diagonal: bool = False,
) -> Any:
    vector = b.ndim == 1
    trans = TRANS[trans]
    if vector:
        t, out = t[..., None], out[..., None]
    b_bar = _solve_adjoint(a, t, lower, trans, unit_diagonal)
    m_bar = -(b_bar @ adjoint(out))
    if trans == 1:
        m_bar = m_bar.mT
    elif trans == 2:
        m_bar = adjoint(m_bar)
    return triangle(m_bar, lower, unit_diagonal), b_bar[..., 0] if vector else b_bar


@solve_triangular.define_jvp
def _solve_triangular_jvp(
    dots: list[Array | None],
    out: Array,
    a: Array,
    b: Array,
    *,
    lower: bool = False,
    trans: int = 0,
    unit_diagonal: bool = False,
) -> Any:
    a_dot, b_dot = dots
    vector = b.ndim == 1
    trans = TRANS[trans]
    right = None if b_dot is None else b_dot[:, None] if vector else b_dot
    if a_dot is not None:
        m_dot = triangle(a_dot, lower, unit_diagonal)
        m_dot = adjoint(m_dot) if trans == 2 else m_dot.mT if trans == 1 else m_dot
        product = m_dot @ (out[..., None] if vector else out)
        right = -product if right is None else right - product
    x_dot = solve_triangular(a, right, lower=lower, trans=trans, unit_diagonal=unit_diagonal)
    return x_dot[..., 0] if vector else x_dot


def _solve_triangle(
    a: Array, b: Array, *, lower: Any = False, trans: Any = 0, unit_diagonal: Any = False
) -> Any:
    m = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        m = m * (1 - np.eye(m.shape[-1])) + np.eye(m.shape[-1])
    m = [m, m.mT, adjoint(m)][TRANS[trans]]
    return np.linalg.solve(m, b)


solve_triangular.oracle = _solve_triangle


solving(solve_triangular)


@solve_triangular.examples
def _(rng: np.random.Generator) -> Any:
    a = rng.normal(size=(3, 3)) + 3.0 * np.eye(3)
    yield (a, rng.normal(size=3)), {"lower": True}
    yield (a, rng.normal(size=(3, 2))), {"trans": 1}
    yield (a, rng.normal(size=(2, 3, 2))), {"lower": True, "unit_diagonal": True}
    yield (a * (1 + 0.5j), rng.normal(size=(3, 1)) * (1 + 1j)), {"trans": 2}


# ---- Cholesky ----------------------------------------------------------------------------------


@facts(flops=cost_model.cubes(1 / 3))
@matrices(
    "Add a small multiple of the identity, or use eigh, if it may be semidefinite",
    oracle="numpy",
    prepare=lambda a: (hermitian(a),),
)
def cholesky(a: Array, *, upper: bool = False) -> Any:
    """L with a = L @ adjoint(L), L lower triangular; or U with a = adjoint(U) @ U.

    One triangle of `a` is read; the derivative is that of a function of (a + adjoint(a)) / 2.
    """
    return np.linalg.cholesky(a, upper=upper) if upper else np.linalg.cholesky(a)


def _lower_half(x: Array) -> Any:
    """The lower triangle with half the diagonal: the lower y with y + adjoint(y) = x."""
    weights = 1.0 - 0.5 * identity(x.shape[-1])
    return triangle(x * weights.astype(real_dtype(x)), True)


@cholesky.define_vjp
def _cholesky_vjp(t: Array, out: Array, a: Array, *, upper: bool = False) -> Any:
    low, t = (adjoint(out), adjoint(t)) if upper else (out, t)
    return (cholesky_cotangent(low, t),)


@cholesky.define_jvp
def _cholesky_jvp(dots: list[Array], out: Array, a: Array, *, upper: bool = False) -> Any:
    low = adjoint(out) if upper else out
    half = solve_triangular(low, hermitian(dots[0]), lower=True)
    inner = solve_triangular(low, adjoint(half), lower=True)
    dot = low @ _lower_half(inner)
    return adjoint(dot) if upper else dot


on_last_axes(cholesky, 2)


@cholesky.examples
def _(rng: np.random.Generator) -> Any:
    for shape, upper in [((3, 3), False), ((2, 2, 2), False), ((3, 3), True)]:
        a = rng.normal(size=shape)
        yield (a @ a.mT + np.eye(shape[-1]),), {"upper": upper}
    a = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    yield (a @ adjoint(a) + np.eye(3),), {}


BLOCK = 64  # block size


@matrices("The factor must be nonsingular")
def cholesky_cotangent(low: Array, t: Array) -> Any:
    """The cotangent of a Hermitian matrix from that of its lower Cholesky factor.

    adjoint(inv(low)) @ S @ inv(low), with S the Hermitian part of the lower triangle of
    adjoint(low) @ t with its diagonal halved.  Only the lower triangles of `low` and `t` are read.
    Large matrices are processed by blocks, starting from the last, with twice the operations of the
    factorization (after Murray, section 4.2).
    """
    low, t = np.asarray(low), np.asarray(t)
    shape = np.broadcast_shapes(low.shape, t.shape)
    if shape[-1] <= BLOCK:
        return (_small_cotangent if len(shape) == 2 else _batched_cotangents)(np.tril(low), t)
    out = np.empty(shape, np.result_type(low.dtype, t.dtype, np.float32))
    factors, bars = (np.broadcast_to(x, shape) for x in (low, t))
    for i in np.ndindex(*shape[:-2]):
        out[i] = _blocked_cotangent(factors[i].astype(out.dtype, copy=False), bars[i])
    return out


def _small_cotangent(low: Array, t: Array) -> Any:
    half = solve_triangular.run(low, _half(adjoint(low) @ np.tril(t)), lower=True, trans=2)
    return hermitian(adjoint(solve_triangular.run(low, adjoint(half), lower=True, trans=2)))


def _batched_cotangents(low: Array, t: Array) -> Any:
    """`cholesky_cotangent` row by row, for all matrices at once."""
    n = low.shape[-1]
    low, t = np.broadcast_arrays(low, t)
    out = np.empty(low.shape, np.result_type(low.dtype, t.dtype, np.float32))
    for j in reversed(range(n)):
        here, below = slice(j, j + 1), slice(j + 1, n)
        diagonal, column = low[..., here, here], low[..., below, here]
        rest = (t[..., below, here] - 2.0 * (out[..., below, below] @ column)) / diagonal
        inner = t[..., here, here] - adjoint(rest) @ column
        back = np.conjugate(diagonal)
        out[..., here, here] = 0.5 * (back * inner).real / (back * diagonal).real
        out[..., below, here] = 0.5 * rest
        out[..., here, below] = adjoint(out[..., below, here])
    return out


def _half(x: Array) -> Any:
    """The Hermitian part of the lower triangle, with the diagonal halved."""
    return hermitian(_lower_half(x))


def _blocked_cotangent(low: Array, t: Array) -> Any:
    n = low.shape[-1]
    out = np.empty_like(low)
    for stop in range(n, 0, -BLOCK):
        start = max(0, stop - BLOCK)
        here, below = slice(start, stop), slice(stop, n)
        diagonal, column, inner = np.tril(low[here, here]), low[below, here], t[here, here]
        if stop < n:
            rest = t[below, here] - 2.0 * (out[below, below] @ column)
            rest = solve_triangular.run(diagonal, adjoint(rest), lower=True, trans=2)
            inner = inner - rest @ column
            out[here, below] = 0.5 * rest
            out[below, here] = adjoint(out[here, below])
        out[here, here] = _small_cotangent(diagonal, inner)
    return out


def _cotangent_by_inverses(low: Array, t: Array) -> Any:
    low, t = np.tril(low), np.tril(t)
    inverse = np.linalg.inv(low)
    inner = np.tril(adjoint(low) @ t)
    inner = inner - 0.5 * inner * np.eye(low.shape[-1])
    return adjoint(inverse) @ ((inner + adjoint(inner)) / 2) @ inverse


cholesky_cotangent.oracle = _cotangent_by_inverses


@cholesky_cotangent.define_vjp
def _cholesky_cotangent_vjp(t: Array, out: Array, low: Array, bar: Array) -> Any:
    t, low, bar = hermitian(t), triangle(low, True), triangle(bar, True)
    right = adjoint(solve_triangular(low, t, lower=True))  # t @ adjoint(inv(low))
    inner = _lower_half(solve_triangular(low, right, lower=True))
    by_low = bar @ adjoint(inner) - 2.0 * (out @ right)
    return triangle(by_low, True), triangle(low @ inner, True)


@cholesky_cotangent.define_jvp
def _cholesky_cotangent_jvp(dots: list[Array | None], out: Array, low: Array, bar: Array) -> Any:
    low_dot, bar_dot = dots
    total = None if bar_dot is None else cholesky_cotangent(low, bar_dot)
    if low_dot is not None:
        low_dot, low = triangle(low_dot, True), triangle(low, True)
        inner = hermitian(_lower_half(adjoint(low_dot) @ triangle(bar, True)))
        half = solve_triangular(low, inner, lower=True, trans=2)
        term = adjoint(solve_triangular(low, adjoint(half), lower=True, trans=2))
        turned = solve_triangular(low, adjoint(out @ low_dot), lower=True, trans=2)
        term = term - turned - adjoint(turned)
        total = term if total is None else total + term
    return total


on_last_axes(cholesky_cotangent, 2)


@cholesky_cotangent.examples
def _(rng: np.random.Generator) -> Any:
    for shape in [(3, 3), (2, 2, 2)]:
        yield (regular(rng, *shape[:-1]), rng.normal(size=shape)), {}
    low, t = (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) for _ in range(2))
    yield (low + 3.0 * np.eye(3), t), {}


# ---- QR ----------------------------------------------------------------------------------------


@facts(flops=cost_model.cubes(4 / 3))
@matrices("The matrix must have at least as many rows as columns", oracle="numpy")
def qr(a: Array) -> Any:
    """Q with orthonormal columns and upper triangular R with a = Q @ R; no more columns than rows.

    The derivative requires independent columns, and raises an error otherwise.
    """
    return tuple(np.linalg.qr(a))


def _divisor(r: Array, rows: Size) -> Any:
    """R to divide by: an error if its columns are dependent, or NaN in a graph.

    A diagonal element is then zero up to rounding, and the derivative would be rounding error.
    """
    columns = r.shape[-1]
    size: Any = np.abs(np.diagonal(value_of(r), axis1=-2, axis2=-1))
    if columns == 0:
        return r
    eps = float(np.finfo(r.dtype).eps) * (100 if is_symbolic((rows, columns)) else rows)
    is_dependent: Any = size <= eps * np.max(size, axis=-1, keepdims=True)
    if is_traced(is_dependent):
        return where(is_dependent[..., None], nan, r)
    if np.any(is_dependent):
        raise MatrixError(
            f"The derivative of qr does not exist for a matrix with {columns} columns that are "
            "linearly dependent, or nearly so: Q is not continuous there. Use svd or pinv, or omit "
            f"a column{at(user_line())}."
        )
    return r


def _imaginary_diagonal(x: Array) -> Any:
    return 1j * (x.imag * identity(x.shape[-1], real_dtype(x)))


@qr.define_vjp
def _qr_vjp(t: tuple[Array, ...], out: tuple[Array, ...], a: Array) -> Any:
    q, r = out
    r = _divisor(r, a.shape[-2])
    t_q, t_r = t
    inner = t_r @ adjoint(r)
    projected = adjoint(q) @ t_q
    difference = projected - inner
    low = triangle(difference - adjoint(difference), True, strict=True)
    if a.dtype.kind == "c":
        low = low + _imaginary_diagonal(difference)
    c_bar = t_q + q @ (inner + low - projected)
    return (adjoint(solve_triangular(r, adjoint(c_bar))),)


@qr.define_jvp
def _qr_jvp(dots: list[Array], out: tuple[Array, ...], a: Array) -> Any:
    q, r = out
    r = _divisor(r, a.shape[-2])
    c = adjoint(solve_triangular(r, adjoint(dots[0]), trans=2))
    x = adjoint(q) @ c
    low = triangle(x, True, strict=True)
    rotation = low - adjoint(low)
    if a.dtype.kind == "c":
        rotation = rotation + _imaginary_diagonal(x)
    return q @ rotation + c - q @ x, (x - rotation) @ r


on_last_axes(qr, 2)


@qr.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 3)),), {}
    yield (rng.normal(size=(2, 4, 2)),), {}
    yield (rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2)),), {}


def _scipy_completing(a: Array) -> Any:
    a = np.asarray(a)
    n = a.shape[-1]
    rows = a.reshape((-1, *a.shape[-2:]))
    completing = [scipy.linalg.qr(matrix)[0][:, n:] for matrix in rows]
    return np.stack(completing).reshape((*a.shape[:-1], -1)).astype(a.dtype)


@matrices("Check it for NaN and infinity", oracle=_scipy_completing, discrete=True)
def completing_columns(a: Array) -> Any:
    """The columns that complete the orthonormal Q of a tall matrix to a basis, as in LAPACK."""
    return np.linalg.qr(a, mode="complete")[0][..., np.shape(a)[-1] :]


on_last_axes(completing_columns, 2)


@completing_columns.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 2)),), {}
    yield (rng.normal(size=(2, 4, 1)),), {}
