"""Writing: the lines of a graph as nodes of ONNX.

writer.py      a graph on its way: nodes, names, constants, lengths
registry.py    which function writes which operation
lanes.py       the scalar language as nodes: elementwise operations by their bodies
elements.py    elementwise operations that ONNX has
reductions.py  sums, extremes, softmax
shapes.py      arrangement of elements; arrays made of lengths
indexing.py    parts of arrays, read and written
products.py    matrices and contractions
windows.py     convolution and pooling
loops.py       scan and cond
values.py      what a file says of inputs and results
"""

from . import elements, indexing, loops, products, reductions, shapes, windows
from .registry import exported
from .values import described
from .writer import Outside, Writer

__all__ = [
    "Outside",
    "Writer",
    "described",
    "elements",
    "exported",
    "indexing",
    "loops",
    "products",
    "reductions",
    "shapes",
    "windows",
]
