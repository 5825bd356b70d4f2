"""Graphs as users hold them: traced or built by hand, transformed, run, saved.

graph.py               Graph: the class
transform.py           grad, vjp, jvp, vmap ... of a graph, by tracing it; substitute,
                       with_operation, subgraph, copy
pickle_support.py      pickling
trace.py               trace: the graph of a function
tracing_session.py     the run of a function that records its graph
pytree_signature.py    containers of arguments and results
inputs.py              input, spec, variable: to build graphs by hand
linear_transpose.py    linear_transpose: transposes of linear functions
computation.py         computation: outputs and inputs as a callable
symbolic_gradients.py  gradients: with respect to tensors, for graphs built by hand
captures               captured values of functions, and the detection of changes
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names, public_dir
from wengert._engine.serialization import register_class, register_graph

from .computation import Computation, computation
from .graph import Graph
from .inputs import input, spec, variable
from .linear_transpose import linear_transpose
from .pytree_signature import ResultStructure, Signature
from .symbolic_gradients import gradients
from .trace import trace

if TYPE_CHECKING:
    from wengert._engine.serialization import load, save

__all__ = [
    "Computation",
    "Graph",
    "computation",
    "gradients",
    "input",
    "linear_transpose",
    "load",
    "save",
    "spec",
    "trace",
    "variable",
]

__getattr__ = lazy_names(__name__, dict.fromkeys(("load", "save"), "wengert._engine.serialization"))

register_graph(Graph)
register_class(Signature, name="Signature")
register_class(ResultStructure, name="Results")

__dir__ = public_dir(__name__)
