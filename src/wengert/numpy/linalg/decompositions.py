"""Factorizations, eigenvalues and singular values, under the names of `numpy.linalg`.

Each is an operation of _engine/ops/linalg/factorizations.py or _engine/ops/linalg/eigen_svd.py.
Derivatives of factors that are not unique are described there, and in the notes below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.ops.linalg import eigen_svd, factorizations
from wengert._engine.ops.linalg.linear_solve import adjoint
from wengert._engine.ops.linalg.results import EighResult, EigResult, QRResult, SVDResult
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart, spread

from ...errors import ArgumentError, at, user_line


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
