"""ONNX import and export.

export_model  export: a graph, a function or a module as a file
import_model  load: a file as a graph that runs, compiles and differentiates
onnx_library  the onnx package, imported at first use; dtypes
exporter/     nodes of a graph to nodes of ONNX
importer/     nodes of ONNX to operations
"""

from wengert._engine.core.lazy_import import public_dir

from .export_model import export, exported
from .import_model import imported, load, parameters
from .importer.images import non_max_suppression

__all__ = ["export", "exported", "imported", "load", "non_max_suppression", "parameters"]

__dir__ = public_dir(__name__)
