"""Labels of the nodes of a graph, for drawings and tables.

Roles, which determine colors and styles:

    input      an input of the graph, or a leaf that requires a gradient
    constant   a value without history, or a symbolic size
    discrete   depends on an input, with a derivative known to be zero
    operation  everything else
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import ConstantLeaf, DiscreteLeaf, LeafOp, Node
from wengert._engine.core.pretty_print import GraphName
from wengert._engine.core.spec import shown, spec_of
from wengert._engine.core.static_params import listed
from wengert._engine.core.subgraph import Body
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
