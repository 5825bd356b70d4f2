"""Labels of the nodes of a graph, for drawings and tables.

Roles, which determine colors and styles:

    input      an input of the graph, or a leaf that requires a gradient
    constant   a value without history, or a symbolic size
    discrete   depends on an input, with a derivative known to be zero
    operation  everything else

Colors of nodes: leaves by role, operations by kind.

A color is a triple of fill, stroke and text.  Text is dark on light fills, with a contrast above
4.5 (constants above 3).  The page has a second set with the same hues for dark mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.display import GraphName
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import ConstantLeaf, DiscreteLeaf, LeafOp, Node
from wengert._engine.core.node_properties import listed
from wengert._engine.core.spec import shown, spec_of
from wengert.errors import ArgumentError, at, user_line

Names = Mapping[str, Any]
ORDER = "after"  # the operation that returns its first operand when the others are computed
LIMIT = 200  # characters of parameters
KINDS = "elementwise reduction view contraction indexing control opaque collective".split()


class NodeLabel(NamedTuple):
    """The label of a node."""

    number: int
    node: Node
    role: str
    kind: str  # of the operation; "" for a leaf
    title: str  # the operation, or the name of a leaf
    detail: str  # shape and dtype
    inputs: tuple[int, ...]
    output: bool

    @property
    def waits_for(self) -> tuple[int, ...]:
        """The operands that it does not use, but that must be computed first."""
        return self.inputs[1:] if self.node.op.name == ORDER else ()

    @property
    def note(self) -> str:
        """The text of the tooltip."""
        operands = " ".join(f"%{k}" for k in self.inputs)
        text = f"%{self.number} = {self.node.op.name} {operands}".rstrip()
        if self.node.params:
            text += f" [{options_of(self.node)}]"
        text += f", {self.detail}"
        return f"{text} (at {self.node.where})" if self.node.where else text


def graph_of(outputs: Any) -> BaseGraph:
    """The graph of some outputs: a Graph unchanged, tensors as the outputs of a new graph."""
    if isinstance(outputs, BaseGraph):
        return outputs
    return BaseGraph(*outputs) if isinstance(outputs, list | tuple) else BaseGraph(outputs)


def labels_of(graph: BaseGraph, names: Names | None = None) -> list[NodeLabel]:
    """The labels of the nodes of a graph.

    Parameters
    ----------
    graph : Graph
    names : mapping from name to Tensor, or a module, optional
        Names of leaves: ``{"x": x}``, ``dict(model.named_parameters())``, or the model itself.
    """
    titles = _titles(names)
    outputs = set(graph.outputs)
    return [_label(i, node, graph, titles, node in outputs) for i, node in enumerate(graph.nodes)]


def _titles(names: Any) -> dict[Node, str]:
    if names is None:
        return {}
    if hasattr(names, "named_parameters"):
        names = dict(names.named_parameters())
    if not isinstance(names, Mapping):
        raise ArgumentError(
            f"names= is a {type(names).__name__}. Pass a dict from names to tensors, or a module"
            f"{at(user_line())}."
        )
    return {x.node: str(name) for name, x in names.items() if isinstance(x, Handle)}


def _label(
    index: int, node: Node, graph: BaseGraph, titles: Mapping[Node, str], output: bool
) -> NodeLabel:
    name = titles.get(node) or node.name
    if isinstance(node.op, LeafOp):
        is_size = "size" in node.params
        role = "constant" if isinstance(node, ConstantLeaf) or is_size else "input"
        title = name or (_constant(node.value) if role == "constant" else node.op.name)
        title = str(node.params["size"]) if is_size else title
        kind = ""
    else:
        role = "discrete" if isinstance(node, DiscreteLeaf) else "operation"
        op = node.op.name.strip("_")
        title = f"{name} = {op}" if name else op
        kind = node.op.kind
    return NodeLabel(
        index, node, role, kind, title, shown(node.spec), graph.operands(index), output
    )


def options_of(node: Node) -> str:
    """The parameters of a node, ``axis=0, keepdims=True``, abbreviated if they are long."""
    text = listed({k: named(x) for k, x in node.params.items()})
    return text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"


def named(x: Any) -> Any:
    """A parameter, with bodies replaced by their names."""
    if type(x) is tuple and x and all(isinstance(b, Body) for b in x):
        return tuple(map(named, x))
    return GraphName(x.name) if isinstance(x, Body) else x


def brief(value: Any) -> str:
    """A short text of a value: the value itself if it is small, else its range."""
    if isinstance(value, tuple):
        return "(" + ", ".join(map(brief, value)) + ")"
    if value is None or spec_of(value) is None:
        return "-" if value is None else str(value)[:12]
    array = np.asarray(value)
    if array.size == 0:
        return "empty"
    if array.ndim == 0:
        return _number(array[()])
    if array.size <= 3 and array.ndim == 1:
        return "[" + " ".join(map(_number, array)) + "]"
    if array.dtype.kind == "b":
        return f"{int(array.sum())} of {array.size} true"
    if array.dtype.kind == "c":
        return f"|z| up to {_number(np.abs(array).max())}"
    return f"{_number(array.min())} to {_number(array.max())}"


def _constant(value: Any) -> str:
    return brief(value) if np.size(value) <= 3 else "constant"


def _number(x: Any) -> str:
    return f"{x:.4g}" if isinstance(x, np.inexact | float | complex) else str(x)


Colors = tuple[str, str, str]

ROLES: dict[str, Colors] = {
    "input": ("#ffe9b8", "#c98a00", "#4d3500"),
    "constant": ("#f7f7f7", "#c4c4c4", "#7d7d7d"),
    "discrete": ("#f1f1f1", "#8a8a8a", "#4a4a4a"),
}
KIND_COLORS: dict[str, Colors] = {
    "elementwise": ("#e3eefb", "#4a7ab5", "#16324f"),
    "reduction": ("#dff3e4", "#3f8f5b", "#123d22"),
    "contraction": ("#ece3f7", "#7c56ab", "#33184f"),
    "view": ("#ffffff", "#9aa5b1", "#3a4550"),
    "indexing": ("#fde4e0", "#c05f4e", "#53190f"),
    "opaque": ("#dcf1f3", "#2f8a94", "#0c3c41"),
}
OTHER: Colors = ("#fbe6f2", "#b04d86", "#4d1236")
VARIABLE: Colors = ("#ffd9b0", "#c9690a", "#4d2700")  # a variable; only on the page

DARK: dict[str, Colors] = {
    "input": ("#4a3a12", "#e0a92e", "#ffe9b8"),
    "variable": ("#4d2f10", "#e08a35", "#ffdcb8"),
    "constant": ("#2a2c30", "#5c6168", "#a9afb8"),
    "discrete": ("#2e3136", "#868d97", "#d2d6dc"),
    "elementwise": ("#1c3350", "#6fa3e0", "#d9e8fb"),
    "reduction": ("#173a25", "#5db57d", "#d3f0dd"),
    "contraction": ("#352450", "#a983da", "#e9ddf8"),
    "view": ("#24282e", "#8794a2", "#d5dbe2"),
    "indexing": ("#4a241e", "#dd8271", "#fbdcd6"),
    "opaque": ("#143a3f", "#4fb0bb", "#d2eff2"),
    "other": ("#47203a", "#d474ac", "#fadceb"),
}


def colors(label: NodeLabel) -> Colors:
    """Fill, stroke and text of the box of a node."""
    return ROLES.get(label.role) or KIND_COLORS.get(label.kind, OTHER)


def legend_name(label: NodeLabel) -> str:
    """The name of the color of a node in the legend."""
    return label.role if label.role in ROLES else label.kind or "other"


def palettes() -> dict[str, dict[str, Colors]]:
    """The colors of the page by the names of the legend, for light and dark mode."""
    return {"light": {**ROLES, "variable": VARIABLE, **KIND_COLORS, "other": OTHER}, "dark": DARK}
