"""Products of sparse arrays with vectors, matrices and sparse arrays.

    dense_product    A @ x
    sparse_product   A @ B: the pattern is planned once, the elements are sums of products

Products with dense arrays are the operations of _engine/ops/sparse_products.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.ops.sparse_products import csr_matmul, csr_transposed_matmul
from wengert.errors import ShapeError, at, user_line

from .rearrangement import as_dtype, gathered, planned, reshaped
from .structure import Structure, structure_of


def compressed(array: Any) -> Any:
    """The array in row or column format."""
    return array if array.format in ("csr", "csc") else array.tocsr()


def dense_product(array: Any, x: Any) -> Any:
    """A @ x for a vector or matrix x."""
    shape = shape_of(x)
    if len(shape) not in (1, 2) or shape[0] != array.shape[-1]:
        raise ShapeError(
            f"A @ x of a sparse array of shape {array.shape} and an array of shape {shape}: the "
            "last length of A must be the first of x, which is a vector or a matrix"
            f"{at(user_line())}."
        )
    array = compressed(array)
    dtype = np.result_type(array.dtype, dtype_of(x))
    if dtype.kind == "b":
        dtype = np.dtype(np.int8)
    data, x = as_dtype(array.data, dtype), as_dtype(x, dtype)
    indices, indptr = array.structure.arrays
    if array.format == "csr":
        product = csr_matmul(data, x, indices, indptr)
    else:
        product = csr_transposed_matmul(data, x, indices, indptr, columns=array.shape[0])
    return reshaped(product, shape[1:]) if len(array.shape) == 1 else product


class _Pairs(NamedTuple):
    """The products that an element of A @ B is the sum of.

    structure : of A @ B, in row format.
    left, right : the positions of the factors, in the order of the elements of the result.
    indptr : where the products of each element begin.
    """

    structure: Structure
    left: Any
    right: Any
    indptr: Any


def sparse_product(a: Any, b: Any) -> tuple[Structure, Any]:
    """A @ B for arrays in row format: the structure of the product, and its data."""
    plan = planned(("pairs", a.structure, b.structure), lambda: _pairs(a.structure, b.structure))
    dtype = np.result_type(a.dtype, b.dtype)
    left = as_dtype(gathered(a.data, plan.left), dtype)
    return plan.structure, csr_matmul(left, as_dtype(b.data, dtype), plan.right, plan.indptr)


def _pairs(a: Structure, b: Structure) -> _Pairs:
    """All pairs of an element of column j of A and one of row j of B, sorted by row and column."""
    (a_columns, a_starts), (b_columns, b_starts) = a.arrays, b.arrays
    counts = np.diff(b_starts)[a_columns]
    left = np.repeat(np.arange(len(a_columns)), counts)
    before = np.cumsum(counts) - counts
    right = np.arange(len(left)) + np.repeat(b_starts[:-1][a_columns] - before, counts)
    rows = np.repeat(np.arange(len(a_starts) - 1), np.diff(a_starts))[left]
    columns = b_columns[right]
    order = np.lexsort((columns, rows))
    rows, columns = rows[order], columns[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (np.diff(rows) != 0) | (np.diff(columns) != 0)
    starts = np.flatnonzero(is_first)
    pattern = sp.coo_array(
        (np.ones(len(starts), np.int8), (rows[starts], columns[starts])),
        shape=(a.shape[0], b.shape[1]),
    ).tocsr()
    indptr = np.append(starts, len(order))
    return _Pairs(structure_of(pattern), left[order], right[order], indptr)
