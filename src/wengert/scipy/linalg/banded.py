"""Banded linear systems, at a cost proportional to the bandwidth squared.

    banded_solve, definite_banded_solve     operations
    solve_banded, solveh_banded             SciPy's names
    cholesky_banded, cho_solve_banded
    banded_product                          a matrix in banded form times vectors

Element (i, j) of a matrix with `below` and `above` diagonals is at row ``above + i - j`` and column
j of its banded form, as in LAPACK.  One half of a Hermitian matrix is stored.  Gradients are with
respect to the stored elements; the corners of the form, outside of the matrix, have gradient zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.ops.linalg.linear_solve import adjoint
from wengert._engine.tensor.numpy_dispatch import spread

from ...errors import ShapeError, at, user_line
from ..dispatch import counterpart, floating
from .register import entry

__all__ = ["solve_banded", "solveh_banded", "cholesky_banded", "cho_solve_banded"]

REGULAR = "Use lstsq if the matrix may be singular"


def shift(x: Any, by: int) -> Any:
    """Shift by a number of elements along the last axis, filling with zeros."""
    n = x.shape[-1]
    if by == 0:
        return x
    zeros = spread(np.zeros((), x.dtype), (*x.shape[:-1], abs(by)))
    if by > 0:
        return np.concatenate([zeros, x], axis=-1)[..., :n]
    return np.concatenate([x, zeros], axis=-1)[..., -by:]


def banded_adjoint(ab: Any, below: int, above: int) -> Any:
    """The banded form of the adjoint, which has `above` diagonals below."""
    rows = [shift(ab[..., below + above - r, :], below - r) for r in range(below + above + 1)]
    out = np.stack(rows, axis=-2)
    return np.conjugate(out) if out.dtype.kind == "c" else out


def banded_product(ab: Any, x: Any, below: int, above: int) -> Any:
    """The matrix times the columns of `x`."""
    columns = x.mT
    total: Any = 0.0
    for r in range(below + above + 1):
        total = total + shift(ab[..., r, None, :] * columns, r - above)
    return total.mT


def band_of_product(x: Any, y: Any, below: int, above: int) -> Any:
    """The band of ``x @ adjoint(y)``, in banded form."""
    x, y = x.mT, y.mT
    y = np.conjugate(y) if y.dtype.kind == "c" else y
    rows = [np.sum(shift(x, above - r) * y, axis=-2) for r in range(below + above + 1)]
    return np.stack(rows, axis=-2)


def to_dense(ab: Any, below: int, above: int) -> Any:
    """The full matrix, for oracles."""
    n = ab.shape[-1]
    out = np.zeros((*ab.shape[:-2], n, n), ab.dtype)
    for i in range(n):
        for j in range(max(0, i - below), min(n, i + above + 1)):
            out[..., i, j] = ab[..., above + i - j, j]
    return out


# ---- general bands -----------------------------------------------------------------------------


@entry(
    REGULAR,
    "22",
    like=1,
    oracle=lambda ab, b, below, above, **how: np.linalg.solve(to_dense(ab, below, above), b),
)
def banded_solve(ab, b, *, below, above, or_nan=False):
    """x with a @ x = b, a in banded form; `or_nan`: NaN for a singular matrix."""
    try:
        return scipy.linalg.solve_banded((below, above), ab, b)
    except np.linalg.LinAlgError:
        if not or_nan:
            raise
        return np.full(b.shape, np.nan, np.result_type(ab, b))


@banded_solve.define_vjp
def _banded_solve_vjp(t, out, ab, b, *, below, above, **how):
    z = banded_solve(banded_adjoint(ab, below, above), t, below=above, above=below, **how)
    return -band_of_product(z, out, below, above), z


@banded_solve.define_jvp
def _banded_solve_jvp(dots, out, ab, b, *, below, above, **how):
    ab_dot, right = dots
    if ab_dot is not None:
        product = banded_product(ab_dot, out, below, above)
        right = -product if right is None else right - product
    return banded_solve(ab, right, below=below, above=above, **how)


@banded_solve.examples
def _(rng):
    ab = rng.normal(size=(3, 4)) + np.array([[0.0], [6.0], [0.0]])
    yield (ab, rng.normal(size=(4, 2))), {"below": 1, "above": 1}
    yield (ab, rng.normal(size=(4, 1))), {"below": 1, "above": 1, "or_nan": True}
    ab = rng.normal(size=(2, 3, 3)) + np.array([[6.0], [0.0], [0.0]])
    yield (ab, rng.normal(size=(3, 1))), {"below": 2, "above": 0}


# ---- Hermitian bands ---------------------------------------------------------------------------


def _gradient_of_half(band: Any, lower: bool) -> Any:
    """The gradient with respect to the stored half, from that of the full band."""
    width = band.shape[-2] // 2
    other = banded_adjoint(band, width, width)
    total = band + other
    main = band[..., width : width + 1, :]
    main = np.real(main) + 0.0 * main if band.dtype.kind == "c" else main
    if lower:
        return np.concatenate([main, total[..., width + 1 :, :]], axis=-2)
    return np.concatenate([total[..., :width, :], main], axis=-2)


def full_band(ab: Any, lower: bool) -> Any:
    """The full band of a Hermitian matrix, from the stored half."""
    width = ab.shape[-2] - 1
    below, above = (width, 0) if lower else (0, width)
    other = banded_adjoint(ab, below, above)
    main = ab[..., :1, :] if lower else ab[..., width:, :]
    main = np.real(main) + 0.0 * main if ab.dtype.kind == "c" else main
    if lower:
        return np.concatenate([other[..., :width, :], main, ab[..., 1:, :]], axis=-2)
    return np.concatenate([ab[..., :width, :], main, other[..., 1:, :]], axis=-2)


def _hermitian_to_dense(ab: Any, lower: bool) -> Any:
    """The full matrix, for oracles."""
    width = ab.shape[-2] - 1
    half = to_dense(ab, width, 0) if lower else to_dense(ab, 0, width)
    return half + np.conj(half.mT) - half * np.eye(ab.shape[-1])


@entry(
    "Use solve_banded if it may not be positive definite",
    "22",
    like=1,
    prepare=lambda ab, b: (0.1 * ab + np.array([[2.0], [0.0]]), b),
    oracle=lambda ab, b, lower: np.linalg.solve(_hermitian_to_dense(ab, lower), b),
)
def definite_banded_solve(ab, b, *, lower):
    """x with a @ x = b, a positive definite and one half of it in banded form."""
    return scipy.linalg.solveh_banded(ab, b, lower=lower)


@definite_banded_solve.define_vjp
def _definite_banded_solve_vjp(t, out, ab, b, *, lower):
    z = definite_banded_solve(ab, t, lower=lower)
    width = ab.shape[-2] - 1
    return _gradient_of_half(-band_of_product(z, out, width, width), lower), z


@definite_banded_solve.define_jvp
def _definite_banded_solve_jvp(dots, out, ab, b, *, lower):
    ab_dot, right = dots
    if ab_dot is not None:
        width = ab.shape[-2] - 1
        product = banded_product(full_band(ab_dot, lower), out, width, width)
        right = -product if right is None else right - product
    return definite_banded_solve(ab, right, lower=lower)


@definite_banded_solve.examples
def _(rng):
    ab = rng.normal(size=(2, 4)) + np.array([[6.0], [0.0]])
    yield (ab, rng.normal(size=(4, 2))), {"lower": True}


# ---- SciPy's names -----------------------------------------------------------------------------


@counterpart(scipy.linalg.solve_banded)
def solve_banded(l_and_u: Any, ab: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """The solution x of ``a @ x = b``, a banded, as ``scipy.linalg.solve_banded``.

    Parameters
    ----------
    l_and_u : tuple of two ints
        The number of diagonals below and above the main one.
    ab : array_like of shape (..., l + u + 1, n)
    b : array_like of shape (n,) or (..., n, k)

    Raises
    ------
    MatrixError
        The matrix is singular.

    Notes
    -----
    Cost of value and gradient: n (l + u)**2.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> ab = np.array([[0.0, 1, 1], [4, 4, 4], [1, 1, 0]])
    >>> f = lambda b: wg.scipy.linalg.solve_banded((1, 1), ab, b)[0]
    >>> wg.grad(f)(np.ones(3)).round(4)
    array([ 0.2679, -0.0714,  0.0179])
    """
    below, above = (int(k) for k in l_and_u)
    ab, b = floating(ab), floating(b)
    if ab.shape[-2] != below + above + 1:
        raise ShapeError(
            f"solve_banded with ab of shape {ab.shape}: for {below} diagonals below and {above} "
            f"above, ab must have {below + above + 1} rows{at(user_line())}."
        )
    x = b[..., None] if b.ndim == 1 else b
    x = banded_solve(ab, x, below=below, above=above)
    return x[..., 0] if b.ndim == 1 else x


@counterpart(scipy.linalg.solveh_banded)
def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Any:
    """The solution of ``a @ x = b``, a Hermitian and banded, as ``scipy.linalg.solveh_banded``.

    Parameters
    ----------
    ab : array_like of shape (..., u + 1, n)
        One half of the band. The gradient is with respect to the stored elements.
    b : array_like of shape (n,) or (..., n, k)
    lower : bool, default False
        Whether it is the lower half.

    Raises
    ------
    MatrixError
        The matrix is not positive definite.
    """
    ab, b = floating(ab), floating(b)
    x = b[..., None] if b.ndim == 1 else b
    x = definite_banded_solve(ab, x, lower=bool(lower))
    return x[..., 0] if b.ndim == 1 else x


def _band_of_triangle(c: Any, lower: bool, width: int) -> Any:
    """The banded form of a triangle."""
    n = c.shape[-1]
    rows = []
    for r in range(width + 1):
        k = r if lower else width - r
        diagonal = np.diagonal(c, -k if lower else k, -2, -1)
        zeros = np.zeros((*c.shape[:-2], n - diagonal.shape[-1]), c.dtype)
        rows.append(np.concatenate([diagonal, zeros] if lower else [zeros, diagonal], axis=-1))
    return np.stack(rows, axis=-2)


def triangle_of_band(ab: Any, lower: bool) -> Any:
    """The full triangle of a banded form."""
    n, width = ab.shape[-1], ab.shape[-2] - 1
    rows, columns = np.arange(n)[:, None], np.arange(n)
    depth = rows - columns if lower else width + rows - columns
    inside = (depth >= 0) & (depth <= width) & ((rows >= columns) if lower else (rows <= columns))
    return np.where(
        inside, ab[..., np.where(inside, depth, 0), np.broadcast_to(columns, (n, n))], 0.0
    )


@counterpart(scipy.linalg.cholesky_banded)
def cholesky_banded(
    ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True
) -> Any:
    """The Cholesky factor of a banded matrix, as ``scipy.linalg.cholesky_banded``.

    Parameters
    ----------
    ab : array_like of shape (u + 1, n)
        One half of the band. The gradient is with respect to the stored elements.
    lower : bool, default False
        Whether it is the lower half.

    Raises
    ------
    MatrixError
        The matrix is not positive definite.

    Notes
    -----
    For tensors, the full matrix is used: n**3.
    """
    ab = floating(ab)
    half = triangle_of_band(ab, lower)
    diagonal = half * np.eye(ab.shape[-1])
    full = half + adjoint(half) - diagonal
    return _band_of_triangle(np.linalg.cholesky(full, upper=not lower), lower, ab.shape[-2] - 1)


@counterpart(scipy.linalg.cho_solve_banded)
def cho_solve_banded(cb_and_lower: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """The x with ``a @ x = b`` from `cholesky_banded`, as ``scipy.linalg.cho_solve_banded``.

    Parameters
    ----------
    cb_and_lower : tuple
        The factor in banded form, and whether it is the lower one.
    b : array_like of shape (n,) or (n, k)
    """
    c, lower = floating(cb_and_lower[0]), bool(cb_and_lower[1])
    width = c.shape[-2] - 1
    below, above = (width, 0) if lower else (0, width)
    factor_adjoint = banded_adjoint(c, below, above)
    if lower:
        return solve_banded((0, width), factor_adjoint, solve_banded((width, 0), c, b))
    return solve_banded((0, width), c, solve_banded((width, 0), factor_adjoint, b))
