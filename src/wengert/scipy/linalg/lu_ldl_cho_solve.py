"""LU and L D adjoint(L) factorizations, and linear solves with LU and Cholesky factors.

    lu_factors, exchanges, order_of  operations
    lu, lu_factor, lu_solve          LU factorization
    cho_factor, cho_solve            Cholesky factorization
    ldl_factors, block_mask, ldl     L D adjoint(L) of a Hermitian matrix

The row permutation is an integer array without derivative; it is discontinuous at ties of pivots.
For F = inv(L) dA inv(U), dL is L times the strictly lower part of F and dU is the rest times U;
the additional rows of L or columns of U of a nonsquare matrix follow from the square part [1]_.

D has 1x1 and 2x2 blocks; pivoting makes them piecewise constant (they change at equal pivots).  For
F = inv(L) dA inv(adjoint(L)), dD are the blocks of F, and inv(L) dL is the part below them.

.. [1] S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2018
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import value_of
from wengert._engine.core.op_facts import BY_SCIPY, facts
from wengert._engine.ops import casts
from wengert._engine.ops.creation import positions, triangle_mask
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.linalg.factorizations import cholesky, solve_triangular, triangle
from wengert._engine.ops.linalg.linear_solve import adjoint, hermitian, real_dtype, solve

from ..dispatch import counterpart, floating
from .register import entry, square

__all__ = ["cho_factor", "cho_solve", "ldl", "lu", "lu_factor", "lu_solve"]

_FINITE = "Check it for NaN and infinity"


def _divide_by_triangle(u: Any, x: Any, lower: bool, **options: Any) -> Any:
    """x @ inv(op(u)), for triangular u."""
    return adjoint(solve_triangular(u, adjoint(x), lower=lower, **options))


# ---- LU ----------------------------------------------------------------------------------------


def _lu_oracle(a: Any) -> Any:
    p, low, up = scipy.linalg.lu(a)
    return low, up, np.argmax(p, axis=-2)


@entry(_FINITE, "2", oracle=_lu_oracle)
def lu_factors(a):
    """L, U and the order of rows p with a[p] = L @ U."""
    order, low, up = scipy.linalg.lu(a, p_indices=True)
    return low, up, np.argsort(order)


@lu_factors.define_vjp
def _lu_vjp(t, out, a):
    low, up, order = out
    t_low, t_up = triangle(t[0], True, strict=True), t[1]
    m, n = a.shape[-2:]
    inner = adjoint(low) @ t_low - t_up @ adjoint(up)
    if m >= n:
        head = solve_triangular(low[..., :n, :], triangle(-inner, False), lower=True, trans=2)
        bar = _add_to_first_rows(t_low, head)
        bar = _divide_by_triangle(up, bar, False)
    else:
        right = _divide_by_triangle(up[..., :m], triangle(inner, True, strict=True), False)
        bar = solve_triangular(low, _add_to_first_rows(t_up.mT, right.mT).mT, lower=True, trans=2)
    return (rows_in_order(bar, np.argsort(order, axis=-1)),)


def _add_to_first_rows(x: Any, head: Any) -> Any:
    """`x` with `head` added to its first rows."""
    n = head.shape[-2]
    if x.shape[-2] == n:
        return x + head
    return np.concatenate([x[..., :n, :] + head, x[..., n:, :]], axis=-2)


def rows_in_order(x: Any, order: Any) -> Any:
    """Permute the rows; each matrix of the batch has its own permutation."""
    return np.take_along_axis(x, order[..., None], axis=-2)


@lu_factors.define_jvp
def _lu_jvp(dots, out, a):
    low, up, order = out
    m, n = a.shape[-2:]
    permuted = rows_in_order(dots[0], order)
    if m >= n:
        g = adjoint(solve_triangular(up, adjoint(permuted), trans=2))
        f = solve_triangular(low[..., :n, :], g[..., :n, :], lower=True)
        upper = triangle(f, False)
        return g - low @ upper, upper @ up, None
    h = solve_triangular(low, permuted, lower=True)
    lower = triangle(
        adjoint(solve_triangular(up[..., :m], adjoint(h[..., :m]), trans=2)), True, True
    )
    return low @ lower, h - lower @ up, None


@lu_factors.examples
def _(rng):
    yield (rng.normal(size=(3, 3)),), {}
    yield (rng.normal(size=(2, 3, 2)),), {}
    yield (rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3)),), {}


@counterpart(scipy.linalg.lu)
def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> Any:
    """The LU decomposition with a row permutation, as ``scipy.linalg.lu``.

    Parameters
    ----------
    a : array_like of shape (..., m, n)
    permute_l : bool, default False
        Return ``P @ L`` and U.
    overwrite_a, check_finite : bool
        Ignored; for compatibility with SciPy.
    p_indices : bool, default False
        Return P as indices with ``a = L[p] @ U``.

    Returns
    -------
    P, L, U or PL, U

    Raises
    ------
    MatrixError
        A derivative is needed and the leading square part of L U is singular.

    Notes
    -----
    P is piecewise constant, and changes only at equal pivots; its derivative is 0.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda a: wg.scipy.linalg.lu(a)[2][1, 1])(np.array([[2.0, 1.0], [1.0, 3.0]]))
    array([[ 0.25, -0.5 ],
           [-0.5 ,  1.  ]])
    """
    a = floating(a)
    low, up, order = lu_factors(a)
    inverse = np.argsort(order, axis=-1)
    if permute_l:
        return rows_in_order(low, inverse), up
    if p_indices:
        return casts.astype(inverse, np.int32), low, up  # SciPy's type
    return casts.astype(inverse[..., None] == positions(a.shape[-2]), real_dtype(a)), low, up


@counterpart(scipy.linalg.lu_factor)
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """L and U in one matrix, and the pivots, as ``scipy.linalg.lu_factor``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)

    Returns
    -------
    lu : Tensor of shape (..., n, n)
    piv : array of int
        Row i was exchanged with row ``piv[i]``, in this order; not differentiable.
    """
    a = square(a, "lu_factor")
    low, up, order = lu_factors(a)
    return triangle(low, True, strict=True) + up, exchanges(order)


@entry(_FINITE, "1", discrete=True, oracle=lambda order: _exchanges_by_matrices(order))
def exchanges(order):
    """The sequence of row exchanges (LAPACK pivots) of a permutation."""
    rows, found = list(range(order.size)), np.arange(order.size, dtype=np.int32)
    for i, row in enumerate(order):
        found[i] = k = rows.index(row)
        rows[i], rows[k] = rows[k], rows[i]
    return found


@entry(_FINITE, "1", discrete=True, oracle=lambda pivots: _order_by_matrices(pivots))
def order_of(pivots):
    """The permutation of a sequence of row exchanges."""
    order = np.arange(pivots.size)
    for i, k in enumerate(pivots):
        order[[i, k]] = order[[k, i]]
    return order


def _exchanges_by_matrices(order: Any) -> Any:
    """Test oracle: LAPACK's pivots for a matrix with its largest elements at the permutation."""
    return scipy.linalg.lu_factor(np.eye(order.size)[np.argsort(order)])[1]


def _order_by_matrices(pivots: Any) -> Any:
    m = np.eye(len(pivots))
    for i, k in enumerate(pivots):
        swap = np.eye(len(pivots))
        swap[[i, k]] = swap[[k, i]]
        m = swap @ m
    return np.argmax(m, axis=1)


@exchanges.examples
def _(rng):
    yield (np.array([2, 0, 1]),), {}


@order_of.examples
def _(rng):
    yield (np.array([1, 2, 2]),), {}


@counterpart(scipy.linalg.lu_solve)
def lu_solve(
    lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The x with ``op(a) @ x = b`` from the result of `lu_factor`, as ``scipy.linalg.lu_solve``.

    Parameters
    ----------
    lu_and_piv : tuple
        Differentiable with respect to lu.
    b : array_like of shape (n,) or (..., n, k)
    trans : {0, 1, 2}
        Whether op is the identity, the transpose or the adjoint.
    """
    factors, pivots = lu_and_piv
    factors, b = square(factors, "lu_solve"), floating(b)
    order = order_of(value_of(pivots))
    x = b[..., None] if b.ndim == 1 else b
    if trans == 0:
        x = np.take_along_axis(x, _append_batch_axes(order, x), axis=-2)
        x = solve_triangular(factors, x, lower=True, unit_diagonal=True)
        x = solve_triangular(factors, x)
    else:
        x = solve_triangular(factors, x, trans=trans)
        x = solve_triangular(factors, x, lower=True, unit_diagonal=True, trans=trans)
        x = np.take_along_axis(x, _append_batch_axes(np.argsort(order, axis=-1), x), axis=-2)
    return x[..., 0] if b.ndim == 1 else x


def _append_batch_axes(order: Any, x: Any) -> Any:
    """A row permutation for `x`, which may have more axes."""
    return order.reshape((*((1,) * (x.ndim - 1 - order.ndim)), *order.shape, 1))


# ---- Cholesky ----------------------------------------------------------------------------------


@counterpart(scipy.linalg.cho_factor)
def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """The Cholesky factor for `cho_solve`, as ``scipy.linalg.cho_factor``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
        Hermitian and positive definite.
    lower : bool, default False

    Returns
    -------
    c, lower
        The other triangle of c is zero; SciPy leaves it unchanged.

    Raises
    ------
    MatrixError
        A matrix is not positive definite.
    """
    return cholesky(square(a, "cho_factor"), upper=not lower), bool(lower)


@counterpart(scipy.linalg.cho_solve)
def cho_solve(
    c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The x with ``a @ x = b`` from the result of `cho_factor`, as ``scipy.linalg.cho_solve``.

    Parameters
    ----------
    c_and_lower : tuple
    b : array_like of shape (n,) or (..., n, k)
    """
    c, lower = c_and_lower
    c, b = square(c, "cho_solve"), floating(b)
    first, second = (0, 2) if lower else (2, 0)
    half = solve_triangular(c, b, lower=bool(lower), trans=first)
    return solve_triangular(c, half, lower=bool(lower), trans=second)


# ---- L D adjoint(L) ----------------------------------------------------------------------------


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
    return rows_in_order(x, np.argsort(order, axis=-1)) if trans else x


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
