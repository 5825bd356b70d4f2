"""ONNX: graphs in the format that other programs read and write.

exporting.py   export: a graph, a function or a module as a file
library.py     the onnx package, imported at first use; dtypes
writing/       the lines of a graph as nodes of ONNX, one entry an operation
"""

from .exporting import export, exported

__all__ = ["export", "exported"]
