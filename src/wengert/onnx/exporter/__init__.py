"""Export: nodes of a graph to nodes of ONNX.

graph_writer     an ONNX graph under construction: nodes, names, constants, sizes
registry         which function exports which operation
scalar_language  the scalar language as ONNX nodes: elementwise operations by their bodies
elementwise      elementwise operations with an ONNX operator
reductions       sums, extremes, softmax
matmul           matrix products and contractions
indexing         reading and writing elements
shape_ops        reshape, transpose, concatenate ...; arrays such as `full` and `arange`
conv_pool        convolution and pooling
fourier          Fourier transforms, complex numbers as pairs
control_flow     scan and cond
value_info       names, shapes and dtypes of inputs and outputs
"""

from . import (
    control_flow,
    conv_pool,
    elementwise,
    fourier,
    indexing,
    matmul,
    reductions,
    shape_ops,
)
from .graph_writer import GraphWriter, Outside
from .registry import exported
from .value_info import value_info

__all__ = [
    "GraphWriter",
    "Outside",
    "control_flow",
    "conv_pool",
    "value_info",
    "elementwise",
    "exported",
    "fourier",
    "indexing",
    "matmul",
    "reductions",
    "shape_ops",
]
