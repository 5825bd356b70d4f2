"""Import: nodes of ONNX to operations.

registry       which function imports which operator; a node and its attributes
elementwise    elementwise operators and activations
contractions   sums, extremes, cumulative sums, softmax; matrix products and contractions; Fourier
               transforms
indexing       gather, scatter and slices
shape_ops      reshape, transpose, concatenate ..., sizes as values, padding; constants and arrays
               such as ConstantOfShape and Range
layers      convolution and pooling; batch, group and layer normalization; losses of classes
sequences      attention, rotary position embeddings; RNN, GRU and LSTM
images         resizing, sampling at points; non-maximum suppression
control_flow   If, Loop and Scan
memory_limit   a limit on the memory of constants computed during the import
"""

from . import (
    contractions,
    control_flow,
    elementwise,
    images,
    indexing,
    layers,
    sequences,
    shape_ops,
)
from .memory_limit import MemoryLimit
from .registry import NodeView, as_value, imported, reader_of, static_inputs

__all__ = [
    "NodeView",
    "MemoryLimit",
    "contractions",
    "control_flow",
    "elementwise",
    "images",
    "imported",
    "indexing",
    "layers",
    "reader_of",
    "sequences",
    "as_value",
    "shape_ops",
    "static_inputs",
]
