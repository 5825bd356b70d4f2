"""Factors and solutions where a matrix may be singular, or positive definite.

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

from wengert._engine.core.op_facts import Effects
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import on_last_axes

from .linear_solve import adjoint, matrices, regular, solution_tangent, solving
from .packed_storage import lu_packed, routine

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


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
_HINT = "Use lstsq, or add a multiple of the identity, if it may be singular"


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
