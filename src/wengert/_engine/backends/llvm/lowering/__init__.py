"""Lowering: graph nodes to the loop IR, one module for each family of operations.

loop_ir               the loop IR: maps, views, selections, gathers, reductions, kernel calls
registry              which function lowers which operation; other operations are kernels or host
                      callbacks; operations that are defined by other operations; messages between
                      two processes: a start and a wait
leaves_and_views      inputs, constants, sizes, and arrays such as `full` and `arange`; reshape,
                      transpose, slices, flips; concatenate, stack, roll: the operand depends on the
                      index; strong zeros as comparisons
elementwise           elementwise operations, by their bodies in the scalar language; rounding to
                      decimals; modf, frexp; families of special functions
indexing              x[index] and x[index] = v
gathers               elements at indices from other arrays; one element per row
scatter_chains        several stores into one array; slices of arrays that are overwritten in place
reductions            sums, extremes, norms, log-sum-exp; softmax and its logarithm
small_matrices        products that are loops: outer products, dot of vectors, small matrices;
                      products for a batch, with the axis of the batch first;
                      determinants of 2x2 matrices, and of 3x3 in single precision; inverse and
                      determinant of one matrix, with one factorization
"""

from . import (  # noqa: F401  (they register their rules)
    elementwise,
    indexing,
    leaves_and_views,
    reductions,
    scatter_chains,
    small_matrices,
)
from .registry import lowered

__all__ = ["lowered"]
