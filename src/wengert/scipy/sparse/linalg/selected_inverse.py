"""Elements of the inverse of a sparse matrix on its pattern: the gradient of its log-determinant.

    transposed_inverse   the elements of the transposed inverse on the pattern of the matrix

They are computed from the factors by the recurrence of Takahashi, at about the cost of the
factorization: in a band (takahashi_recurrence.py) or on any pattern (takahashi_recurrence.py).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from .factors import factor_of
from .operands import Plain


def transposed_inverse(data: Plain, indices: Plain, indptr: Plain, assume: str) -> Plain:
    """The elements of the transposed inverse at the entries of a matrix in CSR format.

    Raises
    ------
    LinAlgError
        The matrix is singular, nearly singular, or not positive definite as it was said to be.
    """
    if data.dtype.kind == "c":
        return _of_complex(data, indices, indptr)
    factor = factor_of(data, indices, indptr, assume)
    factor.check_condition()
    found = factor.transposed_inverse()
    return found.astype(data.dtype if data.dtype.kind == "f" else float, copy=False)


def _of_complex(data: Plain, indices: Plain, indptr: Plain) -> Plain:
    """The same for a complex matrix, by the real matrix [[re, -im], [im, re]] of its elements."""
    n = len(indptr) - 1
    i, j = np.repeat(np.arange(n), np.diff(indptr)), np.asarray(indices, np.int64)
    wide = data.astype(complex)
    values = np.concatenate([wide.real, -wide.imag, wide.imag, wide.real])
    rows = np.concatenate([2 * i, 2 * i, 2 * i + 1, 2 * i + 1])
    columns = np.concatenate([2 * j, 2 * j + 1, 2 * j, 2 * j + 1])
    a = coo_array((values, (rows, columns)), shape=(2 * n, 2 * n)).tocsr()
    factor = factor_of(a.data, a.indices, a.indptr, "gen")
    factor.check_condition()
    entries = np.concatenate([2 * i, 2 * i]), np.concatenate([2 * j, 2 * j + 1])
    found = factor.transposed_inverse(*entries)
    return (found[: len(i)] + 1j * found[len(i) :]).astype(data.dtype)
