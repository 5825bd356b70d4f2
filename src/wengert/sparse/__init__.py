"""Sparse Jacobians and Hessians: sparsity patterns, colorings, and values.

sparse_derivatives  sparse_jacobian, sparse_hessian, sparsity
exported_derivatives  sparse derivatives of exported functions
propagation         the dependencies of a graph's outputs, node by node; rules of loops and branches
rule_context        the view of a node that rules get; the inputs that each element depends on, as a
                    boolean sparse matrix
known_values        integers that do not depend on data, such as the counter of a loop
array_rules         rules of elementwise operations, reductions, contractions; rules of operations
                    that move elements, and of operations along axes
coloring_and_order  groups of columns or rows that one product computes; patterns of linear
                    functions, for implicit differentiation; which entries are computed, and their
                    order; sums of numbers that belong to the same entry
compression         the compiled function from arguments to entries; the entries of a pattern, from
                    diagonals; the part of a Hessian of nodes whose operands depend on many inputs
scattered_entries   derivatives of a node, with the inputs that they are taken with respect to;
                    derivatives after sums, kept one by one
diagonal_entries    entries computed without seeds, by diagonals
element_hessians    Hessians computed by elements, at nodes that are not linear
compiled_plan       Plan: pattern, coloring and program for a function and its argument shapes
"""

from wengert._engine.core.lazy_import import public_dir

from .compiled_plan import Plan
from .sparse_derivatives import SparseDerivative, sparse_hessian, sparse_jacobian, sparsity

__all__ = ["Plan", "SparseDerivative", "sparse_hessian", "sparse_jacobian", "sparsity"]

__dir__ = public_dir(__name__)
