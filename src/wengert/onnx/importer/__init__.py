"""Import: nodes of ONNX to operations.

registry       which function imports which operator
node_view      a node and its attributes
creation       constants and arrays such as ConstantOfShape and Range
elementwise    elementwise operators and activations
reductions     sums, extremes, cumulative sums, softmax
matmul         matrix products and contractions
indexing       gather, scatter and slices
shape_ops      reshape, transpose, concatenate ..., sizes as values, padding
conv_pool      convolution and pooling
normalization  batch, group and layer normalization
recurrent      RNN, GRU and LSTM
control_flow   If, Loop and Scan
memory_limit   a limit on the memory of constants computed during the import
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
from .memory_limit import MemoryLimit
from .node_view import NodeView, as_value
from .registry import imported, reader_of, static_inputs

__all__ = [
    "NodeView",
    "MemoryLimit",
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
    "as_value",
    "shape_ops",
    "static_inputs",
]
