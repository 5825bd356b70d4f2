"""BaseGraph: nodes in evaluation order, with inputs and outputs (a Wengert list).

The graph is closed: every operand of a node is an earlier node.  It has the index, the operands and
the consumers of each node, and can be verified and printed.  Its nodes are those of the tape, and
immutable.

    %0 = input x             float64[3]
    %1 = sin %0              float64[3]
    %2 = multiply %1 %0      float64[3]
    %3 = sum %2  [axis=0]    float64[]
    return %3

The public class `Graph` (graphs/graph.py) derives from it and adds evaluation, derivatives and
transformations, which belong to higher layers.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from wengert.errors import ArgumentError, GraphError, at, user_line

from . import pytree
from .display import printed
from .graph_nodes import selected, topological, unique_names, with_effects_in_order
from .handle import Handle, owners_of
from .node import INPUT, LeafOp, Node, constant, is_variable
from .spec import bare, shown
from .symbolic.constraints import Requirement, requirements_of
from .tracing import infer
from .validation import spelled

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Item = Any  # a node of a graph: itself, a tensor on it, its index or its name
AnyGraph = TypeVar("AnyGraph", bound="BaseGraph")


class BaseGraph:
    """The Wengert list of some outputs.

    Parameters
    ----------
    *outputs : Tensor, Node, or nested containers of them
        The outputs; plain values become constants.
    inputs : sequence of Node, optional
        The inputs in order; by default the leaves without a value, in order of creation.
    updates : mapping from Node to Node, optional
        Maps the node of a variable to the node of its next value.
    effects : sequence of Node, optional
        Nodes that run although no output needs them.
    structure : optional
        The pytree structures of the inputs and of the outputs (`core.pytree`), as a pair.
    name : str

    Attributes
    ----------
    nodes : tuple of Node
        The nodes, in an order in which they can be computed.
    inputs, outputs : tuple of Node
        The inputs and outputs of the graph.
    updates : dict
    effects : tuple of Node
    cache_key : bytes or None
        Identifies the traced graph that this one was simplified from, so that a backend finds a
        compiled program on disk without this graph (core/graph_classes.py).

    Raises
    ------
    CycleError
        A node depends on itself (only possible in graphs built by hand).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.tensor([0.0, 1.0], requires_grad=True)
    >>> print(wg.Graph(np.sum(x * 2.0)))
    %0 = input            float64[2]
    %1 = constant 2.      float64[]
    %2 = multiply %0 %1   float64[2]
    %3 = sum %2           float64[]
    return %3
    """

    cache_key: bytes | None = None
    is_deferred = False

    def __init__(
        self,
        *outputs: Any,
        inputs: Sequence[Node] | None = None,
        updates: Mapping[Node, Node] | None = None,
        effects: Sequence[Node] = (),
        structure: tuple[Any, Any] | None = None,
        name: str = "graph",
    ) -> None:
        leaves, out_tree = pytree.flatten(outputs)
        self.outputs = tuple(_node(x) for x in leaves)
        self.updates = _checked_updates(updates)
        self.effects = tuple(_as_nodes(effects, "effects"))
        self.name = name
        inputs = None if inputs is None else _as_nodes(inputs, "inputs")
        roots = (*self.outputs, *self.updates, *self.updates.values(), *self.effects)
        nodes = topological((*roots, *(inputs or ())))
        self.nodes = tuple(with_effects_in_order(nodes, self.effects))
        self._index = {n: i for i, n in enumerate(self.nodes)}
        if inputs is None:
            inputs = [n for n in self.nodes if n.op is INPUT and n.is_traced]
        self.inputs = tuple(inputs)
        _refuse_twice(self.inputs)
        self.structure = structure or (None, out_tree)
        # The graph keeps the tensors alive whose current values it reads when it runs.
        self._owners = owners_of(self.variables)
        self._consumers: list[list[int]] | None = None

    def with_nodes(self: AnyGraph, new: Mapping[Node, Node], name: str | None = None) -> AnyGraph:
        """The same graph with some nodes replaced by others.

        Parameters
        ----------
        new : mapping from Node to Node
            The replacements of nodes of this graph; others stay.
        """
        return type(self)(
            *[new.get(n, n) for n in self.outputs],
            inputs=[new.get(n, n) for n in self.inputs],
            updates={new.get(k, k): new.get(v, v) for k, v in self.updates.items()},
            effects=[new.get(n, n) for n in self.effects],
            structure=self.structure,
            name=name or self.name,
        )

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __getitem__(self, index: int) -> Node:
        return self.nodes[index]

    def __contains__(self, item: object) -> bool:
        node = item.node if isinstance(item, Handle) else item
        return isinstance(node, Node) and node in self._index

    def index(self, item: Any) -> int:
        """The index of a node, or of the node of a tensor.

        Raises
        ------
        GraphError
            It is not in this graph.
        """
        node = item.node if isinstance(item, Handle) else item
        try:
            return self._index[node]
        except (KeyError, TypeError):
            what = repr(node) if isinstance(node, Node) else f"a {type(node).__name__}"
            raise GraphError(f"{what} is not a node of this graph{at(user_line())}.") from None

    def operands(self, index: int) -> tuple[int, ...]:
        """The nodes that a node uses, in order."""
        return tuple([self._index[a] for a in self._at(index).inputs])

    def consumers(self, index: int) -> tuple[int, ...]:
        """The nodes that use a node."""
        if self._consumers is None:
            self._consumers = [[] for _ in self.nodes]
            for i, node in enumerate(self.nodes):
                for a in dict.fromkeys(node.inputs):
                    self._consumers[self._index[a]].append(i)
        self._at(index)
        return tuple(self._consumers[index])

    def _at(self, index: int) -> Node:
        try:
            return self.nodes[operator.index(index)]
        except (TypeError, IndexError):
            raise GraphError(
                f"{index!r} is not an index of a node: this graph has {len(self)}{at(user_line())}."
            ) from None

    def parents(self, index: int) -> tuple[int, ...]:
        """The operands of a node that have a derivative."""
        return tuple(self._index[a] for a in self._at(index).inputs if type(a) is Node)

    def arguments(self, index: int) -> tuple[int, ...]:
        """The operands of a node that have no derivative."""
        return tuple(self._index[a] for a in self._at(index).inputs if type(a) is not Node)

    @property
    def leaves(self) -> tuple[Node, ...]:
        """The nodes without an operation: inputs, variables and constants."""
        return tuple(n for n in self.nodes if n.is_leaf)

    @property
    def variables(self) -> tuple[Node, ...]:
        """The leaves whose value is that of a tensor, read each time the graph runs."""
        return tuple(n for n in self.nodes if is_variable(n))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The unique name of each node."""
        return unique_names(self.nodes)

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        return dict(zip(self.names, self.nodes, strict=True))

    def node(self, item: Item) -> Node:
        """The node given by a name, an index, a tensor or a node.

        Raises
        ------
        GraphError
            It is not in this graph; the message lists similar names.
        """
        if isinstance(item, Handle):
            item = item.node
        if isinstance(item, Node):
            return self.nodes[self.index(item)]
        if isinstance(item, str):
            if item in self._by_name:
                return self._by_name[item]
            near = difflib.get_close_matches(item, self.names, 3)
            hint = f" Did you mean {', '.join(near)}?" if near else ""
            raise GraphError(f"no node of this graph is named {item!r}.{hint}{at(user_line())}")
        try:
            return self.nodes[operator.index(item)]
        except (IndexError, TypeError) as error:
            raise GraphError(
                f"{item!r} is not a node of this graph, which has {len(self)}. Give an index, a "
                f"name, a tensor or a node{at(user_line())}."
            ) from error

    def name_of(self, item: Item) -> str:
        """The name of a node."""
        return self.names[self.index(self.node(item))]

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
        """The nodes that satisfy every condition, in order.

        Parameters
        ----------
        pattern : str or callable, default "*"
            For names or their last part, with the wildcards ``*``, ``?`` and ``[...]``, after the
            scopes that they are in, and before conditions: ``"encoder layer* tanh[level=1]"``. Or a
            predicate of nodes.
        op : str, optional
            The operation's name, with wildcards.
        scope : str, optional
            Nodes in this scope, and in those inside it.
        level : int, optional
            0 for the function itself, k for its k-th derivative.
        kind : str, optional
            INPUT, INPUT_DERIVED, INPUT_DERIVED_NON_DIFF, CONSTANT or CONSTANT_DERIVED.
        where : str, optional
            A part of the user's file and line, such as ``"model.py:12"``.
        **metadata
            Metadata of the nodes from `wengert.scope`.

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
        conditions = {"op": op, "scope": scope, "level": level, "kind": kind, "where": where}
        named = zip(self.names, self.nodes, strict=True)
        return selected(named, pattern, conditions, metadata)

    def ancestors(self, *items: Item) -> tuple[Node, ...]:
        """The nodes that some nodes are computed from, themselves included, in order.

        Parameters
        ----------
        *items : node, tensor, index or name
        """
        indices = {self.index(self.node(item)) for item in items}
        for i in reversed(range(len(self))):
            if i in indices:
                indices.update(self.operands(i))
        return tuple(self.nodes[i] for i in sorted(indices))

    def descendants(self, *items: Item) -> tuple[Node, ...]:
        """The nodes that are computed from some nodes, themselves included, in order."""
        indices = {self.index(self.node(item)) for item in items}
        for i in range(len(self)):
            if i not in indices and not indices.isdisjoint(self.operands(i)):
                indices.add(i)
        return tuple(self.nodes[i] for i in sorted(indices))

    def between(self, sources: Item | Sequence[Item], targets: Item | Sequence[Item]) -> Any:
        """The nodes on the paths from some nodes to others, in order.

        Parameters
        ----------
        sources, targets : node or sequence of nodes

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
        reachable = set(self.descendants(*several(sources)))
        return tuple(n for n in self.ancestors(*several(targets)) if n in reachable)

    @property
    def requirements(self) -> list[Requirement]:
        """The requirements on sizes for this graph to be valid, with those of bodies inside."""
        return requirements_of(self.nodes)

    def verify(self) -> BaseGraph:
        """Check that this is a valid Wengert list, and return it.

        Every operand comes before its use, no node comes twice, every spec is what the operation
        infers from the specs of its operands; in the bodies of loops and branches, too.

        Raises
        ------
        GraphError
            It is not valid; the message names the node.
        """
        seen: set[Node] = set()
        for i, node in enumerate(self.nodes):
            if node in seen:
                raise GraphError(f"node %{i} ({node.op.name}) comes twice.")
            for a in node.inputs:
                if a not in seen:
                    raise GraphError(f"node %{i} ({node.op.name}) uses a node that comes later.")
            seen.add(node)
            if isinstance(node.op, LeafOp) or not node.args:
                continue
            inferred, _ = infer(node.op, tuple([a.spec for a in node.inputs]), node.params)
            if bare(inferred) != bare(node.spec):
                raise GraphError(
                    f"node %{i} ({node.op.name}) has the spec {shown(node.spec)}, but its operands "
                    f"{', '.join(shown(a.spec) for a in node.inputs)} give {shown(inferred)}"
                    f"{at(node.where)}."
                )
            for x in node.params.values():
                for body in x if type(x) is tuple else (x,):
                    if isinstance(body, BaseGraph):
                        _verify_body(body, f"node %{i} ({node.op.name})")
        return self

    def __str__(self) -> str:
        return printed(self)

    def __repr__(self) -> str:
        return f"<Graph of {len(self)} nodes, {len(self.outputs)} outputs>"


def _verify_body(body: BaseGraph, node: str) -> None:
    """Verify the body of a loop or branch."""
    try:
        body.verify()
    except GraphError as error:
        raise GraphError(f"{node}, {body.name}: {error}") from error


def _node(x: Array | Node) -> Node:
    if isinstance(x, Handle):
        return x.node
    return x if isinstance(x, Node) else constant(x)


def _as_nodes(items: Any, what: str) -> list[Node]:
    """The nodes of a sequence of nodes and tensors."""
    several = not isinstance(items, Handle | str) and isinstance(items, Iterable)
    nodes = [x.node if isinstance(x, Handle) else x for x in items] if several else [items]
    if not several or not all(isinstance(x, Node) for x in nodes):
        invalid = items if not several else next(x for x in nodes if not isinstance(x, Node))
        raise GraphError(
            f"the {what} of a graph must be a sequence of its nodes or tensors, not "
            f"a {type(invalid).__name__}{at(user_line())}."
        )
    return nodes


def _refuse_twice(inputs: Sequence[Node]) -> None:
    if len(set(inputs)) < len(inputs):
        repeated = next(n for n in inputs if inputs.count(n) > 1)
        raise GraphError(
            f"the input {repeated.name or repeated.op.name}, {repeated.spec}, is listed twice, so "
            f"its value would be ambiguous. List it once{at(user_line())}."
        )


def _checked_updates(updates: Any) -> dict[Node, Node]:
    if updates is None:
        return {}
    if not isinstance(updates, Mapping):
        raise GraphError(
            f"the updates of a graph must be a mapping from variables to their next values, not a "
            f"{type(updates).__name__}{at(user_line())}."
        )
    variables = _as_nodes(updates, "updates")
    return dict(zip(variables, _as_nodes(updates.values(), "updates"), strict=True))


def check_graph(x: Any, what: str) -> None:
    """Raise ArgumentError if `x` is not a graph."""
    if not isinstance(x, BaseGraph):
        raise ArgumentError(
            f"{what} of {spelled(x)}, which is not a graph. Make one with wengert.trace(f)(...), "
            f"or with wengert.Graph from tensors{at(user_line())}."
        )


def several(items: Any) -> Iterable[Any]:
    """An iterable of nodes, from a sequence of them or from a single one."""
    is_one = not isinstance(items, Iterable) or isinstance(items, str | Node | Handle)
    return (items,) if is_one else items
