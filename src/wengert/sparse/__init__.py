"""Sparse Jacobians and Hessians: where entries are, which sweeps find them, and their values.

functions.py     sparse_jacobian, sparse_hessian, sparsity: what users call
plan.py          Plan: all that is decided once for a function and the shapes of its arguments
compression.py   the function from arguments to the entries that is compiled: by sweeps, or, where
                 each entry can be computed where it stands, by diagonals.py
colouring.py     which columns, or rows, are found by one sweep
propagation.py   what the outputs of a graph depend on, line by line, by the rules of
                 structure.py (moving elements), arithmetic.py (computing), loops.py (bodies);
                 line.py is a line as rules see it, sets.py what elements depend on
"""

from wengert._engine.core.lazy_import import public_dir

from .functions import SparseDerivative, sparse_hessian, sparse_jacobian, sparsity
from .plan import Plan

__all__ = ["Plan", "SparseDerivative", "sparse_hessian", "sparse_jacobian", "sparsity"]

__dir__ = public_dir(__name__)
