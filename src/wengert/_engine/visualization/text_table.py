"""The Wengert list as a table of text, one row for each node.

node  operation    operands  shape         value       kind
%0    x                      float64[2]    [1 2]       INPUT
%1    multiply     %0 %0     float64[2]    [1 4]       INPUT_DERIVED
%2    sum          %1        float64[]     5           INPUT_DERIVED
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.static_params import spelled, stated
from wengert._engine.core.subgraph import Body, bodies_of

from .node_labels import Names, brief, graph_of, labels_of, named

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
