"""Parts: what a line depends on, what depends on it, what lies between, and these as graphs.

ancestors, descendants, between   lines, in the order of the graph
subgraph                          some lines computed from some others, as a graph
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import Node
from wengert._engine.core.tracing import placeholder
from wengert.errors import GraphError, at, user_line

from .query import Item

if TYPE_CHECKING:
    from .graph import Graph


class Parts:
    """Mixin: sub-graphs."""

    def ancestors(self, *items: Item) -> tuple[Node, ...]:
        """The lines that some lines are computed from, themselves included, in order.

        Parameters
        ----------
        *items : node, tensor, index or name
        """
        graph = cast("Graph", self)
        found = {graph.index(graph.line(item)) for item in items}
        for i in reversed(range(len(graph))):
            if i in found:
                found.update(graph.operands(i))
        return tuple(graph.nodes[i] for i in sorted(found))

    def descendants(self, *items: Item) -> tuple[Node, ...]:
        """The lines that are computed from some lines, themselves included, in order."""
        graph = cast("Graph", self)
        found = {graph.index(graph.line(item)) for item in items}
        for i in range(len(graph)):
            if i not in found and not found.isdisjoint(graph.operands(i)):
                found.add(i)
        return tuple(graph.nodes[i] for i in sorted(found))

    def between(self, sources: Item | Sequence[Item], targets: Item | Sequence[Item]) -> Any:
        """The lines on a way from some lines to others: the flow between them, in order.

        Parameters
        ----------
        sources, targets : line or sequence of lines

        Returns
        -------
        tuple of Node

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x, y: np.sin(x) * np.cos(y))(1.0, 2.0)
        >>> [n.op.name for n in graph.between("x", graph.outputs[0])]
        ['input', 'sin', 'multiply']
        """
        after = set(self.descendants(*_several(sources)))
        return tuple(n for n in self.ancestors(*_several(targets)) if n in after)

    def subgraph(
        self, outputs: Item | Sequence[Item], inputs: Item | Sequence[Item] | None = None
    ) -> Graph:
        """The part of the graph that computes some lines, as a graph of its own.

        Parameters
        ----------
        outputs : line or sequence of lines
            What it computes.
        inputs : line or sequence of lines, optional
            Lines to be fed instead of computed; by default the inputs of this graph that are
            needed.

        Returns
        -------
        Graph
            Called with one value for each input, in the order given.

        Raises
        ------
        GraphError
            An output cannot be computed from the inputs chosen.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x: np.sum(np.sin(x)))(wg.spec(3))
        >>> tail = graph.subgraph("sum", inputs="sin")
        >>> float(tail(np.ones(3)))
        3.0
        """
        graph = cast("Graph", self)
        wanted = [graph.line(item) for item in _several(outputs)]
        needed = self.ancestors(*wanted)
        if inputs is None:
            fed = [n for n in graph.inputs if n in set(needed)]
            return type(graph)(*wanted, inputs=fed, name=f"part of {graph.name}")
        chosen = [graph.line(item) for item in _several(inputs)]
        new = {n: placeholder(n.spec, graph.name_of(n), type(n) is Node) for n in chosen}
        place = rebuilt(graph.nodes, new)
        part = type(graph)(
            *[place[n] for n in wanted],
            inputs=list(new.values()),
            name=f"part of {graph.name}",
        )
        missing = [n for n in part.nodes if n in set(graph.inputs)]
        if missing:
            raise GraphError(
                f"the output cannot be computed from {', '.join(map(graph.name_of, chosen))} "
                f"alone: {', '.join(str(n.name) for n in missing)} is needed too. Choose it as an "
                f"input{at(user_line())}."
            )
        return part


def _several(items: Any) -> Iterable[Any]:
    several = isinstance(items, Iterable) and not isinstance(items, str | Node | Handle)
    return items if several else (items,)
