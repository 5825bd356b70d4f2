"""Surgery: a graph with some lines in place of others.

What depends on a line that changes is written down again, so shapes, dtypes and kinds follow, and
are checked; everything else is shared with the graph it came from, which stays as it was.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.graph import Graph as Lines
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.node import CONSTANT, Constant, Leaf, Node, constant
from wengert._engine.core.op import Op, lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.static_params import stated
from wengert._engine.core.tracing import derivation, placeholder, record
from wengert._engine.core.validation import spelled
from wengert.errors import ArgumentError, GraphError, at, user_line

from .query import Item

if TYPE_CHECKING:
    from .graph import Graph


class Surgery:
    """Mixin: changed copies."""

    def substitute(self, replacements: Mapping[Item, Any]) -> Graph:
        """The graph with some lines replaced.

        Parameters
        ----------
        replacements : mapping
            From a line (node, tensor, index or name) to what takes its place: a tensor built from
            lines of this graph or from `wengert.input`, an array, or a number.

        Returns
        -------
        Graph
            Inputs that are replaced are no longer fed; new ones come after the others.

        Raises
        ------
        ShapeError, DtypeError
            What depends on the line does not fit the replacement.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x, y: x * y)(1.0, 1.0)
        >>> float(graph.substitute({"y": 10.0})(3.0))
        30.0
        """
        graph = cast("Graph", self)
        if not isinstance(replacements, Mapping):
            raise ArgumentError(
                f"substitute: {spelled(replacements)} does not say what to replace. Give a "
                f"dictionary from lines to what takes their place{at(user_line())}."
            )
        new = {graph.line(item): _line(x) for item, x in replacements.items()}
        return self._with(new)

    def with_operation(self, item: Item, op: str | Op, **params: Any) -> Graph:
        """The graph with another operation at a line, on the same operands.

        Parameters
        ----------
        item : node, tensor, index or name
        op : str or Op
            The operation, or its name in the registry.
        **params
            Its parameters; by default those of the operation it replaces, as far as it has them.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> graph = wg.trace(lambda x: np.sum(np.sin(x)))(wg.spec(2))
        >>> float(graph.with_operation("sin", "cos")(np.zeros(2)))
        2.0
        """
        graph = cast("Graph", self)
        node = graph.line(item)
        if not node.args:
            raise GraphError(
                f"{graph.name_of(node)} is no operation but {node.op.name}. Replace it with "
                f"substitute{at(user_line())}."
            )
        chosen = lookup(op) if isinstance(op, str) else op
        if not isinstance(chosen, Op):
            raise ArgumentError(
                f"with_operation: {spelled(op)} is no operation. Give one, or the name of one"
                f"{at(user_line())}."
            )
        with derivation(node.level) as stem:
            stem.enter(node)
            args = [_handle(a) for a in node.inputs]
            made = record(chosen, args, params or _accepted(chosen, node.params))
        return self._with({node: _line(made)})

    def copy(self) -> Graph:
        """The graph with lines and inputs of its own; variables are shared."""
        graph = cast("Graph", self)
        new = {n: placeholder(n.spec, n.name, type(n) is Node) for n in graph.inputs}
        return graph.with_lines(rebuilt(graph.nodes, new))

    def __copy__(self) -> Graph:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Graph:
        return self.copy()

    def _with(self, new: dict[Node, Node]) -> Graph:
        graph = cast("Graph", self)
        place: dict[Node, Node] = dict(new)
        with derivation(0) as stem:
            for node in graph.nodes:
                if node not in place:
                    place[node] = _followed(node, place, stem)
        fresh = [n for line in new.values() for n in Lines(line).inputs]
        inputs = [n for n in graph.inputs if n not in new]
        more = [n for n in dict.fromkeys(fresh) if n not in graph.inputs]
        changed = any(n in new for n in graph.inputs) or more
        return type(graph)(
            *[place[n] for n in graph.outputs],
            inputs=[*inputs, *more],
            updates={k: place[v] for k, v in graph.updates.items()},
            effects=[place[n] for n in graph.effects],
            structure=(None, graph.structure[1]) if changed else graph.structure,
            name=graph.name,
        )


def _accepted(op: Op, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that an operation knows; those that nobody chose may be missing."""
    known: Mapping[str, Any] = {}
    with contextlib.suppress(TypeError, ValueError):  # a ufunc has none
        known = inspect.signature(op.run).parameters
    unknown = [k for k in stated(params) if k not in known]
    if unknown:
        raise ArgumentError(
            f"{op.name} has no parameter {unknown[0]}. State its parameters{at(user_line())}."
        )
    return {k: v for k, v in params.items() if k in known}


def _followed(node: Node, place: Mapping[Node, Node], stem: Any) -> Node:
    """A line on its operands as they are now: itself if they are the same."""
    if isinstance(node.op, Leaf) or all(place[a] is a for a in node.inputs):
        return node
    stem.enter(node)
    stem.level = node.level
    weak = isinstance(node.spec, Spec) and node.spec.weak
    args = [_handle(place[a]) for a in node.inputs]
    stem.stays_linear(node, args)
    made = record(node.op, args, node.params, weak)
    if isinstance(made, tuple):
        return made[0].node.args[0]  # type: ignore[no-any-return]
    line: Node = made.node
    if node.name:
        line.note(name=node.name)
    return line


def _handle(node: Node) -> Any:
    """A line as an operand; constants as they are, for rules know plain numbers as such."""
    return node.value if node.op is CONSTANT and isinstance(node, Constant) else wrap(node)


def _line(x: Any) -> Node:
    if isinstance(x, Handle):
        return x.node
    if isinstance(x, Node):
        return x
    if not isinstance(describe(x), Spec):
        raise ArgumentError(
            f"{spelled(x)} cannot stand in a graph. Give a tensor, an array or a number"
            f"{at(user_line())}."
        )
    return constant(x)
