"""Graphs as users hold them: traced or built by hand, transformed, run, saved.

graph.py               Graph: the class
transform.py           grad, vjp, jvp, vmap ... of a graph, by tracing it; substitute,
                       with_operation, subgraph, copy; pickling
trace.py               trace: the graph of a function; linear_transpose: transposes of linear
                       functions
tracing_session.py     the run of a function that records its graph
pytree_signature.py    containers of arguments and results
built_by_hand.py       input, spec, variable: to build graphs by hand; gradients: with respect to
                       tensors
computation.py         computation: outputs and inputs as a callable
captures               captured values of functions, and the detection of changes
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names, public_dir
from wengert._engine.serialization import register_class, register_graph

from .built_by_hand import gradients, input, spec, variable
from .computation import Computation, computation
from .graph import Graph
from .pytree_signature import ResultStructure, Signature
from .trace import linear_transpose, trace

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
