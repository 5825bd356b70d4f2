"""The functions of `wengert.numpy.linalg`, with autograd's derivative of eigenvalues.

    eigh, eigvalsh   functions of the triangle that NumPy reads
    T                transposed matrices, a helper of autograd's own rules

`wengert.numpy.linalg` takes their gradients over symmetric matrices (docs/conventions.md, 9.1): an
off-diagonal derivative is divided between (i, j) and (j, i).  autograd's is zero in the triangle
that is not read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of

from .... import numpy as wnp

__all__ = ["eigh", "eigvalsh"]


def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of the symmetric (Hermitian) matrix that one triangle gives.

    Parameters
    ----------
    a : array or Tensor
        Matrices in the last two axes.
    UPLO : {"L", "U"}
        The triangle that is read; the gradient is zero outside it.

    Examples
    --------
    >>> import wengert.compat.autograd.numpy as np
    >>> from wengert.compat.autograd import grad
    >>> grad(lambda a: np.linalg.eigh(a)[0][1])(np.array([[0.0, 5.0], [1.0, 0.0]]))
    array([[0.5, 0. ],
           [1. , 0.5]])
    """
    return wnp.linalg.eigh(_completed(a, UPLO), UPLO)


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of the symmetric (Hermitian) matrix that one triangle gives."""
    return wnp.linalg.eigvalsh(_completed(a, UPLO), UPLO)


def _completed(a: Any, uplo: str) -> Any:
    """A tensor with the other triangle made from the one that is read; anything else unchanged."""
    if not isinstance(a, Handle) or uplo.upper() not in ("L", "U"):
        return a
    return _from_triangle(a, uplo)


def _from_triangle(a: Any, uplo: str) -> Any:
    strict = np.tril(a, -1) if uplo.upper() == "L" else np.triu(a, 1)
    diagonal = np.real(a) if dtype_of(a).kind == "c" else a
    other = np.conj(np.swapaxes(strict, -1, -2))
    return strict + other + diagonal * np.eye(a.shape[-1], dtype=diagonal.dtype)


def T(a: Any) -> Any:
    """The transposed matrices."""
    return np.swapaxes(a, -1, -2)


def _dot(a: Any, b: Any) -> Any:
    """Products of matrices; programs for autograd call it by this name."""
    return np.matmul(a, b)


def __getattr__(name: str) -> Any:
    return getattr(wnp.linalg, name)


def __dir__() -> list[str]:
    return sorted({*dir(wnp.linalg), *__all__})
