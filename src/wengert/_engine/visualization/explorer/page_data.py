"""Source text of the user's lines, read when a page is made.

A page may be viewed where the source is not available, so it contains the text.  Only the lines
that nodes refer to are read.

The data of a page: graphs, before and after each pass, as columns of numbers and strings once.

    texts     all strings; columns contain indices into this list (0 is the empty string)
    ops       name, kind, formula and first sentence of each operation
    places    file, line, function and text of each of the user's lines
    lines     columns, with one entry for each node of any of the graphs
    steps     nodes, outputs, updates, effects, groups and changes of each graph

A node has the same entries in all graphs that contain it, so a history of many steps needs little
more memory than its last step.  page/data.js reads the data:

A pass makes new nodes for everything that depends on a changed node.  So nodes are matched by
identity first, and then by content (operation, parameters, spec, user's line, scope), in order.
Nodes without a match were removed or are new.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import CONSTANT, ConstantLeaf, LeafOp, Node, is_variable
from wengert._engine.core.node_properties import frozen, place_of
from wengert._engine.core.spec import shown
from wengert._engine.visualization.node_groups import grouping_of, level_name
from wengert._engine.visualization.node_labels import (
    ORDER,
    NodeLabel,
    brief,
    labels_of,
    legend_name,
    options_of,
    statistics,
)
from wengert.errors import ArgumentError, at, user_line

LIMIT = 200  # characters


class SourceLine(NamedTuple):
    """A line of the user's program."""

    file: str  # relative to the working directory if it is below it
    line: int
    function: str
    text: str  # empty if it could not be read


def source_of(where: str | None) -> SourceLine | None:
    """The line at a source location ``"file.py:12, in f"``."""
    location = place_of(where)
    if location is None:
        return SourceLine(where, 0, "", "") if where else None
    file, text = _relative(location.file), location.text[:LIMIT]
    return SourceLine(file, location.line, location.function, text)


def _relative(path: str) -> str:
    try:
        return Path(path).relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        parts = Path(path).parts
        return "/".join(parts[-2:]) if len(parts) > 2 else path


class HistoryStep(NamedTuple):
    """A graph, the title of the step that made it, and a note about the step."""

    title: str
    graph: BaseGraph
    note: str


class Change(NamedTuple):
    """The changes of a step.

    before : the index of each node in the graph before; -1 for a new node.
    rewired : nodes of which only the operands have changed.
    """

    before: list[int]
    rewired: list[int]


def steps_of(graph: BaseGraph, history: Any = None) -> list[HistoryStep]:
    """The steps that lead to a graph; a single one if no history is given.

    Parameters
    ----------
    graph : Graph
    history : sequence of (title, graph) or (title, graph, note), optional
        Or an object with an attribute ``steps``, as `wengert.rewrite` records: each step has
        ``name``, ``before``, ``after`` and optionally ``counts``, how often each rule was applied.

    Raises
    ------
    ArgumentError
        `history` is neither.
    """
    if history is None:
        return [HistoryStep(graph.name, graph, "")]
    recorded = getattr(history, "steps", None)
    items = _recorded(recorded) if recorded is not None else history
    steps: list[HistoryStep] = []
    for item in items:
        if isinstance(item, HistoryStep):
            steps.append(item)
        elif (
            isinstance(item, tuple | list)
            and len(item) in (2, 3)
            and isinstance(item[1], BaseGraph)
        ):
            steps.append(HistoryStep(str(item[0]), item[1], str(item[2]) if len(item) > 2 else ""))
        else:
            raise ArgumentError(
                f"an entry of history= is {item!r:.80}. Give pairs of a title and a graph"
                f"{at(user_line())}."
            )
    if not steps or steps[-1].graph is not graph:
        steps.append(HistoryStep("result" if steps else graph.name, graph, ""))
    return steps


def _recorded(recorded: Sequence[Any]) -> list[HistoryStep]:
    steps: list[HistoryStep] = []
    for step in recorded:
        if not steps:
            steps.append(HistoryStep("original", step.before, ""))
        counts = getattr(step, "counts", None) or {}
        rules = [name if n == 1 else f"{name} ×{n}" for name, n in counts.items()]
        steps.append(HistoryStep(str(step.name), step.after, ", ".join(rules)))
    return steps


def change(before: BaseGraph, after: BaseGraph) -> Change:
    """The correspondence of the nodes of a graph before and after a step."""
    index = {node: i for i, node in enumerate(before.nodes)}
    removed: dict[Hashable, deque[int]] = {}
    remaining = set(after.nodes)
    for i, node in enumerate(before.nodes):
        if node not in remaining:
            removed.setdefault(_signature(node), deque()).append(i)
    was = []
    for node in after.nodes:
        i = index.get(node, -1)
        if i < 0:
            candidates = removed.get(_signature(node))
            i = candidates.popleft() if candidates else -1
        was.append(i)
    rewired = [
        k
        for k, i in enumerate(was)
        if i >= 0 and [was[a] for a in after.operands(k)] != list(before.operands(i))
    ]
    return Change(was, rewired)


def _signature(node: Node) -> Hashable:
    content = (node.op, frozen(node.params), str(node.spec), node.name, node.where, node.scope)
    value = None if node.is_traced or np.size(node.value) > 100 else brief(node.value)
    return (*content, node.level, len(node.args), value)


COLUMNS = "op tone name spec kind params place scope level inline meta args".split()
Data = dict[str, Any]


class Page:
    """Collects the data of a page.

    Parameters
    ----------
    names : mapping from name to Tensor, or a module, optional
    values : mapping from Node to value
    """

    def __init__(self, names: Any, values: Mapping[Node, Any]) -> None:
        self.names = names
        self.values = values
        self._texts: dict[str, int] = {"": 0}
        self._ops: dict[Any, int] = {}
        self._op_rows: list[Data] = []
        self._places: dict[str, int] = {"": 0}
        self._place_rows: list[Any] = [0]
        self._number: dict[Node, int] = {}
        self._columns: dict[str, list[Any]] = {c: [] for c in COLUMNS}
        self._statistics: dict[int, Data] = {}
        self._levels: set[int] = set()

    def data(self, steps: list[HistoryStep], title: str) -> Data:
        """All data, as it is written as JSON."""
        rows = []
        for k, step in enumerate(steps):
            row = self._graph(step.graph)
            row["title"], row["note"] = step.title, step.note
            if k:
                difference = change(steps[k - 1].graph, step.graph)
                row["before"], row["rewired"] = difference.before, difference.rewired
            rows.append(row)
        return {
            "title": title,
            "texts": list(self._texts),
            "ops": self._op_rows,
            "places": self._place_rows,
            "levels": {str(k): level_name(k) for k in sorted(self._levels)},
            "lines": self._columns,
            "statistics": {str(k): v for k, v in self._statistics.items()},
            "steps": rows,
        }

    def _graph(self, graph: BaseGraph) -> Data:
        ends = {*graph.outputs, *graph.updates, *graph.updates.values(), *graph.effects}
        for label in labels_of(graph, self.names):
            if label.node not in self._number:
                self._add(label, label.node in ends or not graph.consumers(label.number))
        groups, home = grouping_of(graph)
        return {
            "lines": [self._number[n] for n in graph.nodes],
            "outputs": [graph.index(n) for n in graph.outputs],
            "updates": [[graph.index(a), graph.index(b)] for a, b in graph.updates.items()],
            "effects": [graph.index(n) for n in graph.effects],
            "groups": [[g.kind, self._text(g.name), g.parent] for g in groups],
            "home": home,
        }

    def _add(self, label: NodeLabel, has_box: bool) -> None:
        node = label.node
        number = self._number[node] = len(self._number)
        self._levels.add(node.level)
        metadata = node.metadata
        row = {
            "op": self._op(node),
            "tone": self._text(_tone(label)),
            "name": self._text(_name(label)),
            "spec": self._text(label.detail),
            "kind": self._text(node.kind),
            "params": self._text(options_of(node)),
            "place": self._place(node.where),
            "scope": self._text(node.scope),
            "level": node.level,
            "inline": 0 if has_box else self._text(_inline(label)),
            "meta": self._text(", ".join(f"{k}={v!r}"[:200] for k, v in metadata.items())),
            "args": [self._number[a] for a in node.inputs],
        }
        for column, item in row.items():
            self._columns[column].append(item)
        if node in self.values:
            self._statistics[number] = statistics(self.values[node])

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _op(self, node: Node) -> int:
        number = self._ops.get(node.op)
        if number is None:
            number = self._ops[node.op] = len(self._op_rows)
            self._op_rows.append(_described(node.op))
        return number

    def _place(self, where: str | None) -> int:
        key = where or ""
        if key not in self._places:
            self._places[key] = len(self._place_rows)
            self._place_rows.append(source_of(key))
        return self._places[key]


def _name(label: NodeLabel) -> str:
    if isinstance(label.node.op, LeafOp):
        return label.title if label.title != label.node.op.name else ""
    return label.title.partition(" = ")[0] if " = " in label.title else ""


def _tone(label: NodeLabel) -> str:
    tone = legend_name(label)
    return "variable" if tone == "input" and is_variable(label.node) else tone


def _inline(label: NodeLabel) -> str:
    """The text of a node that its users show instead of a box of its own: a number, a size."""
    node = label.node
    if label.role == "constant" and "size" in node.params:
        return label.title
    if isinstance(node, ConstantLeaf) and node.op is CONSTANT and not node.args:
        value = node.value
        return (node.name or brief(value)) if np.size(value) == 1 else ""
    if node.op.name == "full" and not node.args and shown(node.spec).endswith("[]"):
        return brief(node.params.get("value"))
    return ""


def _described(op: Any) -> Data:
    row: Data = {"name": op.name}
    if isinstance(op, LeafOp):
        return row
    row["kind"] = op.kind
    if op.name == ORDER:
        row["waits"] = 1
    formula = getattr(op, "formula", None)
    if formula is not None:
        left, right = f"{op.name}({', '.join(op.arguments)})", formula()
        row["formula"] = left if left == right else f"{left} = {right}"
    row["doc"] = _first_sentence(op.__doc__ or "")
    return row


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    match = re.match(r".+?[.!?](?= +[A-Z]|$)", paragraph)
    return (match.group() if match else paragraph)[:300]
