"""Drawings of a graph: in the DOT language, and as SVG.

The graph in the DOT language of graphviz.

Graphviz is needed only to render the result:

    dot -Tsvg graph.dot > graph.svg

One DOT node for each node, one edge for each operand (two for x * x); colors as in the SVG drawing.
Derivative levels, scopes and loop bodies are nested clusters (visualization/node_groups.py,
node_groups.py).  Dashed edges carry no value: they are dependences of order, updates (from the
next value of a variable to the variable), and edges from nodes with side effects to a node "run".

The graph as an SVG document, without graphviz or a drawing library.

Boxes show operation and shape; leaves that require a gradient are yellow, constants pale and
dashed, and operations are colored by kind; outputs have a thick frame.  The tooltip of a node
includes its parameters.  Edges enter a box ordered by their origin; if that is not the order of the
operands, small numbers give the order.  A loop or branch is a box that contains drawings of its
bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.node import Node
from wengert.errors import ArgumentError, at, user_line

from .layout import GraphLayout, Point, arrange
from .node_groups import Grouping, NodeGroup, expanded, grouping_of, marks
from .node_labels import Names, NodeLabel, colors, graph_of, labels_of, legend_name

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
    body = [*clusters, *(edge for label in labels for edge in _dot_edges(label)), *_dashed(graph)]
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


def _dot_edges(label: NodeLabel) -> list[str]:
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


MARGIN = 24.0
HEIGHT = 38.0
LETTER = 7.4  # width of a character of the title
DETAIL_LETTER = 6.1  # width of a character of the line below it
LIMIT = 400
FONT = "Helvetica, Arial, sans-serif"


def to_svg(
    outputs: Any,
    path: str | PathLike[str] | None = None,
    names: Names | None = None,
    title: str = "",
) -> str:
    """Draw the graph of a tensor as SVG.

    Parameters
    ----------
    outputs : Tensor, list of Tensor, or Graph
    path : path, optional
        File to write.
    names : mapping from name to Tensor, or a module, optional
        Names of leaves.
    title : str, optional
        Title of the drawing.

    Returns
    -------
    str
        The SVG document.

    Raises
    ------
    ArgumentError
        There are more than 400 nodes.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import show
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> show.to_svg(np.sum(np.sin(x) * x), names={"x": x}).count("<title>")
    4
    """
    graph = graph_of(outputs)
    count = _count(graph)
    if count > LIMIT:
        raise ArgumentError(
            f"to_svg of {count} nodes: a drawing of more than {LIMIT} is not legible. Draw an "
            f"intermediate result, or use show.table or show.to_dot{at(user_line())}."
        )
    document = _document(_drawn(graph, names), title)
    if path is not None:
        Path(path).write_text(document, encoding="utf-8")
    return document


def _count(graph: BaseGraph) -> int:
    """The number of nodes, including those of bodies."""
    return len(graph) + sum(_count(body) for node in graph.nodes for body in bodies_of(node))


class _Picture(NamedTuple):
    """The labels of some nodes and their layout.

    inside : the pictures of the bodies of each node.
    """

    labels: list[NodeLabel]
    sizes: list[tuple[float, float]]
    layout: GraphLayout
    inside: dict[int, list[_Picture]]


def _drawn(graph: BaseGraph, names: Names | None = None, within: Node | None = None) -> _Picture:
    labels = labels_of(graph, names)
    if within is not None:
        kinds = dict(zip(graph.inputs, marks(within, len(graph.inputs)), strict=True))
        roles = {n: mark.name for n, mark in kinds.items() if mark is not None}
        labels = [label._replace(title=roles.get(label.node, label.title)) for label in labels]
    inside = {
        label.number: [_drawn(body, None, label.node) for body in bodies_of(label.node)]
        for label in labels
        if bodies_of(label.node)
    }
    sizes = [_size(label, inside.get(label.number, ())) for label in labels]
    layout = arrange(sizes, [(k, label.number) for label in labels for k in label.inputs])
    return _Picture(labels, sizes, layout, inside)


def _size(label: NodeLabel, inside: Sequence[_Picture]) -> tuple[float, float]:
    width = max(LETTER * len(label.title), DETAIL_LETTER * len(label.detail)) + 22.0
    if not inside:
        return width, HEIGHT
    inner_width = sum(p.layout.width + MARGIN for p in inside) + MARGIN
    return max(width, inner_width), HEIGHT + max(p.layout.height for p in inside) + MARGIN


def _all_labels(picture: _Picture) -> list[NodeLabel]:
    inner = [label for ps in picture.inside.values() for p in ps for label in _all_labels(p)]
    return [*picture.labels, *inner]


def _document(picture: _Picture, title: str) -> str:
    layout = picture.layout
    legend = _legend(_all_labels(picture))
    top = MARGIN + (30.0 if title else 0.0)
    inner = max(layout.width, sum(w for _, w in legend), LETTER * 1.2 * len(title))
    shift = MARGIN + (inner - layout.width) / 2
    width, height = inner + 2 * MARGIN, top + layout.height + 58.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="{FONT}" text-anchor="middle">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    if title:
        parts.append(
            f'<text x="{width / 2:.1f}" y="{MARGIN + 10:.1f}" font-size="16" font-weight="bold" '
            f'fill="#222">{escape(title)}</text>'
        )
    parts.append(f'<g transform="translate({shift:.1f} {top:.1f})">')
    parts += _drawing(picture)
    parts.append("</g>")
    x = (width - sum(w for _, w in legend)) / 2
    for text, w in legend:
        parts.append(f'<g transform="translate({x:.1f} {height - 30:.1f})">{text}</g>')
        x += w
    return "\n".join([*parts, "</svg>\n"])


def _drawing(picture: _Picture) -> list[str]:
    """Edges, boxes, and the contents of boxes."""
    labels, sizes, layout, inside = picture
    parts = _edges(labels, sizes, layout)
    for label in labels:
        width, height = sizes[label.number]
        x, y = layout.centers[label.number]
        pictures = inside.get(label.number, [])
        parts.append(_box(label, width, height, x, y, bool(pictures)))
        left = x - (sum(p.layout.width + MARGIN for p in pictures) - MARGIN) / 2
        for inner in pictures:
            top = y - height / 2 + HEIGHT
            parts.append(f'<g transform="translate({left:.1f} {top:.1f})">')
            parts += [*_drawing(inner), "</g>"]
            left += inner.layout.width + MARGIN
    return parts


def _box(
    label: NodeLabel, width: float, height: float, x: float, y: float, is_expanded: bool
) -> str:
    fill, stroke, ink = colors(label)
    weight = 2.6 if label.output else 1.2
    dash = ' stroke-dasharray="4 3"' if label.role in ("constant", "discrete") else ""
    corner = 4 if label.role == "operation" else height / 2
    name = ' font-weight="bold"' if label.role != "constant" else ""
    middle = y - height / 2 + HEIGHT / 2 if is_expanded else y
    return (
        f"<g><title>{escape(label.note)}</title>"
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="{corner:.0f}" fill="{fill}" stroke="{stroke}" '
        f'stroke-width="{weight}"{dash}/>'
        f'<text x="{x:.1f}" y="{middle - 2:.1f}" font-size="13"{name} fill="{ink}">'
        f"{escape(label.title)}</text>"
        f'<text x="{x:.1f}" y="{middle + 12:.1f}" font-size="10.5" fill="{ink}" fill-opacity="0.8">'
        f"{escape(label.detail)}</text></g>"
    )


# ---- edges -------------------------------------------------------------------------------------


def _edges(
    labels: Sequence[NodeLabel], sizes: Sequence[tuple[float, float]], layout: GraphLayout
) -> list[str]:
    leaving = _leaving(labels, sizes, layout)
    parts = []
    for label in labels:
        operands = list(dict.fromkeys(label.inputs))
        came_from = {k: layout.routes[k, label.number][-2][0] for k in operands}
        arriving = sorted(operands, key=came_from.__getitem__)
        numbered = arriving != operands and not label.node.op.commutative
        width, height = sizes[label.number]
        x, y = layout.centers[label.number]
        for slot, k in enumerate(arriving):
            end = (x + _port(slot, len(arriving), width), y - height / 2)
            points = [leaving[k, label.number], *layout.routes[k, label.number][1:-1], end]
            pale = labels[k].role == "constant"
            stroke, weight = ("#c4c4c4", 1.0) if pale else ("#7b8794", 1.4)
            parts.append(
                f'<path d="{_curve(points)}" fill="none" stroke="{stroke}" '
                f'stroke-width="{weight}"/>' + _head(end, stroke)
            )
            times = label.inputs.count(k)
            text = f"{times}×" if times > 1 else str(operands.index(k) + 1) if numbered else ""
            if text:
                parts.append(
                    f'<text x="{end[0] + 8:.1f}" y="{end[1] - 9:.1f}" font-size="9.5" '
                    f'fill="#5a6570">{text}</text>'
                )
    return parts


def _leaving(
    labels: Sequence[NodeLabel], sizes: Sequence[tuple[float, float]], layout: GraphLayout
) -> dict[tuple[int, int], Point]:
    """The point where each edge leaves its box; from left to right in the order of their ends."""
    targets: dict[int, list[int]] = {}
    for a, b in layout.routes:
        targets.setdefault(a, []).append(b)
    points = {}
    for a, ends in targets.items():
        x, y = layout.centers[a]
        width, height = sizes[a]
        goes_to = {b: layout.routes[a, b][1][0] for b in ends}
        ends.sort(key=goes_to.__getitem__)
        for slot, b in enumerate(ends):
            points[a, b] = (x + _port(slot, len(ends), width), y + height / 2)
    return points


def _port(slot: int, count: int, width: float) -> float:
    """The offset of a port from the middle of a side."""
    step = min(16.0, (width - 20.0) / max(1, count))
    return (slot - (count - 1) / 2) * step


def _curve(points: Sequence[Point]) -> str:
    """A curve through the points, vertical at each of them."""
    (x, y), *others = points
    commands = [f"M{x:.1f} {y:.1f}"]
    for end_x, end_y in others:
        bend = (end_y - y) / 2
        commands.append(
            f"C{x:.1f} {y + bend:.1f} {end_x:.1f} {end_y - bend:.1f} {end_x:.1f} {end_y:.1f}"
        )
        x, y = end_x, end_y
    return " ".join(commands)


def _head(end: Point, fill: str) -> str:
    x, y = end
    return (
        f'<path d="M{x - 3.5:.1f} {y - 7:.1f} L{x:.1f} {y:.1f} L{x + 3.5:.1f} {y - 7:.1f} Z" '
        f'fill="{fill}"/>'
    )


def _legend(labels: Sequence[NodeLabel]) -> list[tuple[str, float]]:
    """A swatch with its name for each color in use, and its width."""
    seen = {legend_name(label): colors(label) for label in labels}
    parts = []
    for name, (fill, stroke, _) in seen.items():
        swatch = (
            f'<rect width="14" height="10" rx="2" fill="{fill}" stroke="{stroke}"/>'
            f'<text x="20" y="9" font-size="11" fill="#444" text-anchor="start">{name}</text>'
        )
        parts.append((swatch, 20 + DETAIL_LETTER * len(name) + 18.0))
    return parts
