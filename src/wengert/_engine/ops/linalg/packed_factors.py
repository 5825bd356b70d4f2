"""Packed factors: factorization and solution as two operations.

A linear solve as two operations: factorization, and solving with packed factors.

  lu_packed          LAPACK's LU factors of square matrices, and the pivots
  solve_packed       x with op(a) @ x = b, from these factors
  order_of_pivots    the order of rows after the exchanges
  routine            a routine of LAPACK

`solve` does both.  A rewrite, the only user of these operations, splits it if the matrix is
loop-invariant, so that the loop repeats only the second (rewrite/loops/code_motion.py).
getrf returns L below its unit diagonal, and U; the result is the transpose, which is their order in
memory, to avoid a copy.  Singular matrices have factors too; the solve raises the error.

Factors and solutions where a matrix may be singular, or positive definite.

    solve_or_nan       for methods that try a matrix, and another one if it is singular
    lu_or_nan          factors with NaN for pivots that are zero: solutions with them are not finite
    definite_packed    as lu_packed; without exchanges of rows for a positive definite matrix

The stages of differential equations are such systems: a step with a singular matrix is rejected.

If a = C C^T with a lower triangle C and its diagonal d, then a = (C / d) (d C^T) are LU factors: in
half of the time of getrf, and in the same format, so that the solution and the condition number are
those of packed factors.  A matrix that is not symmetric up to rounding, or not positive definite,
has the factors of `lu_packed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.core.op_facts import Effects
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import on_last_axes
from wengert._engine.ops.shapes import reshape, transpose

from .factorizations import TRANS, solve_triangular, triangle
from .linear_solve import adjoint, matrices, regular, solution_tangent, solving

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

_HINT = "Use lstsq, or add a multiple of the identity, if it may be singular"
_FLOATS = "fdFD"


def routine(name: str, *arrays: Any) -> Any:
    """A routine of LAPACK for the dtype of some arrays."""
    from scipy.linalg.lapack import get_lapack_funcs  # rarely needed, and slow to import

    (found,) = get_lapack_funcs((name,), arrays)
    return found


@matrices(_HINT, oracle=lambda a: _packed_oracle(a))
def lu_packed(a: Array) -> Any:
    """The LU factors of square matrices, transposed, and LAPACK's pivots, counted from 1."""
    a = np.asarray(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.dtype.char not in _FLOATS:
        raise LinAlgError(f"lu: expected square floating-point matrices, got {a.shape} {a.dtype}")
    packed, pivots = np.empty(a.shape, a.dtype), np.empty(a.shape[:-1], np.int32)
    for i in np.ndindex(*a.shape[:-2]):
        if a.size:
            factors, indices, _ = routine("getrf", a[i])(a[i])
            packed[i], pivots[i] = factors.T, indices + 1
    return packed, pivots


lu_packed.effects = Effects(total=True)


@lu_packed.spec
def _(a: Spec) -> Any:
    return Spec(a.shape, a.dtype), Spec(a.shape[:-1], np.dtype(np.int32))


def _packed_oracle(a: Array) -> Any:
    import scipy.linalg

    factorizations = [scipy.linalg.lu_factor(x) for x in a.reshape(-1, *a.shape[-2:])]
    packed = np.stack([lu.T for lu, _ in factorizations]).reshape(a.shape)
    return packed, np.stack([p + 1 for _, p in factorizations]).reshape(a.shape[:-1]).astype(
        np.int32
    )


def _triangles(packed: Any) -> tuple[Any, Any]:
    """L without its unit diagonal, and U."""
    factors = packed.mT
    return triangle(factors, True, strict=True), triangle(factors, False)


def _with_unit_diagonal(low: Array) -> Any:
    return low + np.eye(low.shape[-1], dtype=low.dtype)


def _order_oracle(pivots: Any) -> Any:
    order = np.empty(pivots.shape, np.int64)
    for i in np.ndindex(*pivots.shape[:-1]):
        m = np.eye(pivots.shape[-1])
        for k, other in enumerate(pivots[i] - 1):
            swap = np.eye(len(m))
            swap[[k, other]] = swap[[other, k]]
            m = swap @ m
        order[i] = np.argmax(m, axis=1)
    return order


@matrices(
    "The operand must be pivots",
    name="rows_exchanged",
    discrete=True,
    oracle=lambda pivots: _order_oracle(pivots),
)
def order_of_pivots(pivots: Array) -> Any:
    """The permutation of rows given by LAPACK's pivots."""
    pivots = np.asarray(pivots)
    order = np.empty(pivots.shape, np.int64)
    for i in np.ndindex(*pivots.shape[:-1]):
        rows = np.arange(pivots.shape[-1])
        for k, other in enumerate(pivots[i] - 1):
            rows[[k, other]] = rows[[other, k]]
        order[i] = rows
    return order


@order_of_pivots.spec
def _(pivots: Spec) -> Any:
    return Spec(pivots.shape, np.dtype(np.int64))


@order_of_pivots.examples
def _(rng: np.random.Generator) -> Any:
    yield (np.array([2, 3, 3], np.int32),), {}


on_last_axes(order_of_pivots, 1)


def _permuted_rows(x: Array, order: Array) -> Any:
    return np.take_along_axis(x, order[..., None], axis=-2)


def _inverse_permutation(order: Array) -> Any:
    return np.argsort(order, axis=-1)


@lu_packed.define_vjp
def _lu_packed_vjp(t: tuple[Array | None, ...], out: tuple[Array, ...], a: Array) -> Any:
    (low, up), order = _triangles(out[0]), order_of_pivots(out[1])
    t_low, t_up = _triangles(t[0])
    low = _with_unit_diagonal(low)
    inner = triangle(adjoint(low) @ t_low, True, strict=True) + triangle(t_up @ adjoint(up), False)
    bar = solve_triangular(low, inner, lower=True, trans=2)
    bar = adjoint(solve_triangular(up, adjoint(bar)))
    return (_permuted_rows(bar, _inverse_permutation(order)),)


@lu_packed.define_jvp
def _lu_packed_jvp(dots: list[Array], out: tuple[Array, ...], a: Array) -> Any:
    (low, up), order = _triangles(out[0]), order_of_pivots(out[1])
    low = _with_unit_diagonal(low)
    f = solve_triangular(low, _permuted_rows(dots[0], order), lower=True)
    f = adjoint(solve_triangular(up, adjoint(f), trans=2))
    packed_dot = low @ triangle(f, True, strict=True) + triangle(f, False) @ up
    return packed_dot.mT, None


on_last_axes(lu_packed, 2)


@lu_packed.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 3)) + np.diag([3.0, 0.0, 3.0]),), {}
    yield (rng.normal(size=(2, 3, 3)),), {}
    yield (rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2)),), {}


# ---- substitution ------------------------------------------------------------------------------


@matrices(_HINT, oracle=lambda *args, **how: _solve_oracle(*args, **how))
def solve_packed(packed: Array, pivots: Array, b: Array, *, trans: int = 0) -> Any:
    """x with op(a) @ x = b for matrices b; op: identity, transpose, adjoint (0, 1, 2)."""
    packed, pivots, b = np.asarray(packed), np.asarray(pivots), np.asarray(b)
    if np.any(np.diagonal(packed, axis1=-2, axis2=-1) == 0):
        raise LinAlgError("Singular matrix")
    batch = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    x = np.empty((*batch, *b.shape[-2:]), np.result_type(packed, b))
    packed = np.broadcast_to(packed, (*batch, *packed.shape[-2:]))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    b = np.broadcast_to(b, x.shape)
    for i in np.ndindex(*batch):
        if x.size:
            run = routine("getrs", packed[i], b[i])
            x[i], _ = run(packed[i].T, pivots[i] - 1, b[i], trans=TRANS[trans])
    return x


@solve_packed.spec
def _(packed: Spec, pivots: Spec, b: Spec, trans: int = 0) -> Any:
    from wengert._engine.core.symbolic import constraints

    batch = constraints.broadcast(packed.shape[:-2], b.shape[:-2])
    return Spec((*batch, *b.shape[-2:]), np.result_type(packed.dtype, b.dtype))


def _solve_oracle(packed: Any, pivots: Any, b: Array, trans: Any = 0) -> Any:
    low, up = np.tril(packed.mT, -1) + np.eye(packed.shape[-1]), np.triu(packed.mT)
    order = np.argsort(order_of_pivots.run(pivots), axis=-1)
    a = np.take_along_axis(low @ up, order[..., None], axis=-2)
    return np.linalg.solve([a, a.mT, np.conj(a.mT)][TRANS[trans]], b)


def _solve_adjoint(packed: Array, pivots: Array, t: Array, trans: int) -> Any:
    """The solution with the adjoint of op(a)."""
    if trans == 1 and packed.dtype.kind == "c":
        return np.conjugate(solve_packed(packed, pivots, np.conjugate(t)))
    return solve_packed(packed, pivots, t, trans=(2, 0, 0)[trans])


@solve_packed.define_vjp
def _solve_packed_vjp(
    t: Array, out: Array, packed: Array, pivots: Array, b: Array, *, trans: int = 0
) -> Any:
    trans = TRANS[trans]
    b_bar = _solve_adjoint(packed, pivots, t, trans)
    a_bar = -(b_bar @ adjoint(out))
    a_bar = (a_bar, a_bar.mT, adjoint(a_bar))[trans]
    (low, up), permuted = _triangles(packed), _permuted_rows(a_bar, order_of_pivots(pivots))
    low_bar = triangle(permuted @ adjoint(up), True, strict=True)
    up_bar = triangle(adjoint(_with_unit_diagonal(low)) @ permuted, False)
    return (low_bar + up_bar).mT, None, b_bar


@solve_packed.define_jvp
def _solve_packed_jvp(
    dots: Any, out: Array, packed: Any, pivots: Any, b: Array, *, trans: Any = 0
) -> Any:
    packed_dot, _, right = dots
    if packed_dot is not None:
        (low, up), (low_dot, up_dot) = _triangles(packed), _triangles(packed_dot)
        a_dot = _permuted_rows(
            low_dot @ up + _with_unit_diagonal(low) @ up_dot,
            _inverse_permutation(order_of_pivots(pivots)),
        )
        product = (a_dot, a_dot.mT, adjoint(a_dot))[TRANS[trans]] @ out
        right = -product if right is None else right - product
    return solve_packed(packed, pivots, right, trans=trans)


@solve_packed.batch
def _solve_packed_batch(args: Any, batched: Any, size: Size, *, trans: Any = 0) -> Any:
    packed, pivots, b = args
    if batched[0] or batched[1] or packed.ndim > 2 or b.ndim != 3:
        return NotImplemented
    _, n, columns = b.shape  # the matrix is not batched: batch elements become columns of b
    wide = reshape(transpose(b, axes=(1, 0, 2)), shape=(n, size * columns))
    result = reshape(solve_packed(packed, pivots, wide, trans=trans), shape=(n, size, columns))
    return transpose(result, axes=(1, 0, 2))


@solve_packed.examples
def _(rng: np.random.Generator) -> Any:
    a, b = rng.normal(size=(3, 3)) + np.diag([3.0, 0.0, 3.0]), rng.normal(size=(3, 2))
    complex_a = a + 1j * rng.normal(size=(3, 3))
    for trans in (0, 1, 2):
        yield (*lu_packed.run(a), b), {"trans": trans}
    for trans in (1, 2):
        yield (*lu_packed.run(complex_a), b + 1j * b[::-1]), {"trans": trans}


def nan_of(dtype: np.dtype[Any]) -> Any:
    """NaN in a dtype; of complex ones both parts are."""
    return complex(np.nan, np.nan) if dtype.kind == "c" else np.nan


def _one_by_one(a: Array, b: Array) -> Any:
    """The solutions of stacked systems, NaN for singular matrices."""
    columns = b[..., None] if b.ndim == 1 else b
    stacked = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    a = np.broadcast_to(a, (*stacked, *a.shape[-2:]))
    columns = np.broadcast_to(columns, (*stacked, *columns.shape[-2:]))
    dtype = np.result_type(a, b)
    out = np.full(columns.shape, nan_of(dtype), dtype)
    for i in np.ndindex(*stacked):
        try:
            out[i] = np.linalg.solve(a[i], columns[i])
        except np.linalg.LinAlgError:
            continue
    return out[..., 0] if b.ndim == 1 else out


@matrices("The operands must be square matrices and vectors", oracle=np.linalg.solve)
def solve_or_nan(a: Array, b: Array) -> Any:
    """x with a @ x = b as `solve`; NaN for matrices that are singular, also to rounding."""
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return _one_by_one(np.asarray(a), np.asarray(b))


solve_or_nan.effects = Effects(total=True)


@solve_or_nan.define_vjp
def _vjp(t: Array, out: Array, a: Array, b: Array) -> Any:
    vector = b.ndim == 1
    columns, x = (t[..., None], out[..., None]) if vector else (t, out)
    # A solution that is not used has the cotangent zero, also if it is NaN.
    is_used = np.any(columns != 0, axis=(-2, -1), keepdims=True)
    b_bar = np.where(is_used, solve_or_nan(adjoint(a), columns), 0.0)
    a_bar = np.where(is_used, -(b_bar * adjoint(x) if vector else b_bar @ adjoint(x)), 0.0)
    return a_bar, b_bar[..., 0] if vector else b_bar


@solve_or_nan.define_jvp
def _jvp(dots: list[Array | None], out: Array, a: Array, b: Array) -> Any:
    return solution_tangent(solve_or_nan, dots, out, a, b)


solving(solve_or_nan)


@solve_or_nan.examples
def _(rng: np.random.Generator) -> Any:
    yield (regular(rng, 3), rng.normal(size=3)), {}
    yield (regular(rng, 4), rng.normal(size=(4, 2))), {}
    yield (regular(rng, 2, 1, 3), rng.normal(size=(4, 3, 2))), {}
    yield (regular(rng, 2) + 1j * rng.normal(size=(2, 2)), rng.normal(size=2)), {}


# ---- factors -----------------------------------------------------------------------------------


def _with_nan(packed: Any, pivots: Any) -> Any:
    places = np.arange(packed.shape[-1])
    diagonal = packed[..., places, places]
    packed[..., places, places] = np.where(diagonal == 0, nan_of(packed.dtype), diagonal)
    return packed, pivots


@matrices("The operands must be square matrices", oracle=lambda a: _with_nan(*lu_packed.oracle(a)))
def lu_or_nan(a: Array) -> Any:
    """The factors and pivots of `lu_packed`; NaN for pivots that are zero."""
    return _with_nan(*lu_packed.run(a))


@lu_or_nan.spec
def _(a: Spec) -> Any:
    return Spec(a.shape, a.dtype), Spec(a.shape[:-1], np.dtype(np.int32))


# The rules are those of any LU factors.
lu_or_nan.effects = lu_packed.effects
lu_or_nan.vjp_rule = lu_packed.vjp_rule
lu_or_nan.jvp_rule = lu_packed.jvp_rule
on_last_axes(lu_or_nan, 2)


@lu_or_nan.examples
def _(rng: np.random.Generator) -> Any:
    yield (regular(rng, 3),), {}
    yield (regular(rng, 5, 2),), {}
    yield (regular(rng, 3) + 1j * rng.normal(size=(3, 3)),), {}


ROUNDING = 32.0  # in units of eps: differences of elements that should be equal


@matrices(_HINT, oracle=lambda a: _oracle(a))
def definite_packed(a: Array) -> Any:
    """The LU factors of square matrices, transposed, and LAPACK's pivots, counted from 1."""
    packed, pivots = np.empty(a.shape, a.dtype), np.empty(a.shape[:-1], np.int32)
    for i in np.ndindex(*a.shape[:-2]):
        factor = _cholesky(a[i])
        if factor is None:
            packed[i], pivots[i] = lu_packed.run(a[i])
        else:
            diagonal = np.diagonal(factor)
            packed[i] = (np.tril(factor / diagonal, -1) + diagonal[:, None] * factor.T).T
            pivots[i] = np.arange(1, len(diagonal) + 1)
    return packed, pivots


def _cholesky(a: Array) -> Any:
    """The factor; None for a matrix that is not symmetric or not positive definite."""
    diagonal = np.diagonal(a)
    if a.dtype.char not in "fd" or not np.all(diagonal > 0.0):
        return None
    sizes = np.abs(a)
    limit = ROUNDING * np.finfo(a.dtype).eps * (sizes + sizes.T + np.min(diagonal, initial=np.inf))
    if not np.all(np.abs(a - a.T) <= limit):
        return None
    factor, info = routine("potrf", a)(a, lower=1, clean=1)
    return factor if info == 0 else None


@definite_packed.spec
def _(a: Spec) -> Any:
    return Spec(a.shape, a.dtype), Spec(a.shape[:-1], np.dtype(np.int32))


def _oracle(a: Any) -> Any:
    packed, pivots = lu_packed.oracle(a)
    if np.array_equal(a, a.mT) and np.all(np.linalg.eigvalsh(a) > 0):
        factors = a.copy()
        for k in range(a.shape[-1]):
            factors[..., k + 1 :, k] /= factors[..., k, k, None]
            row, column = factors[..., k, None, k + 1 :], factors[..., k + 1 :, k, None]
            factors[..., k + 1 :, k + 1 :] -= column * row
        packed = factors.mT
        pivots = np.broadcast_to(np.arange(1, a.shape[-1] + 1, dtype=np.int32), pivots.shape)
    return packed, pivots


# The rules are those of any LU factors.
definite_packed.effects = lu_packed.effects
definite_packed.vjp_rule = lu_packed.vjp_rule
definite_packed.jvp_rule = lu_packed.jvp_rule
on_last_axes(definite_packed, 2)


@definite_packed.examples
def _(rng: np.random.Generator) -> Any:
    a = rng.normal(size=(3, 3)) * 0.3
    yield (a + np.diag([3.0, 2.0, 3.0]),), {}
    yield (a @ a.T + np.diag([3.0, 2.0, 3.0]),), {}
    yield (np.stack([a @ a.T + 2.0 * np.eye(3), np.eye(3) - a @ a.T / 5.0]),), {}
