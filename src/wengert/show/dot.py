"""The graph in the DOT language, which graphviz and many viewers read.

Writing it needs no graphviz; drawing it does, later and elsewhere:

    dot -Tsvg graph.dot > graph.svg

One node for each line, one edge for each operand (two for x * x); colours as in svg.py.
"""

from __future__ import annotations

from typing import Any

from .lines import Line, Names, graph_of, lines_of
from .style import colours

SHAPES = {"input": "box", "constant": "plaintext", "discrete": "box", "operation": "box"}


def to_dot(outputs: Any, names: Names | None = None) -> str:
    r"""The graph that leads to a tensor, as DOT text.

    Parameters
    ----------
    outputs : Tensor, list of Tensor, or Graph
    names : mapping from name to Tensor, or a module, optional
        What to call leaves.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert import show
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> for line in show.to_dot(x * x, names={"x": x}).splitlines():
    ...     print(line[:60])
    digraph wengert {
      node [fontname="Helvetica", fontsize=11];
      n0 [label="x\nfloat64[]", shape=box, style="filled", fillc
      n1 [label="multiply\nfloat64[]", shape=box, style="filled,
      n0 -> n1;
      n0 -> n1;
    }
    """
    lines = lines_of(graph_of(outputs), names)
    edges = [f"  n{k} -> n{line.number};" for line in lines for k in line.inputs]
    body = [*map(_node, lines), *edges]
    head = '  node [fontname="Helvetica", fontsize=11];'
    return "\n".join(["digraph wengert {", head, *body, "}"])


def _node(line: Line) -> str:
    fill, stroke, _ = colours(line)
    label = f"{_escaped(line.title)}\\n{_escaped(line.detail)}"
    style = "filled,bold" if line.output else "filled"
    if line.role == "discrete":
        style += ",dashed"
    return (
        f'  n{line.number} [label="{label}", shape={SHAPES[line.role]}, style="{style}", '
        f'fillcolor="{fill}", color="{stroke}"];'
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
