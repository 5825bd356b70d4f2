"""Norms of sparse matrices.

norm         of matrices, of rows or columns
onenormest   an estimate of the 1-norm, for plain elements
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg

from wengert.errors import ArgumentError, at, user_line

from ..arrays import as_sparse
from .eigenvalues import svds
from .operands import uses_tensors


def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """The norm of a sparse matrix, or of its rows or columns, as ``scipy.sparse.linalg.norm``.

    Parameters
    ----------
    x : sparse array
        Its elements may be tensors.
    ord : {None, 'fro', 1, -1, 2, inf, -inf}
        The kind of norm; 0 only for plain elements.
    axis : int or None
        Norms of columns (0) or rows (1); of the matrix by default.

    Returns
    -------
    number or array

    Raises
    ------
    ArgumentError
        There is no such norm.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse import csr_array
    >>> from wengert.scipy.sparse.linalg import norm
    >>> wg.grad(lambda d: norm(csr_array((d, ([0, 1], [1, 0])))))(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    if not uses_tensors(x):
        return scipy.sparse.linalg.norm(x, ord, axis)
    a = as_sparse(x).tocsr().canonical()
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if axis is None or axis in ((0, 1), (-2, -1)):
        if ord in (None, "fro", "f"):
            return np.linalg.norm(a.data)
        if ord == 2:
            return svds(a, 1, return_singular_vectors=False)[0]
        if ord in (1, -1, np.inf, -np.inf):
            sums = abs(a).sum(axis=0 if abs(ord) == 1 else 1)
            return np.max(sums) if ord > 0 else np.min(sums)
    elif axis in (0, 1, -1, -2):
        if ord in (None, 2):
            sums = a.with_data(np.abs(a.data) ** 2).sum(axis=axis)
            # The derivative is zero where all elements of a row are.
            return np.where(sums > 0, np.sqrt(np.where(sums > 0, sums, 1.0)), 0.0)
        if ord == 1:
            return abs(a).sum(axis=axis)
        if ord == np.inf:
            return abs(a).max(axis=axis)
    raise ArgumentError(
        f"norm of a sparse array of tensors with ord={ord!r} and axis={axis!r}: use None, 'fro', "
        f"1, -1, 2, inf or -inf for matrices, and None, 1, 2 or inf for rows{at(user_line())}."
    )


def onenormest(
    A: Any, t: int = 2, itmax: int = 5, compute_v: bool = False, compute_w: bool = False
) -> Any:
    """An estimate of the 1-norm, for plain elements.

    Parameters
    ----------
    A : array, sparse array or SciPy's LinearOperator
    t, itmax, compute_v, compute_w
        As in SciPy.

    Raises
    ------
    ArgumentError
        The elements of `A` are a tensor: the estimate has no derivative.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from wengert.scipy.sparse.linalg import onenormest
    >>> float(onenormest(csr_array([[1.0, 2.0], [0.0, 3.0]])))
    5.0
    """
    if uses_tensors(A):
        raise ArgumentError(
            "onenormest of tensors: the estimate has no derivative. Use norm(A, 1)"
            f"{at(user_line())}."
        )
    return scipy.sparse.linalg.onenormest(A, t, itmax, compute_v, compute_w)
