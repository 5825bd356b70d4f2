"""The functions of scipy.sparse.linalg, for sparse arrays whose elements are tensors.

operands                  arguments: sparse arrays of SciPy and of wengert
structure                 arrays of the CSR format, checked
factors                   SuperLU's factors, kept for the derivatives
solve_operation           linear systems as operations on the arrays of the CSR format
direct                    spsolve, splu, factorized, spsolve_triangular, inv
determinant_operations    determinants as operations
determinants              logdet, slogdet
selected_inverse          elements of the inverse on the pattern of the matrix
selected_inverse_kernel   the same as native code

Without tensors, SciPy's functions are called.
"""

from wengert._engine.core.lazy_import import public_dir

from .determinants import logdet, slogdet
from .direct import SparseLU, factorized, inv, splu, spsolve, spsolve_triangular

__all__ = [
    "SparseLU",
    "factorized",
    "inv",
    "logdet",
    "slogdet",
    "splu",
    "spsolve",
    "spsolve_triangular",
]

__dir__ = public_dir(__name__)
