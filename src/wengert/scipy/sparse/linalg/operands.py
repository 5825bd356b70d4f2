"""Arguments of the functions of scipy.sparse.linalg, and the structure of their matrices.

uses_tensors       whether the elements of an array are a tensor
CompressedRows     the elements and the structure of an array in CSR format
compressed_rows    of a sparse or dense array
square             the same for a square matrix
right_side         a right-hand side as a matrix
check_structure    that the arrays are those of a square matrix
check_lengths      that operands have the lengths of a structure
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.constraints import require_equal
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, MatrixError, ShapeError, at, user_line

from ...dispatch import floating, holds_tensors


def is_sparse(a: Any) -> bool:
    """Whether an argument is a sparse array of SciPy or of wengert."""
    return not isinstance(a, Handle) and hasattr(a, "tocsr")


def uses_tensors(*arguments: Any) -> bool:
    """Whether tensors, or sparse arrays of tensors, are among the arguments."""
    # SciPy's DOK arrays have no `data`, and hold no tensors.
    return any([holds_tensors(getattr(x, "data", None) if is_sparse(x) else x) for x in arguments])


class CompressedRows(NamedTuple):
    """A matrix in CSR format.

    data : array or tensor of floating or complex numbers.
    indices, indptr : plain arrays.
    shape : pair of int.
    """

    data: Any
    indices: Any
    indptr: Any
    shape: tuple[int, int]

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Data, indices and indptr."""
        return self.data, self.indices, self.indptr


def compressed_rows(a: Any, what: str) -> CompressedRows:
    """A sparse array, or a dense one of which all elements are stored, in CSR format.

    Raises
    ------
    ShapeError
        It does not have two axes.
    """
    if is_sparse(a):
        a = a.tocsr()
        if len(a.shape) != 2:
            raise ShapeError(
                f"{what}: A has shape {a.shape}, and must be a matrix{at(user_line())}."
            )
        return CompressedRows(floating(a.data), a.indices, a.indptr, tuple(a.shape))
    a = floating(a)
    shape = shape_of(a)
    if len(shape) != 2:
        raise ShapeError(f"{what}: A has shape {shape}, and must be a matrix{at(user_line())}.")
    rows, columns = shape
    indices, indptr = np.tile(np.arange(columns), rows), np.arange(rows + 1) * columns
    return CompressedRows(lookup("reshape")(a, shape=(-1,)), indices, indptr, (rows, columns))


def square(a: Any, what: str) -> CompressedRows:
    """A square matrix in CSR format.

    Raises
    ------
    MatrixError
        It is not square.
    """
    rows = compressed_rows(a, what)
    if rows.shape[0] != rows.shape[1]:
        raise MatrixError(
            f"{what}: A has shape {rows.shape}, and must be square. Use lsqr for other systems"
            f"{at(user_line())}."
        )
    return rows


def right_side(b: Any, rows: int, what: str) -> tuple[Any, Any]:
    """A right-hand side as a matrix of floating or complex numbers, and the shape of its solution.

    Raises
    ------
    ArgumentError
        It is sparse.
    ShapeError
        Its first length is not the number of rows, or it has more than two axes.
    """
    if is_sparse(b):
        raise ArgumentError(
            f"{what} of tensors with a sparse right-hand side: its solution is dense. Use "
            f"b.toarray(){at(user_line())}."
        )
    b = floating(as_array(b))
    shape = shape_of(b)
    if len(shape) not in (1, 2) or shape[0] != rows:
        raise ShapeError(
            f"{what}: b has shape {shape}, and must be a vector or a matrix with {rows} rows"
            f"{at(user_line())}."
        )
    return (lookup("expand_dims")(b, axis=1), shape) if len(shape) == 1 else (b, shape)


def choice(given: Any, allowed: tuple[str, ...], name: str, what: str) -> str:
    """An option that is one of some strings.

    Raises
    ------
    ArgumentError
        It is another.
    """
    if given not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise ArgumentError(f"{what}: {name}={given!r} must be one of {listed}{at(user_line())}.")
    return str(given)


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
