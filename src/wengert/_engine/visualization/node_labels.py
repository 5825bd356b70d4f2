"""Labels and colors of the nodes of a graph, and the graph as a table of text.

Labels of the nodes of a graph, for drawings and tables.

Roles, which determine colors and styles:

    input      an input of the graph, or a leaf that requires a gradient
    constant   a value without history, or a symbolic size
    discrete   depends on an input, with a derivative known to be zero
    operation  everything else

Colors of nodes: leaves by role, operations by kind.

A color is a triple of fill, stroke and text.  Text is dark on light fills, with a contrast above
4.5 (constants above 3).  The page has a second set with the same hues for dark mode.

Statistics of the values of a graph: range, mean, standard deviation, counts of nonfinite values.

    statistics   the statistics of one value
    values_of    the known values of the nodes of a graph

Numbers are returned as text with six digits, for display, and because JSON has no infinity.

The Wengert list as a table of text, one row for each node.

node  operation    operands  shape         value       kind
%0    x                      float64[2]    [1 2]       INPUT
%1    multiply     %0 %0     float64[2]    [1 4]       INPUT_DERIVED
%2    sum          %1        float64[]     5           INPUT_DERIVED
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.display import GraphName
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import ConstantLeaf, DiscreteLeaf, LeafOp, Node
from wengert._engine.core.node_properties import listed, spelled, stated
from wengert._engine.core.spec import shown, spec_of
from wengert.errors import ArgumentError, WengertError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

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


BINS = 24
Statistics = dict[str, Any]


def statistics(value: Any) -> Statistics:
    """The statistics of a value.

    Parameters
    ----------
    value : array_like

    Returns
    -------
    dict
        ``value`` (itself if small, else its range), ``size``; for arrays with elements ``min``,
        ``max``, ``mean``, ``std`` of the finite elements, counts ``nan``, ``inf``, ``zero``, and
        ``histogram``, counts in equal bins from min to max. For complex numbers, these are the
        statistics of their moduli.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert._engine.visualization.node_labels import statistics
    >>> stats = statistics(np.array([0.0, 1.0, 5.0, np.inf, np.nan]))
    >>> stats["min"], stats["max"], stats["mean"], stats["nan"], stats["inf"]
    ('0', '5', '2', 1, 1)
    """
    if isinstance(value, Handle):
        value = value.node.value
    if isinstance(value, tuple) or spec_of(value) is None:
        return {"value": brief(value)}
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        return {"value": brief(value)}
    numbers = np.abs(array) if array.dtype.kind == "c" else array
    numbers = numbers.astype(np.float64).ravel()
    finite = numbers[np.isfinite(numbers)]
    result: Statistics = {
        "value": brief(value),
        "size": int(array.size),
        "nan": int(np.isnan(numbers).sum()),
        "inf": int(np.isinf(numbers).sum()),
        "zero": int((numbers == 0).sum()),
    }
    if array.dtype.kind == "c":
        result["of"] = "moduli"
    if finite.size:
        result.update(_moments(finite))
    return result


def _moments(finite: np.ndarray[Any, Any]) -> Statistics:
    low, high = float(finite.min()), float(finite.max())
    # Scaled, so that the squares do not overflow.
    scale = max(abs(low), abs(high)) or 1.0
    scaled = finite / scale
    result: Statistics = {
        "min": f"{low:.6g}",
        "max": f"{high:.6g}",
        "mean": f"{float(scaled.mean()) * scale:.6g}",
        "std": f"{float(scaled.std()) * scale:.6g}",
    }
    if finite.size > 1 and high > low:
        bins = min(BINS, max(4, int(np.sqrt(finite.size)) * 2))
        bin_index = np.floor((scaled - low / scale) / (high / scale - low / scale) * bins)
        bin_index = np.clip(np.nan_to_num(bin_index), 0, bins - 1).astype(int)
        result["histogram"] = np.bincount(bin_index, minlength=bins).tolist()
    return result


def values_of(
    graph: BaseGraph, values: int | dict[Any, Any] | list[Operand | None] | None = None
) -> dict[Node, Any]:
    """The known values of the nodes of a graph.

    Parameters
    ----------
    graph : Graph
    values : mapping from Node or Tensor to array, or sequence, optional
        A sequence is aligned with ``graph.nodes``, with None for unknown values. Nodes of an eager
        graph have values of their own.

    Raises
    ------
    ArgumentError
        A sequence of another length, or a key that is not a node.
    """
    known: dict[Node, Any] = {}
    for node in graph.nodes:
        try:
            value = node.value
        except WengertError:  # its array was overwritten
            continue
        if value is not None:
            known[node] = value
    if values is None:
        return known
    if isinstance(values, Mapping):
        known.update({_key(k): v for k, v in values.items()})
    elif isinstance(values, Sequence) and len(values) == len(graph):
        pairs = zip(graph.nodes, values, strict=True)
        known.update({n: v for n, v in pairs if v is not None})
    else:
        text = f"{len(values)} values" if isinstance(values, Sequence) else repr(values)[:60]
        raise ArgumentError(
            f"values= is {text} for a graph of {len(graph)} nodes. Pass a dict from nodes to "
            f"arrays, or a list with an entry for each of graph.nodes{at(user_line())}."
        )
    return known


def _key(key: Any) -> Node:
    if isinstance(key, Handle):
        return key.node
    if isinstance(key, Node):
        return key
    raise ArgumentError(
        f"a key of values= is {key!r:.60}. Use nodes of the graph, or tensors{at(user_line())}."
    )


HEADINGS = ("node", "operation", "operands", "shape", "value", "kind")


def table(outputs: Any, names: Names | None = None, values: bool = True) -> str:
    """The Wengert list that leads to a tensor, as text.

    Parameters
    ----------
    outputs : Tensor, list of Tensor, or Graph
    names : mapping from name to Tensor, or a module, optional
        Names of leaves.
    values : bool, default True
        Whether to show values; for large arrays, their range.

    Returns
    -------
    str
        One row for each node in topological order, followed by the bodies of loops and branches.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import show
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> print(show.table(np.sum(x * x), names={"x": x}))
    node  operation  operands  shape       value  kind
    %0    x                    float64[2]  [1 2]  INPUT
    %1    multiply   %0 %0     float64[2]  [1 4]  INPUT_DERIVED
    %2    sum        %1        float64[]   5      INPUT_DERIVED
    """
    graph = graph_of(outputs)
    text = [_rows(graph, names, values)]
    bodies: dict[Body, None] = {}
    stack = [graph]
    while stack:
        inner = [b for n in stack.pop().nodes for b in bodies_of(n) if b not in bodies]
        bodies.update(dict.fromkeys(inner))
        stack += inner[::-1]
    for body in bodies:
        section = _rows(body, None, values).replace("\n", "\n    ")
        text.append(f"<{body.name}>\n    {section}")
    return "\n".join(text)


def _rows(graph: BaseGraph, names: Names | None, values: bool) -> str:
    rows = [HEADINGS]
    for label in labels_of(graph, names):
        params = stated({k: named(v) for k, v in label.node.params.items()})
        options = "".join(f" {k}={spelled(v)}" for k, v in params.items())
        operands = " ".join(f"%{k}" for k in label.inputs)
        value = brief(label.node.value) if values else ""
        unnamed = label.role == "constant" and label.title == value
        title = "constant" if unnamed else label.title
        row = (f"%{label.number}", title + options, operands, label.detail, value, label.node.kind)
        rows.append(row)
    shown = [c for c in range(len(HEADINGS)) if values or HEADINGS[c] != "value"]
    widths = [max(len(row[c]) for row in rows) for c in shown]
    return "\n".join(
        "  ".join(row[c].ljust(w) for c, w in zip(shown, widths, strict=True)).rstrip()
        for row in rows
    )
