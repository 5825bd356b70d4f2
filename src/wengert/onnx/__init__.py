"""ONNX: graphs in the format that other programs read and write.

exporting.py  export: a graph, a function or a module as a file
importing.py  load: a file as a graph that runs, compiles and differentiates
library.py    the onnx package, imported at first use; dtypes
writing/       the lines of a graph as nodes of ONNX, one entry an operation
reading/       the nodes of ONNX as operations, one entry an operator
"""

from wengert._engine.core.lazy_import import public_dir

from .exporting import export, exported
from .importing import imported, load, parameters

__all__ = ["export", "exported", "imported", "load", "parameters"]

__dir__ = public_dir(__name__)
