"""Reading: the nodes of ONNX as operations.

control_flow   If, Loop and Scan, by their bodies
conv_pool      convolution and pooling
creation       constants, and arrays made of lengths
elementwise    operators that act on each element; activations
indexing       gathers and scatters
matmul         matrices and contractions
memory_limit   how much memory known results may take
node_view      a node as these functions see it; lists of lengths
normalization  by statistics of a batch, a group, a layer
recurrent      RNN, GRU and LSTM
reductions     sums, extremes, running sums, softmax
registry       which function reads which operator
shape_ops      arrangement of elements, lengths as values, padding
"""

from . import (
    control_flow,
    conv_pool,
    creation,
    elementwise,
    indexing,
    matmul,
    normalization,
    recurrent,
    reductions,
    shape_ops,
)
from .memory_limit import Room
from .node_view import Reading, settled
from .registry import imported, reader_of, static_inputs

__all__ = [
    "Reading",
    "Room",
    "control_flow",
    "conv_pool",
    "creation",
    "elementwise",
    "imported",
    "indexing",
    "matmul",
    "normalization",
    "reader_of",
    "recurrent",
    "reductions",
    "settled",
    "shape_ops",
    "static_inputs",
]
