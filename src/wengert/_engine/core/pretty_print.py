"""Pretty-printing: a graph as text.

    %0 = input x             float64[3]
    %1 = scan %0             (float64[3], float64[10,3])     [body=<step>, carried=1, length=10]

One line for each node.  The bodies of loops and branches follow, indented, each once, under the
names by which the parameters of their nodes refer to them.

    printed   the text
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .node import CONSTANT, ConstantLeaf, Node
from .node_info import short
from .spec import shown
from .static_params import listed

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand


class Printable(Protocol):
    """The attributes of a graph that are printed."""

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    effects: tuple[Node, ...]
    updates: dict[Node, Node]

    def __len__(self) -> int: ...

    def index(self, item: Any) -> int:
        """The index of a node."""

    def operands(self, index: int) -> Sequence[int]:
        """The indices of the operands of a node."""


INDENT = "    "


class GraphName:
    """The name of a graph in the parameters of a node, in angle brackets."""

    __slots__ = ("__name__",)

    def __init__(self, name: str) -> None:
        self.__name__ = f"<{name}>"


class _Names:
    """Names of the subgraphs of a graph, in the order in which they occur."""

    def __init__(self) -> None:
        self.of: dict[Any, GraphName] = {}
        self._counts: dict[str, int] = {}

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters with subgraphs replaced by names."""
        return {k: self._named(x) for k, x in params.items()}

    def _named(self, x: Any) -> Any:
        if type(x) is tuple:
            return tuple(map(self._named, x))
        if not hasattr(x, "nodes"):
            return x
        if x not in self.of:
            count = self._counts[x.name] = self._counts.get(x.name, 0) + 1
            self.of[x] = GraphName(x.name if count == 1 else f"{x.name} #{count}")
        return self.of[x]


def printed(graph: Printable) -> str:
    """The graph as text."""
    names = _Names()
    text = [_section(graph, names)]
    done = 0
    while done < len(names.of):
        body, name = list(names.of.items())[done]
        done += 1
        section = _section(body, names).replace("\n", f"\n{INDENT}")
        inputs = " ".join(f"%{body.index(n)}" for n in body.inputs)
        takes = f" takes {inputs}" if inputs else ""
        text.append(f"{name.__name__}{takes}\n{INDENT}{section}")
    return "\n".join(text)


def _section(graph: Printable, names: _Names) -> str:
    rows = [_row(graph, i, names) for i in range(len(graph))]
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
    lines = ["   ".join(map(str.ljust, row, (*widths, 0))).rstrip() for row in rows]
    for variable, new in graph.updates.items():
        lines.append(f"update %{graph.index(variable)} to %{graph.index(new)}")
    for node in graph.effects:
        lines.append(f"run %{graph.index(node)}")
    results = " ".join(f"%{graph.index(n)}" for n in graph.outputs)
    return "\n".join([*lines, f"return {results}".rstrip()])


def _row(graph: Printable, i: int, names: _Names) -> tuple[str, str, str, str]:
    node = graph.nodes[i]
    words = [f"%{i} = {node.op.name}"]
    if node.name:
        words.append(node.name)
    elif node.op is CONSTANT and isinstance(node, ConstantLeaf):
        words.append(_brief(node.value))
    words += [f"%{k}" for k in graph.operands(i)]
    options = listed(names.params(node.params)) if node.params else ""
    if options:
        words.append(f" [{options}]")
    level = f"d{node.level}" if node.level else ""
    return " ".join(words), shown(node.spec), level, _location(node)


def _location(node: Node) -> str:
    return f"# {short(node.where)}" if node.where else ""


def _brief(value: Operand) -> str:
    if np.size(value) > 4 or not isinstance(value, np.ndarray | np.generic | int | float):
        return type(value).__name__ if np.size(value) <= 4 else "..."
    return np.array2string(np.asarray(value), separator=",").replace("\n", "")
