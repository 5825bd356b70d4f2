"""Functions of scipy.linalg that NumPy has too, and properties of matrices.

norm, diagsvd, tril, triu
issymmetric, ishermitian, bandwidth     computed from values; not differentiable
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import value_of

from ..dispatch import counterpart, floating

__all__ = [
    *("norm", "issymmetric", "ishermitian", "bandwidth", "diagsvd", "tril", "triu"),
    *("LinAlgError", "LinAlgWarning"),
]

LinAlgError = scipy.linalg.LinAlgError
LinAlgWarning = scipy.linalg.LinAlgWarning
tril, triu = np.tril, np.triu


@counterpart(scipy.linalg.norm)
def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    """The norm of a vector or matrix, as ``scipy.linalg.norm``; see `wengert.numpy.linalg.norm`."""
    return np.linalg.norm(floating(a), ord, axis, keepdims)


@counterpart(scipy.linalg.diagsvd)
def diagsvd(s: Any, M: int, N: int) -> Any:
    """The M by N matrix with singular values on its diagonal, as ``scipy.linalg.diagsvd``."""
    s = floating(s)
    k = s.shape[-1]
    wide = s[..., None] * np.eye(k, N, dtype=s.dtype)
    return wide if k == M else np.eye(M, k, dtype=s.dtype) @ wide


@counterpart(scipy.linalg.issymmetric)
def issymmetric(a: Any, atol: Any = None, rtol: Any = None) -> Any:
    """Whether a matrix is symmetric, as ``scipy.linalg.issymmetric``; not traceable."""
    return scipy.linalg.issymmetric(np.asarray(value_of(a)), atol, rtol)


@counterpart(scipy.linalg.ishermitian)
def ishermitian(a: Any, atol: Any = None, rtol: Any = None) -> Any:
    """Whether a matrix is Hermitian, as ``scipy.linalg.ishermitian``; not traceable."""
    return scipy.linalg.ishermitian(np.asarray(value_of(a)), atol, rtol)


@counterpart(scipy.linalg.bandwidth)
def bandwidth(a: Any) -> Any:
    """The lower and upper bandwidth, as ``scipy.linalg.bandwidth``."""
    return scipy.linalg.bandwidth(np.asarray(value_of(a)))
