"""Determinants of sparse matrices.

slogdet   sign and logarithm of the absolute value
logdet    the logarithm of a positive determinant
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.linalg.results import SlogdetResult
from wengert.errors import ArgumentError, at, user_line

from .determinant_operations import sparse_slogdet
from .direct import ASSUMED
from .operands import choice, square


def slogdet(A: Any, *, assume_a: str = "gen") -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinant of a sparse matrix.

    Parameters
    ----------
    A : sparse array
        Square; its elements may be a tensor.
    assume_a : {'gen', 'pos'}
        'pos': the matrix is Hermitian and positive definite; an error if it is not.

    Returns
    -------
    sign, logabsdet
        As ``numpy.linalg.slogdet``; 0 and -inf for a singular matrix.

    Raises
    ------
    MatrixError
        `A` is not square, or not positive definite as it was said to be; or a derivative is taken,
        and it is singular or nearly so.

    Notes
    -----
    By the LU factors. The gradient is the transposed inverse on the pattern of `A`, by the
    recurrence of Takahashi, Fagan and Chen (1973), at about the cost of the factorization. Second
    derivatives need the whole inverse, and are computed up to 4096 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from wengert.scipy.sparse.linalg import slogdet
    >>> sign, logarithm = slogdet(csr_array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sign, np.exp(logarithm).round(9)
    (np.float64(-1.0), np.float64(6.0))
    """
    choice(assume_a, ASSUMED, "assume_a", "slogdet")
    matrix = square(A, "slogdet")
    return SlogdetResult(*sparse_slogdet(*matrix.arrays, assume=assume_a))


def logdet(A: Any, *, assume_a: str = "gen") -> Any:
    """The logarithm of the determinant of a sparse matrix.

    Parameters
    ----------
    A : sparse array
        Square; its elements may be a tensor.
    assume_a : {'gen', 'pos'}
        'pos': the matrix is Hermitian and positive definite; an error if it is not.

    Returns
    -------
    number
        NaN if the determinant is negative, -inf if it is zero.

    Raises
    ------
    MatrixError
        As `slogdet`.
    ArgumentError
        The matrix is complex, and not said to be positive definite: use `slogdet`.

    See Also
    --------
    slogdet : for any sign; its notes say how derivatives are computed.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from scipy.sparse import csr_array
    >>> from wengert.scipy.sparse.linalg import logdet
    >>> a = csr_array([[2.0, 1.0], [1.0, 3.0]])
    >>> np.exp(logdet(a, assume_a="pos")).round(9)
    np.float64(5.0)
    """
    sign, logarithm = slogdet(A, assume_a=assume_a)
    if assume_a == "pos":
        return logarithm
    if sign.dtype.kind == "c":
        raise ArgumentError(
            "logdet of a complex matrix: the determinant has a phase. Use slogdet, or "
            f"assume_a='pos'{at(user_line())}."
        )
    return where(np.less(sign, 0), np.nan, logarithm)
