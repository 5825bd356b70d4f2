"""Linear systems whose solution is NaN, and not an error, if the matrix is singular.

    solve_or_nan   for methods that try a matrix, and another one if it is singular
    lu_or_nan      factors with NaN for pivots that are zero: solutions with them are not finite

The stages of differential equations are such systems: a step with a singular matrix is rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.op_facts import Effects
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import on_last_axes

from .linear_solve import adjoint, matrices, regular, solution_tangent, solving
from .packed_storage import lu_packed

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
