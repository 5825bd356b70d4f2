"""Decompositions of matrices, linear systems and inverses.

Each decomposition is an operation of _engine/ops/linalg/factorizations.py or
_engine/ops/linalg/eigen_svd.py.  Derivatives of factors that are not unique are described there,
and in the notes below.

The others are operations of _engine/ops/linalg/linear_solve.py, with NumPy's arguments, or
(lstsq, tensorsolve, tensorinv) composed of them.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.ops import shapes
from wengert._engine.ops.linalg import determinants, eigen_svd, factorizations, linear_solve
from wengert._engine.ops.linalg.linear_solve import adjoint
from wengert._engine.ops.linalg.results import (
    EighResult,
    EigResult,
    QRResult,
    SlogdetResult,
    SVDResult,
)
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart, spread
from wengert.errors import ArgumentError, MatrixError, ShapeError, at, user_line


@counterpart(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The Cholesky factor of a positive definite matrix, as ``numpy.linalg.cholesky``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
        Hermitian; one triangle is read.
    upper : bool, default False

    Raises
    ------
    MatrixError
        A matrix is not positive definite, or not square.

    Notes
    -----
    The gradient is that of the function of (a + adjoint(a)) / 2, so it is Hermitian.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda a: np.linalg.cholesky(a)[1, 1])(np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[ 0.0625, -0.125 ],
           [-0.125 ,  0.25  ]])
    """
    return factorizations.cholesky(as_array(a), upper=bool(upper))


@counterpart(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """The QR decomposition, as ``numpy.linalg.qr``.

    Parameters
    ----------
    a : array_like of shape (..., m, n)
    mode : {"reduced", "complete", "r"}
        "raw" is for plain arrays only.

    Notes
    -----
    A derivative requires that the first min(m, n) columns are linearly independent. The columns
    that complete Q stay orthonormal to the others, to every order, and are otherwise constant.
    """
    a = as_array(a)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(
            f"qr of a tensor with mode={mode!r}: expected 'reduced', 'complete' or 'r'"
            f"{at(user_line())}."
        )
    m, n = a.shape[-2:]
    if m < n:
        q, first = factorizations.qr(a[..., :m])
        r = np.concatenate([first, adjoint(q) @ a[..., m:]], axis=-1)
    else:
        q, r = factorizations.qr(a)
    if mode == "r":
        return r
    if mode == "complete" and m > n:
        q = np.concatenate([q, _completion(q, a)], axis=-1)
        below = spread(np.zeros((), r.dtype), (*a.shape[:-2], m - n, n))
        r = np.concatenate([r, below], axis=-2)
    return QRResult(q, r)


def _completion(q: Any, a: Any) -> Any:
    """LAPACK's complementary columns, whose derivative keeps them orthonormal to q."""
    columns = factorizations.completing_columns(value_of(a))
    rest = columns - q @ (adjoint(q) @ columns)
    low = factorizations.cholesky(adjoint(rest) @ rest)
    return adjoint(factorizations.solve_triangular(low, adjoint(rest), lower=True))


# ---- eigenvalues -------------------------------------------------------------------------------


@counterpart(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues, increasing, and eigenvectors of a Hermitian matrix, as ``numpy.linalg.eigh``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
    UPLO : {"L", "U"}
        Which triangle is read.

    Notes
    -----
    The gradient is that of a function of (a + adjoint(a)) / 2. Eigenvectors of equal eigenvalues
    have no derivative: it is NaN where it is needed. Complex eigenvectors are determined up to
    a phase; a function of them has a derivative if it does not depend on the phase.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda a: np.linalg.eigh(a).eigenvalues[1])(np.diag([1.0, 3.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    side = UPLO.upper()
    if side not in ("L", "U"):
        raise ArgumentError(f"eigh(UPLO={UPLO!r}): expected 'L' or 'U'{at(user_line())}.")
    return EighResult(*eigen_svd.eigh(as_array(a), lower=side == "L"))


@counterpart(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of a Hermitian matrix, increasing, as ``numpy.linalg.eigvalsh``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
    UPLO : {"L", "U"}
    """
    return eigh(a, UPLO).eigenvalues


@counterpart(np.linalg.eig)
def eig(a: Any) -> EigResult:
    """Eigenvalues and eigenvectors of a square matrix, as ``numpy.linalg.eig``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)

    Returns
    -------
    EigResult
        Complex; with NumPy 2.4 and older real if `a` is and all eigenvalues are, except in a graph,
        where the dtype cannot depend on values.

    Notes
    -----
    The derivative keeps LAPACK's normalization: unit norm, and a real largest component.
    """
    return _eig(a, _REAL)


# Until NumPy 2.4 eigenvalues of a real matrix are real if all of them are.
_REAL = np.linalg.eigvals(np.eye(1)).dtype.kind == "f"


def _eig(a: Any, real: bool) -> EigResult:
    a = as_array(a)
    w, v = eigen_svd.eig(a)
    if real and not is_traced(w) and a.dtype.kind != "c" and np.all(value_of(w).imag == 0):
        w, v = np.real(w), np.real(v)
    return EigResult(w, v)


def roots_of_companion(a: Any) -> Any:
    """The eigenvalues of a companion matrix: real if it is and all are, as in `numpy.roots`."""
    return _eig(a, True).eigenvalues


@counterpart(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """The eigenvalues of a square matrix, as ``numpy.linalg.eigvals``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
    """
    return eig(a).eigenvalues


# ---- singular values ---------------------------------------------------------------------------


@counterpart(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """The singular value decomposition, as ``numpy.linalg.svd``.

    Parameters
    ----------
    a : array_like of shape (..., m, n)
    full_matrices : bool, default True
        Complete the bases of a matrix that is not square.
    compute_uv : bool, default True
        False for the singular values alone.
    hermitian : bool
        Ignored; for compatibility with NumPy.

    Notes
    -----
    Singular vectors of equal singular values have no derivative: it is NaN where it is needed.
    Their signs or phases, and the vectors that complete a basis, are arbitrary; derivatives are
    correct for functions that do not depend on them.
    """
    a = as_array(a)
    square = a.shape[-1] == a.shape[-2]
    parts = eigen_svd.svd(a, full_matrices=bool(full_matrices and compute_uv and not square))
    return SVDResult(*parts) if compute_uv else parts[1]


@counterpart(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    """The singular values, decreasing, as ``numpy.linalg.svdvals``.

    Parameters
    ----------
    x : array_like of shape (..., m, n)
    """
    return svd(x, compute_uv=False)


# ---- linear systems ----------------------------------------------------------------------------


@counterpart(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """The solution x of ``a @ x = b``, as ``numpy.linalg.solve``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)
    b : array_like of shape (n,) or (..., n, k)
        A vector if it has one axis; else matrices, whose batch axes broadcast.

    Raises
    ------
    MatrixError
        A matrix is singular, or not square.

    Notes
    -----
    The gradient costs one more factorization, of the transpose.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> a, b = np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 9.0])
    >>> wg.grad(lambda b: np.sum(np.linalg.solve(a, b)))(b)
    array([0.375, 0.25 ])
    """
    return linear_solve.solve(as_array(a), as_array(b))


@counterpart(np.linalg.inv)
def inv(a: Any) -> Any:
    """The inverse, as ``numpy.linalg.inv``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)

    Raises
    ------
    MatrixError
        A matrix is singular, or not square.
    """
    return linear_solve.inv(as_array(a))


@counterpart(np.linalg.det)
def det(a: Any) -> Any:
    """The determinant, as ``numpy.linalg.det``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)

    Notes
    -----
    The derivative is the cofactor matrix, also for singular matrices, to every order.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.linalg.det)(np.array([[1.0, 2.0], [2.0, 4.0]])).round(12)
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    return determinants.det(as_array(a))


@counterpart(np.linalg.slogdet)
def slogdet(a: Any) -> SlogdetResult:
    """Sign and logarithm of the determinant, as ``numpy.linalg.slogdet``.

    Parameters
    ----------
    a : array_like of shape (..., n, n)

    Returns
    -------
    SlogdetResult
        ``sign`` and ``logabsdet``; an error is raised if the derivative at a singular matrix is
        needed.
    """
    return SlogdetResult(*determinants.slogdet(as_array(a)))


@counterpart(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = "default") -> Any:
    """The pseudoinverse, as ``numpy.linalg.pinv``.

    Parameters
    ----------
    a : array_like of shape (..., m, n)
    rcond, rtol : float or array of float, optional
        Singular values below this part of the largest count as zero.
    hermitian : bool

    Notes
    -----
    The derivative is the one on the manifold of matrices of the same rank; the pseudoinverse is
    discontinuous where the rank changes.
    """
    a = as_array(a)
    if rcond is None and rtol is None:
        rcond = max(a.shape[-2:]) * np.finfo(a.dtype).eps
    elif rcond is None and not isinstance(rtol, str):
        rcond = rtol
    return linear_solve.pinv(a, rtol=rcond, hermitian=hermitian)


@counterpart(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Any, Any, Any, Any]:
    """The least-squares solution of ``a @ x = b``, as ``numpy.linalg.lstsq``.

    Parameters
    ----------
    a : array_like of shape (m, n)
    b : array_like of shape (m,) or (m, k)
    rcond : float, optional
        Singular values below this part of the largest count as zero.

    Returns
    -------
    x : Tensor
        The solution of minimum norm.
    residuals : Tensor
        The sum of squared residuals for each column of b; empty if the rank is not n, or m <= n.
    rank : int
    s : Tensor
        The singular values of `a`.
    """
    a, b = as_array(a), as_array(b)
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise MatrixError(
            f"lstsq of shapes {a.shape} and {b.shape}: a must be a matrix, and b a vector or "
            f"matrix with the same number of rows{at(user_line())}."
        )
    m, n = a.shape
    eps = float(np.finfo(a.dtype if a.dtype.kind in "fc" else float).eps)
    cutoff = eps * max(m, n) if rcond is None else eps if rcond == -1 else rcond
    x = linear_solve.pinv(a, rtol=cutoff) @ b
    s = np.linalg.svd(a, compute_uv=False)
    values = value_of(s)
    rank = np.sum(values > cutoff * np.max(values, initial=0.0)).astype(np.intc)  # NumPy's type
    rest = b - a @ x
    # In a graph the rank is unknown, and assumed to be full.
    if (is_traced(rank) or rank == n) and m > n:
        residuals = np.sum(np.abs(rest) ** 2, axis=0, keepdims=b.ndim == 1)
    else:
        residuals = np.empty(0, s.dtype)
    return x, residuals, rank, s


@counterpart(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """The x with ``tensordot(a, x, x.ndim) == b``, as ``numpy.linalg.tensorsolve``.

    Parameters
    ----------
    a : array_like
        With as many elements in the axes of `b` as in those of x.
    b : array_like
    axes : sequence of int, optional
        Axes of `a` to be moved to the end first.
    """
    a, b = as_array(a), as_array(b)
    if axes is not None:
        kept = [i for i in range(a.ndim) if i not in axes]
        a = shapes.transpose(a, axes=(*kept, *axes))
    shape = a.shape[-(a.ndim - b.ndim) :]  # as in NumPy: all axes if b has as many
    n = prod(shape)
    if a.size != n * n or b.size != n:
        raise MatrixError(
            f"tensorsolve of shapes {a.shape} and {b.shape}: x of shape {shape} and b must have "
            f"the same number of elements{at(user_line())}."
        )
    flat = linear_solve.solve(shapes.reshape(a, shape=(n, n)), shapes.reshape(b, shape=(n,)))
    return shapes.reshape(flat, shape=shape)


@counterpart(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of ``x -> tensordot(a, x, ind)``, as ``numpy.linalg.tensorinv``.

    Parameters
    ----------
    a : array_like
    ind : int, default 2
        The number of leading axes of `a` that belong to the range.
    """
    a = as_array(a)
    if ind <= 0:
        raise ShapeError(f"tensorinv with ind={ind}: at least one axis is needed{at(user_line())}.")
    front, back = a.shape[:ind], a.shape[ind:]
    square = shapes.reshape(a, shape=(prod(front), prod(back)))
    return shapes.reshape(linear_solve.inv(square), shape=back + front)
