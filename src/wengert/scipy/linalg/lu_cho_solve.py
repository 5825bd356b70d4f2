"""LU factorization with pivoting, and linear solves with LU and Cholesky factors.

    lu_factors, exchanges, order_of     operations
    lu, lu_factor, lu_solve             LU factorization
    cho_factor, cho_solve               Cholesky factorization

The row permutation is an integer array without derivative; it is discontinuous at ties of pivots.
For F = inv(L) dA inv(U), dL is L times the strictly lower part of F and dU is the rest times U;
the additional rows of L or columns of U of a nonsquare matrix follow from the square part
(S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import value_of
from wengert._engine.ops import casts
from wengert._engine.ops.creation import positions
from wengert._engine.ops.linalg.factorizations import cholesky, solve_triangular, triangle
from wengert._engine.ops.linalg.linear_solve import adjoint, real_dtype

from ..dispatch import counterpart, floating
from .register import entry, square

__all__ = ["lu", "lu_factor", "lu_solve", "cho_factor", "cho_solve"]

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
    t_low, t_up = strict_lower(t[0]), t[1]
    m, n = a.shape[-2:]
    inner = adjoint(low) @ t_low - t_up @ adjoint(up)
    if m >= n:
        head = solve_triangular(low[..., :n, :], triangle(-inner, False), lower=True, trans=2)
        bar = _add_to_first_rows(t_low, head)
        bar = _divide_by_triangle(up, bar, False)
    else:
        right = _divide_by_triangle(up[..., :m], triangle(inner, True, strict=True), False)
        bar = solve_triangular(low, _add_to_first_rows(t_up.mT, right.mT).mT, lower=True, trans=2)
    return (rows_in_order(bar, inverse_order(order)),)


def strict_lower(t: Any) -> Any:
    """The cotangent of L, masked where L is constant."""
    return triangle(t, True, strict=True)


def _add_to_first_rows(x: Any, head: Any) -> Any:
    """`x` with `head` added to its first rows."""
    n = head.shape[-2]
    if x.shape[-2] == n:
        return x + head
    return np.concatenate([x[..., :n, :] + head, x[..., n:, :]], axis=-2)


def rows_in_order(x: Any, order: Any) -> Any:
    """Permute the rows; each matrix of the batch has its own permutation."""
    return np.take_along_axis(x, order[..., None], axis=-2)


def inverse_order(order: Any) -> Any:
    return np.argsort(order, axis=-1)


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
    inverse = inverse_order(order)
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
    return strict_lower(low) + up, exchanges(order)


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
        x = np.take_along_axis(x, _append_batch_axes(inverse_order(order), x), axis=-2)
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
