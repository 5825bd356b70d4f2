"""The names of scipy.sparse, for arrays whose elements are a tensor.

structure      where the elements are: format, shape, index arrays; static; the two parts of an
               array, structure and data
rearrangement  operations that move elements, planned once for each structure; formats, shapes,
               dtypes
arithmetic     operators and elementwise functions; products with vectors, matrices, sparse arrays
indexing_reductions  sum, mean, max, min; A[i, j], assignments, duplicates
arrays         the classes csr_array, csc_array, coo_array, dia_array, bsr_array, and matrices
assembled      arrays of tensors that are made element by element
lil_dok_pytrees  lil_array, dok_array: SciPy's until a tensor is assigned; all sparse arrays as
                 containers with one leaf
construction   diags, kron, hstack, vstack, block_array ...
linalg/        scipy.sparse.linalg, imported at first use

The structure of an array never depends on values: only its elements are traced, differentiated and
batched (docs/sparse-arrays.md).  Without tensors, SciPy's functions are called, and
names that are not here are SciPy's.
"""

from importlib import import_module
from typing import Any

import scipy.sparse

from wengert._engine.core.lazy_import import public_dir

from .arrays import (
    SparseArray,
    SparseMatrix,
    as_sparse,
    bsr_array,
    bsr_matrix,
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    dia_array,
    dia_matrix,
    from_structure,
)
from .construction import (
    block_array,
    block_diag,
    bmat,
    diags,
    diags_array,
    find,
    hstack,
    issparse,
    isspmatrix,
    isspmatrix_bsr,
    isspmatrix_coo,
    isspmatrix_csc,
    isspmatrix_csr,
    isspmatrix_dia,
    kron,
    kronsum,
    tril,
    triu,
    vstack,
)
from .lil_dok_pytrees import dok_array, dok_matrix, lil_array, lil_matrix
from .structure import Structure, structure_of

sparray, spmatrix = SparseArray, SparseMatrix

__all__ = [
    "Structure",
    "sparray",
    "spmatrix",
    "as_sparse",
    "block_array",
    "block_diag",
    "bmat",
    "bsr_array",
    "bsr_matrix",
    "coo_array",
    "coo_matrix",
    "csc_array",
    "csc_matrix",
    "csr_array",
    "csr_matrix",
    "dia_array",
    "dia_matrix",
    "diags",
    "diags_array",
    "dok_array",
    "dok_matrix",
    "find",
    "from_structure",
    "hstack",
    "issparse",
    "isspmatrix",
    "isspmatrix_bsr",
    "isspmatrix_coo",
    "isspmatrix_csc",
    "isspmatrix_csr",
    "isspmatrix_dia",
    "kron",
    "kronsum",
    "lil_array",
    "lil_matrix",
    "structure_of",
    "tril",
    "triu",
    "vstack",
]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "linalg":
        return import_module(f"{__name__}.linalg")
    return getattr(scipy.sparse, name)


__dir__ = public_dir(__name__)
