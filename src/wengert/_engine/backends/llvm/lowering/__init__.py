"""Lowering: graph nodes to the loop IR, one module for each family of operations.

loop_ir               the loop IR: maps, views, selections, gathers, reductions, kernel calls
registry              which function lowers which operation; other operations are kernels or host
                      callbacks; operations that are defined by other operations
leaves                inputs, constants, sizes, and arrays such as `full` and `arange`
elementwise           elementwise operations, by their bodies in the scalar language; rounding to
                      decimals; modf, frexp; families of special functions
views                 reshape, transpose, slices, flips
selection             concatenate, stack, roll: the operand depends on the index; strong zeros as
                      comparisons
indexing              x[index] and x[index] = v
gathers               elements at indices from other arrays
one_hot               one element per row, read or written
scatter_chains        several stores into one array; slices of arrays that are overwritten in place
reductions            sums, extremes, norms, log-sum-exp; softmax and its logarithm
small_products        products that are loops: outer products, dot of vectors, small matrices;
                      products for a batch, with the axis of the batch first
determinant_2x2       determinants of 2x2 matrices, and of 3x3 in single precision; inverse and
                      determinant of one matrix, with one factorization
split_messages        messages between two processes: a start and a wait
"""

from . import (  # noqa: F401  (they register their rules)
    determinant_2x2,
    elementwise,
    indexing,
    leaves,
    reductions,
    scatter_chains,
    selection,
    small_products,
    views,
)
from .registry import lowered

__all__ = ["lowered"]
