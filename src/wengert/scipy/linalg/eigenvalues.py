"""Eigenvalues and eigenvectors: general, Hermitian, generalized, tridiagonal and banded problems.

    left_eig                                        operation
    eig, eigvals                                    general matrices, also generalized problems
    eigh, eigvalsh                                  Hermitian matrices, also generalized problems
    eigh_tridiagonal, eigvalsh_tridiagonal, eig_banded, eigvals_banded

A generalized problem is reduced to a standard one by inv(b) @ a, or by the Cholesky factor of a
definite b, so derivatives of every order exist.  For equal eigenvalues see docs/conventions.md, 9.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.op_facts import BY_SCIPY, facts
from wengert._engine.ops.linalg import eigen_svd
from wengert._engine.ops.linalg.factorizations import cholesky, solve_triangular
from wengert._engine.ops.linalg.linear_solve import adjoint, hermitian, solve
from wengert.errors import ArgumentError, TraceError, at, user_line

from ..dispatch import counterpart, floating
from .banded import triangle_of_band
from .register import entry, square

__all__ = [
    "eig", "eig_banded", "eigh", "eigh_tridiagonal", "eigvals", "eigvals_banded", "eigvalsh",
    "eigvalsh_tridiagonal",
]  # fmt: skip


# ---- any square matrix -------------------------------------------------------------------------


def _left_oracle(a: Any) -> Any:
    """Test oracle: from the inverse of the right eigenvectors, with the same phases."""
    w, v = np.linalg.eig(a)
    left = adjoint(np.linalg.inv(v))
    left = left / np.linalg.norm(left, axis=-2, keepdims=True)
    largest = np.take_along_axis(left, np.argmax(np.abs(left), axis=-2)[..., None, :], -2)
    left = left * np.conj(largest) / np.abs(largest)
    expected = scipy.linalg.eig(a, left=True, right=False)[1]  # LAPACK determines their signs
    sign = np.sign(np.sum((np.conj(expected) * left).real, axis=-2, keepdims=True))
    return w.astype(complex), left * sign


@facts(host_callback=BY_SCIPY)
@entry("Check it for NaN and infinity", "2", oracle=_left_oracle)
def left_eig(a):
    """Eigenvalues and left eigenvectors of length one, adjoint(v) @ a = w * adjoint(v)."""
    if not a.size:
        empty = np.result_type(a, np.complex64)
        return np.zeros(a.shape[-1:], empty), np.zeros(a.shape, empty)
    w, v = scipy.linalg.eig(a, left=True, right=False)
    dtype = np.result_type(w.dtype, np.complex64)
    return w.astype(dtype), v.astype(dtype)


@left_eig.define_vjp
def _left_eig_vjp(t, out, a):
    w, v = out
    of_adjoint = (np.conjugate(t[0]), t[1])
    (bar,) = eigen_svd.eig.vjp_rule(of_adjoint, (np.conjugate(w), v), adjoint(a))
    return (adjoint(bar),)


@left_eig.define_jvp
def _left_eig_jvp(dots, out, a):
    w, v = out
    w_dot, v_dot = eigen_svd.eig.jvp_rule((adjoint(dots[0]),), (np.conjugate(w), v), adjoint(a))
    return np.conjugate(w_dot), v_dot


@left_eig.examples
def _(rng):  # a fixed matrix, near which LAPACK's signs are constant
    yield (np.array([[1.0, 0.3, -0.2], [0.1, 2.0, 0.4], [0.2, -0.3, 4.0]]),), {}


def _to_standard_problem(a: Any, b: Any, name: str) -> Any:
    a = square(a, name)
    return a if b is None else solve(square(b, name), a)


def _real_if_real(w: Any, v: Any, a: Any) -> Any:
    """Eigenvectors, real where SciPy's are; always complex in a graph."""
    if is_traced(v) or a.dtype.kind == "c" or np.any(value_of(w).imag != 0):
        return v
    return np.real(v)


@counterpart(scipy.linalg.eig)
def eig(
    a: Any,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues and eigenvectors of a square matrix, as ``scipy.linalg.eig``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
    b : array_like of shape (..., n, n), optional
        Nonsingular; for ``a @ v = w * (b @ v)``.
    left, right : bool
        Which eigenvectors to return, left ones first. Left ones with `b` are supported for plain
        arrays only.
    overwrite_a, overwrite_b, check_finite : bool
        Ignored; for compatibility with SciPy.
    homogeneous_eigvals : bool
        For plain arrays only.

    Returns
    -------
    w : Tensor of shape (..., n)
        Complex.
    vl, vr : Tensor of shape (..., n, n)
        Normalized, with a real largest component. Complex in a graph.

    Notes
    -----
    Equal eigenvalues: docs/conventions.md, 9.
    """
    if homogeneous_eigvals or (left and b is not None):
        raise ArgumentError(
            "eig of tensors does not support homogeneous_eigvals, or left eigenvectors with b. "
            f"Solve the adjoint problem for left eigenvectors{at(user_line())}."
        )
    m = _to_standard_problem(a, b, "eig")
    w, v = eigen_svd.eig(m)
    results = [w]
    if left:
        results.append(_real_if_real(w, left_eig(m)[1], m))
    if right:
        results.append(_real_if_real(w, v, m))
    return tuple(results) if len(results) > 1 else w


@counterpart(scipy.linalg.eigvals)
def eigvals(a: Any, b: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The eigenvalues of a square matrix, complex, as ``scipy.linalg.eigvals``; see `eig`."""
    return eigen_svd.eig(_to_standard_problem(a, b, "eigvals"))[0]


# ---- Hermitian matrices ------------------------------------------------------------------------


def _subset(w: Any, v: Any, by_index: Any, by_value: Any) -> Any:
    if by_index is not None:
        low, high = by_index
        return w[..., low : high + 1], v[..., low : high + 1]
    if by_value is not None:
        if is_traced(w) or w.ndim != 1:
            raise TraceError(
                "eigh with subset_by_value in a graph or a batch: the number of eigenvalues "
                f"depends on values. Use subset_by_index{at(user_line())}."
            )
        low, high = by_value
        indices = np.flatnonzero((value_of(w) > low) & (value_of(w) <= high))
        return w[indices], v[:, indices]
    return w, v


@counterpart(scipy.linalg.eigh)
def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Any:
    """Eigenvalues, increasing, and eigenvectors of Hermitian matrices, as ``scipy.linalg.eigh``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
        Hermitian, and so is its gradient.
    b : array_like of shape (..., n, n), optional
        Hermitian and positive definite.
    lower : bool, default True
        Which triangle is read if b is not given; with b the Hermitian parts are used.
    eigvals_only : bool, default False
    type : {1, 2, 3}
        ``a @ v = w * (b @ v)``, ``a @ b @ v = w * v`` or ``b @ a @ v = w * v``.
    subset_by_index, subset_by_value : tuple of two, optional
        Return only the eigenvalues in this range.
    overwrite_a, overwrite_b, check_finite, driver
        Ignored; eigenvectors of another driver may have another sign.

    Returns
    -------
    w : Tensor of shape (..., n)
    v : Tensor of shape (..., n, n)
        Normalized: ``adjoint(v) @ b @ v``, or ``adjoint(v) @ inv(b) @ v`` for type 3, is the
        identity.

    Raises
    ------
    MatrixError
        `b` is not positive definite.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> a, b = np.diag([2.0, 3.0]), np.eye(2)
    >>> wg.grad(lambda b: wg.scipy.linalg.eigh(a, b, eigvals_only=True).sum())(b)
    array([[-2.,  0.],
           [ 0., -3.]])
    """
    a = square(a, "eigh")
    if type not in (1, 2, 3):
        raise ArgumentError(
            f"eigh with type={type!r}: the type must be 1, 2 or 3{at(user_line())}."
        )
    if b is None:
        w, v = eigen_svd.eigh(a, lower=bool(lower))
    else:
        low = cholesky(hermitian(square(b, "eigh")))
        if type == 1:
            half = solve_triangular(low, hermitian(a), lower=True)
            inner = solve_triangular(low, adjoint(half), lower=True)
        else:
            inner = adjoint(low) @ hermitian(a) @ low
        w, y = eigen_svd.eigh(hermitian(inner))
        v = low @ y if type == 3 else solve_triangular(low, y, lower=True, trans=2)
    w, v = _subset(w, v, subset_by_index, subset_by_value)
    return w if eigvals_only else (w, v)


@counterpart(scipy.linalg.eigvalsh)
def eigvalsh(a: Any, b: Any = None, **options: Any) -> Any:
    """The eigenvalues of Hermitian matrices, increasing, as ``scipy.linalg.eigvalsh``."""
    return eigh(a, b, **options, eigvals_only=True)


# ---- bands -------------------------------------------------------------------------------------


def _tridiagonal(d: Any, e: Any) -> Any:
    d, e = floating(d), floating(e)
    n = d.shape[-1]
    identity = np.eye(n, dtype=d.dtype)
    if n == 1:
        return d[..., None]
    padded = np.concatenate([e, np.zeros((*e.shape[:-1], 1), e.dtype)], axis=-1)
    below = padded[..., None, :] * np.eye(n, k=-1)
    return d[..., None] * identity + below + below.mT


def _select(eigenpairs: Any, select: str, select_range: Any, eigvals_only: bool) -> Any:
    w, v = eigenpairs
    if select in ("i", 1, "index"):
        w, v = _subset(w, v, select_range, None)
    elif select in ("v", 2, "value"):
        w, v = _subset(w, v, None, select_range)
    return w if eigvals_only else (w, v)


@counterpart(scipy.linalg.eigh_tridiagonal)
def eigh_tridiagonal(
    d: Any,
    e: Any,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Any = None,
    **kwargs: Any,
) -> Any:
    """Eigenvalues and eigenvectors of a tridiagonal matrix, as ``scipy.linalg.eigh_tridiagonal``.

    Parameters
    ----------
    d : array_like of shape (..., n)
        The diagonal.
    e : array_like of shape (..., n - 1)
        The off-diagonal.
    eigvals_only : bool, default False
    select : {"a", "v", "i"}
    select_range : tuple of two, optional

    Notes
    -----
    For tensors, the full matrix is used: n**3.
    """
    return _select(eigen_svd.eigh(_tridiagonal(d, e)), select, select_range, eigvals_only)


@counterpart(scipy.linalg.eigvalsh_tridiagonal)
def eigvalsh_tridiagonal(
    d: Any, e: Any, select: str = "a", select_range: Any = None, **kw: Any
) -> Any:
    """The eigenvalues of a tridiagonal matrix, as ``scipy.linalg.eigvalsh_tridiagonal``."""
    return eigh_tridiagonal(d, e, True, select, select_range)


@counterpart(scipy.linalg.eig_banded)
def eig_banded(
    a_band: Any,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: str = "a",
    select_range: Any = None,
    **kwargs: Any,
) -> Any:
    """Eigenvalues and eigenvectors of a banded matrix, as ``scipy.linalg.eig_banded``.

    Parameters
    ----------
    a_band : array_like of shape (u + 1, n)
        One half of the band; the gradient is with respect to the stored elements.
    lower : bool, default False
        Whether it is the lower half.

    Notes
    -----
    For tensors, the full matrix is used: n**3.
    """
    half = triangle_of_band(floating(a_band), lower)
    full = half + adjoint(half) - half * np.eye(half.shape[-1])
    return _select(eigen_svd.eigh(full), select, select_range, eigvals_only)


@counterpart(scipy.linalg.eigvals_banded)
def eigvals_banded(a_band: Any, lower: bool = False, *args: Any, **kwargs: Any) -> Any:
    """The eigenvalues of a Hermitian banded matrix, as ``scipy.linalg.eigvals_banded``."""
    select, select_range = kwargs.get("select", "a"), kwargs.get("select_range")
    return eig_banded(a_band, lower, True, False, select, select_range)
