"""Cholesky, QR, RQ, singular value and polar decompositions; bases of range and null space.

    rq             RQ decomposition
    qr_multiply    product with the factor Q

    cholesky, qr, svd, svdvals, polar, orthogonal_procrustes
    orth, null_space      operations: a basis of the range, and of the null space

Most operations are in _engine/ops/linalg/factorizations.py, _engine/ops/linalg/eigen_svd.py and
_engine/ops/linalg/matrix_functions.py.  A basis of a space is unique up to a rotation within the
space; its derivative is the one without rotation.  So functions of the space, such as the
projector, have the correct derivative, also for equal singular values.  The rank is assumed
constant (G. H. Golub and V. Pereyra, SIAM J. Numer. Anal. 10 (1973), 413-432).

The RQ decomposition is the QR decomposition of the adjoint with rows and columns reversed; the
signs agree with LAPACK's, as the reflections are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.ops.linalg import factorizations
from wengert._engine.ops.linalg.condition import accepted
from wengert._engine.ops.linalg.linear_solve import adjoint, pinv
from wengert._engine.ops.linalg.linear_solve import hermitian as hermitian_part
from wengert._engine.ops.linalg.matrix_functions import nuclear_norm, polar_factor
from wengert.errors import ArgumentError, ShapeError, TraceError, at, user_line
from wengert.numpy import linalg as names

from ..dispatch import counterpart, floating
from .register import entry, square

__all__ = """
    cholesky qr svd svdvals polar orthogonal_procrustes orth null_space qr_multiply rq
""".split()


_FINITE = "Check it for NaN and infinity"


# ---- spaces ------------------------------------------------------------------------------------


def _to_dtype_of(basis: Any, like: Any) -> Any:
    return basis.astype(like.dtype, copy=False)


def _range_by_qr(a: Any, *, rcond: Any = None) -> Any:
    found = scipy.linalg.orth(a, rcond)
    q = scipy.linalg.qr(a, pivoting=True, mode="economic")[0][:, : found.shape[1]]
    return q @ (adjoint(q) @ found)  # the same basis, if both span the range


@entry(_FINITE, "2", oracle=_range_by_qr)
def range_basis(a, *, rcond=None):
    """An orthonormal basis of the range, as many columns as the rank."""
    return _to_dtype_of(scipy.linalg.orth(a, rcond), a)


@range_basis.compose
def _(a, *, rcond=None):
    if is_symbolic(a.shape) or 0 in a.shape or a.dtype.kind not in "fc":
        return NotImplemented
    u, s, _ = np.linalg.svd(a, full_matrices=False)
    return _require_full_rank(u, s, a, rcond)


def _require_full_rank(basis: Any, s: Any, a: Any, rcond: Any) -> Any:
    """The basis; an error at run time if the rank is not full, as a graph assumes."""
    return accepted(basis, s > np.max(s, axis=-1, keepdims=True) * _cutoff(a, rcond))


@range_basis.define_vjp
def _range_basis_vjp(t, out, a, *, rcond=None):
    projected = t - out @ (adjoint(out) @ t)
    return (projected @ adjoint(out) @ adjoint(pinv(a, rtol=_cutoff(a, rcond))),)


@range_basis.define_jvp
def _range_basis_jvp(dots, out, a, *, rcond=None):
    out_dot = dots[0] @ (pinv(a, rtol=_cutoff(a, rcond)) @ out)
    return out_dot - out @ (adjoint(out) @ out_dot)


def _cutoff(a: Any, rcond: Any) -> Any:
    """SciPy's default rcond, from the shape of the matrix; a fixed one for symbolic sizes."""
    size = 100 if is_symbolic(a.shape) else max(a.shape[-2:])
    return float(np.finfo(a.dtype).eps) * size if rcond is None else rcond


def _kernel_by_qr(a: Any, *, rcond: Any = None) -> Any:
    found = scipy.linalg.null_space(a, rcond=rcond)
    q = scipy.linalg.qr(adjoint(a), pivoting=True)[0][:, a.shape[1] - found.shape[1] :]
    return q @ (adjoint(q) @ found)


@entry(_FINITE, "2", oracle=_kernel_by_qr)
def kernel_basis(a, *, rcond=None):
    """An orthonormal basis of the null space."""
    return _to_dtype_of(scipy.linalg.null_space(a, rcond=rcond), a)


@kernel_basis.compose
def _(a, *, rcond=None):
    if is_symbolic(a.shape) or 0 in a.shape or a.dtype.kind not in "fc":
        return NotImplemented
    _, s, vh = np.linalg.svd(a)
    return _require_full_rank(adjoint(vh[..., min(a.shape[-2:]) :, :]), s, a, rcond)


@kernel_basis.define_vjp
def _kernel_basis_vjp(t, out, a, *, rcond=None):
    return (-(adjoint(pinv(a, rtol=_cutoff(a, rcond))) @ t @ adjoint(out)),)


@kernel_basis.define_jvp
def _kernel_basis_jvp(dots, out, a, *, rcond=None):
    return -(pinv(a, rtol=_cutoff(a, rcond)) @ (dots[0] @ out))


def _positive_vector(rng: Any) -> Any:
    """For one column or row: the basis is unique up to a sign, which is locally constant."""
    return 1.0 + rng.uniform(size=3)


@range_basis.examples
def _(rng):
    yield (_positive_vector(rng)[:, None],), {}


@kernel_basis.examples
def _(rng):
    yield (_positive_vector(rng)[None, :2],), {}


def _basis(op: Any, A: Any, rcond: Any, name: str) -> Any:
    a = floating(A)
    if a.ndim != 2 and not is_traced(a):
        ranks = np.linalg.matrix_rank(value_of(a))
        if np.any(ranks != ranks.flat[0]):
            raise ArgumentError(
                f"{name} of matrices of different rank: their bases have different shapes. Call it "
                f"for each matrix{at(user_line())}."
            )
    return op(a) if rcond is None else op(a, rcond=float(rcond))


@counterpart(scipy.linalg.orth)
def orth(A: Any, rcond: Any = None) -> Any:
    """An orthonormal basis of the range, as ``scipy.linalg.orth``.

    Parameters
    ----------
    A : array_like of shape (..., m, n)
    rcond : float, optional
        Singular values below this fraction of the largest are treated as zero.

    Notes
    -----
    The derivative does not rotate the basis within the range and assumes a constant rank. In a
    graph full rank is assumed.
    """
    return _basis(range_basis, A, rcond, "orth")


@counterpart(scipy.linalg.null_space)
def null_space(A: Any, rcond: Any = None, **kwargs: Any) -> Any:
    """An orthonormal basis of the null space, as ``scipy.linalg.null_space``.

    Parameters
    ----------
    A : array_like of shape (..., m, n)
    rcond : float, optional
        Singular values below this fraction of the largest are treated as zero.

    Notes
    -----
    The derivative does not rotate the basis within its space and assumes a constant rank. In a
    graph full rank is assumed.
    """
    return _basis(kernel_basis, A, rcond, "null_space")


# ---- factors -----------------------------------------------------------------------------------


@counterpart(scipy.linalg.cholesky)
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The Cholesky factor of a positive definite matrix, as ``scipy.linalg.cholesky``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
        Hermitian; one triangle is read, and the gradient is Hermitian.
    lower : bool, default False

    Raises
    ------
    MatrixError
        A matrix is not positive definite, or not square.
    """
    return factorizations.cholesky(square(a, "cholesky"), upper=not lower)


@counterpart(scipy.linalg.qr)
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """The QR decomposition, as ``scipy.linalg.qr``.

    Parameters
    ----------
    a : array_like of shape (..., m, n)
    overwrite_a, lwork, check_finite
        Ignored; for compatibility with SciPy.
    mode : {"full", "r", "economic"}
    pivoting : bool, default False
        Also return a permutation of the columns, without derivative, such that the diagonal of R
        is decreasing.

    Notes
    -----
    A derivative requires that the first min(m, n) permuted columns are linearly independent; see
    `wengert.numpy.linalg.qr`.
    """
    a = floating(a)
    modes = {"full": "complete", "r": "r", "economic": "reduced"}
    if mode not in modes:
        raise ArgumentError(
            f"qr of a tensor with mode={mode!r}: the mode must be one of {sorted(modes)}"
            f"{at(user_line())}."
        )
    order: Any = None
    if pivoting:
        if is_traced(a) or a.ndim != 2:
            raise TraceError(
                f"qr with pivoting of shape {a.shape} in a graph or a batch: the permutation "
                f"depends on values. Permute the columns before{at(user_line())}."
            )
        order = scipy.linalg.qr(value_of(a), mode="r", pivoting=True)[1]
        a = a[:, order]
    found = names.qr(a, modes[mode])
    if mode == "r":
        if a.shape[-2] > a.shape[-1]:
            zeros = np.zeros((*a.shape[:-2], a.shape[-2] - a.shape[-1], a.shape[-1]), a.dtype)
            found = np.concatenate([found, zeros], axis=-2)
        return (found,) if order is None else (found, order)
    return tuple(found) if order is None else (*found, order)


@counterpart(scipy.linalg.svd)
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """The singular value decomposition, as ``scipy.linalg.svd``; see `wengert.numpy.linalg.svd`."""
    found = names.svd(floating(a), full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


@counterpart(scipy.linalg.svdvals)
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The singular values, decreasing, as ``scipy.linalg.svdvals``."""
    return names.svdvals(floating(a))


@counterpart(scipy.linalg.polar)
def polar(a: Any, side: str = "right") -> tuple[Any, Any]:
    """The polar decomposition into a unitary and a semidefinite factor, as ``scipy.linalg.polar``.

    Parameters
    ----------
    a : array_like of shape (..., m, n)
    side : {"right", "left"}
        a = u @ p, or a = p @ u.

    Returns
    -------
    u : Tensor of shape (..., m, n)
    p : Tensor of shape (..., n, n) or (..., m, m)

    Raises
    ------
    MatrixError
        A derivative is needed and `a` does not have full rank.

    Notes
    -----
    The derivative solves a Sylvester equation with p, so singular values may be equal.
    """
    if side not in ("right", "left"):
        raise ArgumentError(
            f"polar with side={side!r}: the side must be 'right' or 'left'{at(user_line())}."
        )
    a = floating(a)
    u = polar_factor(a)
    return u, hermitian_part(adjoint(u) @ a if side == "right" else a @ adjoint(u))


@counterpart(scipy.linalg.orthogonal_procrustes)
def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The orthogonal R that minimizes ``|A @ R - B|``, as ``scipy.linalg.orthogonal_procrustes``.

    Parameters
    ----------
    A, B : array_like of shape (m, n)

    Returns
    -------
    R : Tensor of shape (n, n)
    scale : Tensor
        The sum of the singular values of ``adjoint(A) @ B``.

    Raises
    ------
    MatrixError
        A derivative of R is needed and ``adjoint(A) @ B`` is singular.
    """
    product = adjoint(floating(A)) @ floating(B)
    return polar_factor(product), nuclear_norm(product)


@counterpart(scipy.linalg.rq)
def rq(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    check_finite: bool = True,
) -> Any:
    """The RQ decomposition, as ``scipy.linalg.rq``.

    Parameters
    ----------
    a : array_like of shape (..., m, n)
    overwrite_a, lwork, check_finite
        Ignored; for compatibility with SciPy.
    mode : {"full", "r", "economic"}

    Returns
    -------
    R : Tensor of shape (..., m, n), or (..., m, k) with "economic", k = min(m, n)
    Q : Tensor of shape (..., n, n) or (..., k, n); not with "r"

    Raises
    ------
    MatrixError
        A derivative is needed and the last min(m, n) rows are linearly dependent.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> a = np.array([[2.0, 1.0], [0.0, 3.0]])
    >>> wg.grad(lambda a: abs(wg.scipy.linalg.rq(a)[0][1, 1]))(a)
    array([[0., 0.],
           [0., 1.]])
    """
    modes = {"full": "complete", "r": "complete", "economic": "reduced"}
    if mode not in modes:
        raise ArgumentError(
            f"rq of a tensor with mode={mode!r}: the mode must be one of {sorted(modes)}"
            f"{at(user_line())}."
        )
    reversed_adjoint = adjoint(floating(a)[..., ::-1, ::-1])
    q, r = names.qr(reversed_adjoint, modes[mode])
    r = adjoint(r)[..., ::-1, ::-1]
    return r if mode == "r" else (r, adjoint(q)[..., ::-1, ::-1])


@counterpart(scipy.linalg.qr_multiply)
def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """The product of a matrix with Q of `a`, and R, as ``scipy.linalg.qr_multiply``.

    Parameters
    ----------
    a : array_like of shape (m, n)
    c : array_like
        A vector or a matrix of matching shape.
    mode : {"right", "left"}
        ``c @ Q``, or ``Q @ c``.
    pivoting : bool, default False
        As for `qr`.
    conjugate : bool, default False
        Whether to multiply with the conjugate of Q.
    overwrite_a, overwrite_c
        Ignored; for compatibility with SciPy.
    """
    if mode not in ("left", "right"):
        raise ArgumentError(
            f"qr_multiply with mode={mode!r}: the mode must be 'left' or 'right'{at(user_line())}."
        )
    c = floating(c)
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    q = np.conjugate(q) if conjugate and q.dtype.kind == "c" else q
    if c.shape[0 if mode == "left" or c.ndim == 1 else 1] != q.shape[1 if mode == "left" else 0]:
        raise ShapeError(
            f"qr_multiply of shapes {np.shape(a)} and {c.shape}: c cannot be multiplied by Q of "
            f"shape {q.shape} from the {mode}{at(user_line())}."
        )
    return (q @ c if mode == "left" else c @ q), *rest
