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
attention      attention, rotary position embeddings
resize         resizing, sampling at points
fourier        Fourier transforms
losses         losses of classes
detection      non-maximum suppression
recurrent      RNN, GRU and LSTM
control_flow   If, Loop and Scan
memory_limit   a limit on the memory of constants computed during the import
"""

from . import (
    attention,
    control_flow,
    conv_pool,
    creation,
    detection,
    elementwise,
    fourier,
    indexing,
    losses,
    matmul,
    normalization,
    recurrent,
    reductions,
    resize,
    shape_ops,
)
from .memory_limit import MemoryLimit
from .node_view import NodeView, as_value
from .registry import imported, reader_of, static_inputs

__all__ = [
    "NodeView",
    "MemoryLimit",
    "attention",
    "control_flow",
    "conv_pool",
    "creation",
    "detection",
    "elementwise",
    "fourier",
    "imported",
    "indexing",
    "losses",
    "matmul",
    "normalization",
    "reader_of",
    "recurrent",
    "reductions",
    "resize",
    "as_value",
    "shape_ops",
    "static_inputs",
]
