"""The functions of scipy.sparse.linalg, for sparse arrays and tensors.

factors            SuperLU's factors, kept for the derivatives
solve_operation    linear systems as operations on the arrays of the CSR format
"""

from wengert._engine.core.lazy_import import public_dir

from .solve_operation import sparse_solve

__all__ = ["sparse_solve"]

__dir__ = public_dir(__name__)
