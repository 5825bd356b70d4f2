"""Writing: the lines of a graph as nodes of ONNX.

control_flow     scan and cond
conv_pool        convolution and pooling
elementwise      elementwise operations that ONNX has
graph_writer     a graph on its way: nodes, names, constants, lengths
indexing         parts of arrays, read and written
matmul           matrices and contractions
reductions       sums, extremes, softmax
registry         which function writes which operation
scalar_language  the scalar language as nodes: elementwise operations by their bodies
shape_ops        arrangement of elements; arrays made of lengths
value_info       what a file says of inputs and results
"""

from . import control_flow, conv_pool, elementwise, indexing, matmul, reductions, shape_ops
from .graph_writer import Outside, Writer
from .registry import exported
from .value_info import described

__all__ = [
    "Outside",
    "Writer",
    "control_flow",
    "conv_pool",
    "described",
    "elementwise",
    "exported",
    "indexing",
    "matmul",
    "reductions",
    "shape_ops",
]
