"""Graphs you can hold: built by tracing or by hand, transformed, run, looked at, kept.

graph.py         Graph: a list with everything that can be done with it, made of finding.py (by
                 selectors.py), parts.py, surgery.py, transforming.py, looking.py, pickling.py
trace.py         trace: the graph of a Python function (building.py: the run that writes it down)
calling.py       containers of arguments and results (core/again.py: the lines written down again)
inputs.py        input, spec, variable: what graphs are built by hand from
computation.py   computation: outputs and inputs as a callable
derivatives.py   gradients: of tensors by tensors, for graphs built by hand
captures         what a function reads that is not an argument, and how a change is noticed
"""

from typing import TYPE_CHECKING

from wengert._engine.core.late import late_names, public_dir
from wengert._engine.serialization import register_class, register_graph

from .calling import Results, Signature
from .computation import Computation, computation
from .derivatives import gradients
from .graph import Graph
from .inputs import input, spec, variable
from .trace import trace

if TYPE_CHECKING:
    from wengert._engine.serialization import load, save

__all__ = [
    "Computation",
    "Graph",
    "computation",
    "gradients",
    "input",
    "load",
    "save",
    "spec",
    "trace",
    "variable",
]

__getattr__ = late_names(__name__, dict.fromkeys(("load", "save"), "wengert._engine.serialization"))

register_graph(Graph)
register_class(Signature, name="Signature")
register_class(Results, name="Results")

__dir__ = public_dir(__name__)
