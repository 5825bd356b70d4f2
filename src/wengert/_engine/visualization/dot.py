"""The graph in the DOT language of graphviz.

Graphviz is needed only to render the result:

    dot -Tsvg graph.dot > graph.svg

One DOT node for each node, one edge for each operand (two for x * x); colors as in svg.py.
Derivative levels, scopes and loop bodies are nested clusters (explorer/grouping.py,
expand_bodies.py).  Dashed edges carry no value: they are dependences of order, updates (from the
next value of a variable to the variable), and edges from nodes with side effects to a node "run".
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.graph import BaseGraph

from .colors import colors
from .expand_bodies import expanded
from .explorer.grouping import Grouping, NodeGroup, grouping_of
from .node_labels import Names, NodeLabel, graph_of, labels_of

SHAPES = {"input": "box", "constant": "plaintext", "discrete": "box", "operation": "box"}
CLUSTERS = {"level": ("#8794a2", "#f7f9fa"), "scope": ("#b4bec8", "#ffffff")}
DASHED = 'style="dashed", color="#7b8794"'


def to_dot(outputs: Any, names: Names | None = None) -> str:
    r"""The graph that leads to a tensor, as DOT text.

    Parameters
    ----------
    outputs : Tensor, list of Tensor, or Graph
    names : mapping from name to Tensor, or a module, optional
        Names of leaves.

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
    graph, _ = expanded(graph_of(outputs))
    labels = labels_of(graph, names)
    clusters = _clustered(labels, grouping_of(graph, blocks=False))
    body = [*clusters, *(edge for label in labels for edge in _edges(label)), *_dashed(graph)]
    head = '  node [fontname="Helvetica", fontsize=11];'
    return "\n".join(["digraph wengert {", head, *body, "}"])


def _clustered(labels: list[NodeLabel], grouping: Grouping) -> list[str]:
    """The DOT text of the nodes, each inside its clusters."""
    members: list[list[NodeLabel | int]] = [[] for _ in grouping.groups]
    for number, group in enumerate(grouping.groups[1:], start=1):
        members[group.parent].append(number)
    for label in labels:
        members[grouping.home[label.number]].append(label)
    text: list[str] = []
    stack: list[tuple[NodeLabel | int | str, str]] = [(item, "  ") for item in reversed(members[0])]
    while stack:
        item, indent = stack.pop()
        if isinstance(item, str):
            text.append(f"{indent}{item}")
        elif isinstance(item, int):
            text += _opening(item, grouping.groups[item], indent)
            stack.append(("}", indent))
            stack += [(inner, indent + "  ") for inner in reversed(members[item])]
        else:
            text.append(indent + _node(item))
    return text


def _opening(number: int, group: NodeGroup, indent: str) -> list[str]:
    stroke, fill = CLUSTERS.get(group.kind, CLUSTERS["scope"])
    return [
        f"{indent}subgraph cluster_{number} {{",
        f'{indent}  label="{_escaped(group.name)}"; fontname="Helvetica"; fontsize=11;',
        f'{indent}  style="rounded,filled"; color="{stroke}"; fillcolor="{fill}";',
    ]


def _node(item: NodeLabel) -> str:
    fill, stroke, _ = colors(item)
    label = f"{_escaped(item.title)}\\n{_escaped(item.detail)}"
    style = "filled,bold" if item.output else "filled"
    if item.role == "discrete":
        style += ",dashed"
    return (
        f'n{item.number} [label="{label}", shape={SHAPES[item.role]}, style="{style}", '
        f'fillcolor="{fill}", color="{stroke}"];'
    )


def _edges(label: NodeLabel) -> list[str]:
    used = len(label.inputs) - len(label.waits_for)
    return [
        f"  n{a} -> n{label.number}{'' if k < used else f' [{DASHED}]'};"
        for k, a in enumerate(label.inputs)
    ]


def _dashed(graph: BaseGraph) -> list[str]:
    edges = []
    for old, new in graph.updates.items():
        ends = f"n{graph.index(new)} -> n{graph.index(old)}"
        edges.append(f'  {ends} [{DASHED}, label="update", constraint=false];')
    if graph.effects:
        edges.append('  run [label="run", shape=plaintext];')
        edges += [f"  n{graph.index(node)} -> run [{DASHED}];" for node in graph.effects]
    return edges


def _escaped(text: str) -> str:
    """Escape a name for a quoted string: quotes, backslashes and newlines."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(c if c.isprintable() else " " for c in text)
