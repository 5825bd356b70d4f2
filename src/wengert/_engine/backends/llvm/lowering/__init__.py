"""Lowering: lines of a graph as items, of which loops are made.

registry       which function lowers which operation; what none lowers is a step
composed       operations that say which others they are made of
elementwise    bodies in the scalar language
leaves         inputs, constants, sizes, arrays made from nothing
views          reshape, transpose, slices, flips: other indices of the same elements
choices        concatenate, stack, roll: which operand, by the index
indexing       x[index] and x[index] = v; slices are views and choices, index arrays gathers
writes         many writes into one array, which is made once
onehot         what is picked from each row, or put into one place of each row
guards         strong zeros of a sweep: one comparison where that is enough
rounding       rounding to decimals; modf, frexp
reductions     sums, extremes, norms, log-sum-exp
softmax        softmax and its logarithm
families       derivatives of special functions by orders and parameters
determinants   of two rows, of three in single precision
inverses       with the determinant of the same matrix, one factorization
products       products that are loops: outer, dot of vectors, small matrices
"""

from . import (
    choices,
    determinants,
    elementwise,
    families,
    guards,
    indexing,
    inverses,
    leaves,
    products,
    reductions,
    rounding,
    softmax,
    views,
    writes,
)
from .registry import lowered

__all__ = [
    "choices",
    "determinants",
    "elementwise",
    "families",
    "guards",
    "indexing",
    "inverses",
    "leaves",
    "lowered",
    "products",
    "reductions",
    "rounding",
    "softmax",
    "views",
    "writes",
]
