"""Graphs you can hold: built by tracing or by hand, transformed, run, looked at, kept.

graph.py         Graph: a list with everything that can be done with it, made of finding.py (by
                 selectors.py), parts.py, surgery.py, transforming.py, looking.py, pickling.py
trace.py         trace: the graph of a Python function (building.py: the run that writes it down)
calling.py       containers of arguments and results; again.py: the lines written down once more
inputs.py        input, spec, variable: what graphs are built by hand from
computation.py   computation: outputs and inputs as a callable
derivatives.py   gradients: of tensors by tensors, for graphs built by hand
explain.py       explain: what a function does, line by line of its program
why.py           why: why a gradient is None, zero, NaN, huge, tiny or slow (diagnosis/)
"""

from ..keep import load, register_class, register_graph, save
from .calling import Results, Signature
from .computation import Computation, computation
from .derivatives import gradients
from .explain import explain
from .graph import Graph
from .inputs import input, spec, variable
from .trace import trace
from .why import why

__all__ = [
    "Computation",
    "Graph",
    "computation",
    "explain",
    "gradients",
    "input",
    "load",
    "save",
    "spec",
    "trace",
    "variable",
    "why",
]

register_graph(Graph)
register_class(Signature, name="Signature")
register_class(Results, name="Results")
