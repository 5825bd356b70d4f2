"""Sparse Jacobians and Hessians: where entries are, which sweeps find them, and their values.

arithmetic_rules    the rules of the kinds that compute: elementwise, reduction, contraction
coloring            which columns, or rows, are found by one sweep
compiled_plan       Plan: all that is decided once for a function and the shapes of its arguments
compression         the function from arguments to the entries that is compiled: by sweeps, or,
                    where each entry can be computed where it stands, by diagonals.py
control_flow_rules  the rules of operations whose parameters are bodies
dependency_sets     which numbers each element of an array depends on, as a boolean sparse matrix
diagonal_entries    entries that are computed where they stand, without seeds
indexing_rules      the rules of operations that move elements, and of those along some axes
propagation         what the outputs of a graph depend on, line by line, by the rules of
                    structure.py (moving elements), arithmetic.py (computing), loops.py (bodies);
                    line.py is a line as rules see it, sets.py what elements depend on
rule_context        one line of a graph as the rules of sparsity see it
sparse_derivatives  sparse_jacobian, sparse_hessian, sparsity: what users call
"""

from wengert._engine.core.lazy_import import public_dir

from .compiled_plan import Plan
from .sparse_derivatives import SparseDerivative, sparse_hessian, sparse_jacobian, sparsity

__all__ = ["Plan", "SparseDerivative", "sparse_hessian", "sparse_jacobian", "sparsity"]

__dir__ = public_dir(__name__)
