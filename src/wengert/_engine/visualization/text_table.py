"""Statistics of the values of a graph: range, mean, standard deviation, counts of nonfinite values.

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
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import Node
from wengert._engine.core.node_properties import spelled, stated
from wengert._engine.core.spec import spec_of
from wengert.errors import ArgumentError, WengertError, at, user_line

from .node_labels import Names, brief, graph_of, labels_of, named

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

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
    >>> from wengert._engine.visualization.text_table import statistics
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
