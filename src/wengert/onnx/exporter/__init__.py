"""Export: nodes of a graph to nodes of ONNX.

graph_writer     an ONNX graph under construction: nodes, names, constants, sizes; names, shapes and
                 dtypes of inputs and outputs
registry         which function exports which operation
scalar_language  the scalar language as ONNX nodes: elementwise operations by their bodies
elementwise      elementwise operations with an ONNX operator
contractions     sums, extremes, softmax; matrix products and contractions
indexing         reading and writing elements
shape_ops        reshape, transpose, concatenate ...; arrays such as `full` and `arange`
conv_pool        convolution and pooling
fourier          Fourier transforms, complex numbers as pairs
control_flow     scan and cond
"""

from . import (
    contractions,
    control_flow,
    conv_pool,
    elementwise,
    fourier,
    indexing,
    shape_ops,
)
from .graph_writer import GraphWriter, Outside, value_info
from .registry import exported

__all__ = [
    "GraphWriter",
    "Outside",
    "contractions",
    "control_flow",
    "conv_pool",
    "value_info",
    "elementwise",
    "exported",
    "fourier",
    "indexing",
    "shape_ops",
]
