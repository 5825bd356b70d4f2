"""Finding: lines by name, pattern, operation, scope, level, kind, metadata or predicate.

Every line has a name of its own in its graph: the name it was given, or its operation's, after its
scope, with a number where several would be called the same: ``encoder/matmul_2``.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from wengert._engine.core.handle import Handle
from wengert._engine.core.node import Node
from wengert._engine.core.validation import spelled, word
from wengert.errors import ArgumentError, GraphError, at, user_line

from .node_selectors import holds, selector

if TYPE_CHECKING:
    from .graph import Graph

Item = Any  # a line: its node, a tensor on it, its index or its name


class Finding:
    """Mixin: names and selection."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each line, no two alike."""
        graph = cast("Graph", self)
        count: dict[str, int] = {}
        taken: set[str] = set()
        names = []
        for node in graph.nodes:
            word = node.name or node.op.name.strip("_")
            base = name = f"{node.scope}/{word}" if node.scope else word
            while name in taken:
                count[base] = count.get(base, 0) + 1
                name = f"{base}_{count[base]}"
            taken.add(name)
            names.append(name)
        return tuple(names)

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        return dict(zip(self.names, cast("Graph", self).nodes, strict=True))

    def line(self, item: Item) -> Node:
        """The line that is meant by a name, an index, a tensor or a node.

        Raises
        ------
        GraphError
            It is not in this graph; the message lists names that look alike.
        """
        graph = cast("Graph", self)
        if isinstance(item, Handle):
            item = item.node
        if isinstance(item, Node):
            return graph.nodes[graph.index(item)]
        if isinstance(item, str):
            if item in self._by_name:
                return self._by_name[item]
            near = difflib.get_close_matches(item, self.names, 3)
            hint = f" Did you mean {', '.join(near)}?" if near else ""
            raise GraphError(f"no line of this graph is named {item!r}.{hint}{at(user_line())}")
        try:
            return graph.nodes[operator.index(item)]
        except (IndexError, TypeError) as error:
            raise GraphError(
                f"{item!r} is no line of this graph, which has {len(graph)}. Give an index, a "
                f"name, a tensor or a node{at(user_line())}."
            ) from error

    def name_of(self, item: Item) -> str:
        """The name of a line."""
        return self.names[cast("Graph", self).index(self.line(item))]

    def select(
        self,
        pattern: str | Callable[[Node], bool] = "*",
        *,
        op: str | None = None,
        scope: str | None = None,
        level: int | None = None,
        kind: str | None = None,
        where: str | None = None,
        **metadata: Any,
    ) -> tuple[Node, ...]:
        """The lines that satisfy every condition, in order.

        Parameters
        ----------
        pattern : str or callable, default "*"
            For names or their last part, with the wildcards ``*``, ``?`` and ``[...]``, after the
            scopes that they are in, and before conditions: ``"encoder layer* tanh[level=1]"``. Or a
            predicate of nodes.
        op : str, optional
            The operation's name, with wildcards.
        scope : str, optional
            Lines in this scope, and in those inside it.
        level : int, optional
            0 for the function itself, k for its k-th derivative.
        kind : str, optional
            INPUT, INPUT_DERIVED, INPUT_DERIVED_NON_DIFF, CONSTANT or CONSTANT_DERIVED.
        where : str, optional
            A part of the user's file and line, such as ``"model.py:12"``.
        **metadata
            What was said of the lines in `wengert.scope`.

        Returns
        -------
        tuple of Node

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x: np.sum(np.sin(x) * np.cos(x)))(wg.spec(3))
        >>> [n.op.name for n in graph.select(lambda n: n.op.name in ("sin", "cos"))]
        ['sin', 'cos']
        >>> graph.select("mult*")[0].spec
        Spec((3,), float64)
        >>> [n.op.name for n in graph.grad().select("*[op=cos][level=1]")]
        ['cos']
        """
        graph = cast("Graph", self)

        if not callable(pattern):
            word(pattern, "the pattern of select")
        for name, value in {"op": op, "scope": scope, "kind": kind, "where": where}.items():
            if value is not None and not isinstance(value, str):
                raise ArgumentError(
                    f"select: {name} is {spelled(value)}. Give it a word{at(user_line())}."
                )
        given = {"op": op, "scope": scope, "level": level, "kind": kind, "where": where}
        wanted = {k: v for k, v in given.items() if v is not None} | metadata
        fits = (lambda _, node: pattern(node)) if callable(pattern) else selector(pattern)
        return tuple(
            node
            for name, node in zip(self.names, graph.nodes, strict=True)
            if fits(name, node) and all(holds(node, k, v) for k, v in wanted.items())
        )
