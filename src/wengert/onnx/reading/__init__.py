"""Reading: the nodes of ONNX as operations.

registry.py     which function reads which operator
nodes.py        a node as these functions see it; lists of lengths
limits.py       how much memory known results may take
elements.py     operators that act on each element; activations
reductions.py   sums, extremes, running sums, softmax
shapes.py       arrangement of elements, lengths as values, padding
creation.py     constants, and arrays made of lengths
indexing.py     gathers and scatters
products.py     matrices and contractions
windows.py      convolution and pooling
recurrent.py    RNN, GRU and LSTM
loops.py        If, Loop and Scan, by their bodies
normalising.py  by statistics of a batch, a group, a layer
"""

from . import (
    creation,
    elements,
    indexing,
    loops,
    normalising,
    products,
    recurrent,
    reductions,
    shapes,
    windows,
)
from .limits import Room
from .nodes import Reading, settled
from .registry import imported, reader_of, static_inputs

__all__ = [
    "Reading",
    "Room",
    "creation",
    "elements",
    "imported",
    "indexing",
    "loops",
    "normalising",
    "products",
    "reader_of",
    "recurrent",
    "reductions",
    "settled",
    "shapes",
    "static_inputs",
    "windows",
]
