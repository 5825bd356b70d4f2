"""The structure of sparse matrices: arrays `indices` and `indptr` of the CSR format, checked.

check_structure   that the arrays are those of a square matrix
check_lengths     that operands have the lengths of a structure
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.symbolic.constraints import require_equal
from wengert.errors import ShapeError, at, user_line

Plain = np.ndarray[Any, Any]


def check_structure(indices: Plain, indptr: Plain, columns: int | None = None) -> None:
    """Check the arrays of the CSR format of a matrix, by default a square one.

    Raises
    ------
    ShapeError
        `indptr` does not ascend from 0 to the number of entries, or a column does not exist.
    """
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(indices):
        ends = f"{indptr[0]} to {indptr[-1]}" if len(indptr) else "nothing"
        problem = f"indptr must ascend from 0 to {len(indices)}, and contains {ends}"
    elif np.any(indptr[1:] < indptr[:-1]):
        problem = "indptr must ascend"
    else:
        n = len(indptr) - 1 if columns is None else columns
        if not len(indices) or (indices.min() >= 0 and indices.max() < n):
            return
        problem = f"there are {n} columns, and indices has {indices.min()} to {indices.max()}"
    raise ShapeError(f"a sparse matrix in CSR format: {problem}{at(user_line())}.")


def check_lengths(data: Any, indices: Any, indptr: Any, b: Any = None) -> None:
    """Check that there is a value for each entry, and a row of `b` for each row.

    Raises
    ------
    ShapeError
        Lengths differ.
    """
    entries = f"{data.shape[-1]} values for {indices.shape[0]} entries of a sparse matrix"
    _require(data.shape[-1], indices.shape[0], entries)
    if b is not None:
        rows = f"a right-hand side of {b.shape[-2]} rows for a matrix of {indptr.shape[0] - 1} rows"
        _require(b.shape[-2], indptr.shape[0] - 1, rows)


def _require(length: Any, other: Any, reason: str) -> None:
    if isinstance(length, int) and isinstance(other, int):
        if length != other:
            raise ShapeError(f"{reason}. The numbers must be equal{at(user_line())}.")
        return
    require_equal(length, other, reason)
