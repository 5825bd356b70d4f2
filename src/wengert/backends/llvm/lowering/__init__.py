"""Lowering: lines of a graph as items, of which loops are made.

    registry       which function lowers which operation; what none lowers is a step
    elementwise    bodies in the scalar language
    leaves         inputs, constants, sizes, arrays made from nothing
    views          reshape, transpose, slices, flips: other indices of the same elements
    choices        concatenate, stack, roll, writing a slice: which operand, by the index
    reductions     sums, extremes, norms, log-sum-exp
    products       products that are loops: outer, dot of vectors, small matrices
"""

from . import choices, elementwise, leaves, products, reductions, views
from .registry import items_of

__all__ = ["choices", "elementwise", "items_of", "leaves", "products", "reductions", "views"]
