"""Lowering: graph nodes to the loop IR, one module for each family of operations.

decomposed_ops        operations that say which others they are made of
determinant_2x2       of two rows, of three in single precision
elementwise           bodies in the scalar language
gathers               elements whose place is told by other arrays
indexing              x[index] and x[index] = v; slices are views and choices, index arrays gathers
leaves                inputs, constants, sizes, arrays made from nothing
loop_ir               what a graph computes, taken apart into what loops can do
one_hot               what is picked from each row, or put into one place of each row
reductions            sums, extremes, norms, log-sum-exp
registry              which function lowers which operation; what none lowers is a step
rounding              rounding to decimals; modf, frexp
scatter_chains        many writes into one array, which is made once
selection             concatenate, stack, roll: which operand, by the index
shared_factorization  with the determinant of the same matrix, one factorization
small_products        products that are loops: outer, dot of vectors, small matrices
softmax               softmax and its logarithm
special_functions     derivatives of special functions by orders and parameters
strided_views         an item as a part of one that lies in memory
strong_zeros          strong zeros of a sweep: one comparison where that is enough
views                 reshape, transpose, slices, flips: other indices of the same elements
"""

from . import (
    determinant_2x2,
    elementwise,
    indexing,
    leaves,
    reductions,
    rounding,
    scatter_chains,
    selection,
    shared_factorization,
    small_products,
    softmax,
    special_functions,
    strong_zeros,
    views,
)
from .registry import lowered

__all__ = [
    "determinant_2x2",
    "elementwise",
    "indexing",
    "leaves",
    "lowered",
    "reductions",
    "rounding",
    "scatter_chains",
    "selection",
    "shared_factorization",
    "small_products",
    "softmax",
    "special_functions",
    "strong_zeros",
    "views",
]
