"""The factorization L D adjoint(L) of a Hermitian matrix that need not be definite.

    ldl_factors, block_mask     operations
    ldl                         as scipy.linalg.ldl

D has 1x1 and 2x2 blocks; pivoting makes them piecewise constant (they change at equal pivots).  For
F = inv(L) dA inv(adjoint(L)), dD consists of the blocks of F, and inv(L) dL follows from the part
below them; L is the identity within a block (as for LU: S. F. Walter and L. Lehmann, "Algorithmic
differentiation of linear algebra functions", 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import value_of
from wengert._engine.core.op_facts import BY_SCIPY, facts
from wengert._engine.ops.creation import positions, triangle_mask
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.linalg.factorizations import solve_triangular
from wengert._engine.ops.linalg.linear_solve import adjoint, hermitian, solve

from ..dispatch import counterpart
from .lu_cho_solve import inverse_order, rows_in_order
from .register import entry, square

__all__ = ["ldl"]


def _blocks(d: Any) -> Any:
    n = d.shape[-1]
    adjacent = np.abs(np.arange(n)[:, None] - np.arange(n)) == 1
    linked = (np.abs(d) + np.abs(np.swapaxes(d, -1, -2))) > 0
    return (adjacent & linked) | np.eye(n, dtype=bool)


@entry("Check it for NaN and infinity", "2", discrete=True, oracle=_blocks)
def block_mask(d):
    """The mask of the blocks of a block diagonal matrix."""
    mask = np.eye(d.shape[-1], dtype=bool)
    for i in range(d.shape[-1] - 1):
        mask[i, i + 1] = mask[i + 1, i] = d[i, i + 1] != 0 or d[i + 1, i] != 0
    return mask


@block_mask.compose
def _(d):
    i = positions(d.shape[-1])
    distance = i[:, None] - i
    linked = (d != 0) | (d.mT != 0)
    return (distance == 0) | ((abs(distance) == 1) & linked)


@block_mask.examples
def _(rng):
    yield (np.diag([1.0, 2.0, 0.0]),), {}
    yield (np.array([[0.0, 1.0], [1.0, 0.0]]),), {}


def _by_elimination(a: Any, *, lower: bool, conjugated: bool) -> Any:
    """Test oracle: L and D by elimination, with LAPACK's pivots and blocks."""
    _, blocks, order = scipy.linalg.ldl(a, lower=lower, hermitian=conjugated)
    n, mask, rest = len(a), _blocks(blocks), a[order][:, order].copy()
    low, d, done = np.eye(n, dtype=a.dtype), np.zeros_like(a), np.zeros(n, bool)
    for i in range(n) if lower else range(n)[::-1]:
        inside = mask[i] & ~done
        if done[i]:
            continue
        done |= inside
        pivot = rest[np.ix_(inside, inside)]
        side = rest[np.ix_(~done, inside)] @ np.linalg.inv(pivot)
        d[np.ix_(inside, inside)], low[np.ix_(~done, inside)] = pivot, side
        rest[np.ix_(~done, ~done)] -= side @ rest[np.ix_(inside, ~done)]
    return low[np.argsort(order)], d, order


@facts(host_callback=BY_SCIPY)
@entry("It must be square", "2", oracle=_by_elimination, prepare=lambda a: (hermitian(a),))
def ldl_factors(a, *, lower, conjugated):
    """L, D and the order of rows p, with L[p] triangular and a = L @ D @ adjoint(L)."""
    return scipy.linalg.ldl(a, lower=lower, hermitian=conjugated)


def _adjoint_or_transpose(x: Any, conjugated: bool) -> Any:
    return adjoint(x) if conjugated else x.mT


def _symmetrize(x: Any, conjugated: bool) -> Any:
    return 0.5 * (x + _adjoint_or_transpose(x, conjugated))


def _solve_with_l(low: Any, order: Any, x: Any, lower: bool, trans: int = 0) -> Any:
    """inv(L) @ x or inv(adjoint(L)) @ x; L is triangular after a permutation of rows."""
    options: dict[str, Any] = {"lower": lower, "unit_diagonal": True, "trans": trans}
    if not trans:
        x = rows_in_order(x, order)
    x = solve_triangular(rows_in_order(low, order), x, **options)
    return rows_in_order(x, inverse_order(order)) if trans else x


def _masks(d: Any, lower: bool) -> tuple[Any, Any]:
    """The masks of the blocks of D and of the part of L that is not constant."""
    mask = block_mask(value_of(d))
    n = d.shape[-1]
    side = triangle_mask(n, n, 0)
    return mask, ~mask & (side if lower else side.mT)


@ldl_factors.define_vjp
def _ldl_vjp(t, out, a, *, lower, conjugated):
    low, d, order = out
    inside, below = _masks(d, lower)
    x_bar = adjoint(solve(d, adjoint(adjoint(low) @ t[0])))
    f_bar = where(inside, t[1], 0.0) + where(below, x_bar, 0.0)
    half = _adjoint_or_transpose(_solve_with_l(low, order, f_bar, lower, 2), conjugated)
    bar = _adjoint_or_transpose(_solve_with_l(low, order, half, lower, 2), conjugated)
    return (_symmetrize(bar, conjugated),)


@ldl_factors.define_jvp
def _ldl_jvp(dots, out, a, *, lower, conjugated):
    low, d, order = out
    inside, below = _masks(d, lower)
    half = _adjoint_or_transpose(
        _solve_with_l(low, order, _symmetrize(dots[0], conjugated), lower), conjugated
    )
    f = _adjoint_or_transpose(_solve_with_l(low, order, half, lower), conjugated)
    outside = _adjoint_or_transpose(where(below, f, 0.0), conjugated)
    x = _adjoint_or_transpose(solve(_adjoint_or_transpose(d, conjugated), outside), conjugated)
    return low @ x, where(inside, f, 0.0), None


@ldl_factors.examples
def _(rng):
    a = hermitian(rng.normal(size=(3, 3)))
    yield (a + np.diag([2.0, 3.0, 4.0]),), {"lower": True, "conjugated": True}
    yield (a * 0.1 + np.eye(3)[::-1],), {"lower": False, "conjugated": False}


@counterpart(scipy.linalg.ldl)
def ldl(
    A: Any,
    lower: bool = True,
    hermitian: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Any, Any, Any]:
    """The factorization ``L @ D @ adjoint(L)`` of a Hermitian matrix, as ``scipy.linalg.ldl``.

    Parameters
    ----------
    A : array_like of shape (..., n, n)
        Hermitian, or symmetric; one triangle is read. The gradient has the same symmetry.
    lower : bool, default True
        Whether the lower triangle is read and L is lower triangular.
    hermitian : bool, default True
        False for complex symmetric matrices.

    Returns
    -------
    lu, d, perm
        d has 1x1 and 2x2 blocks, whose positions are constant except at equal pivots.

    Raises
    ------
    MatrixError
        A derivative is needed and A is singular.
    """
    a = square(A, "ldl")
    conjugated = bool(hermitian) or a.dtype.kind != "c"
    return ldl_factors(a, lower=bool(lower), conjugated=conjugated)
