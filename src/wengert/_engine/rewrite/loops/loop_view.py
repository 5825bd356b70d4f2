"""Loop view: the parts of a loop node, and nodes with other bodies or operands.

LoopView     a scan or while: its count, consts, carry and rows; the outputs of its body
Rewiring     replacements of nodes, applied to the nodes that use them
like         a node with other operands and parameters
with_bodies  a node with other operands and bodies
inlined      the outputs of a body, computed from operands instead of its inputs
held         the same value without derivative
parts_of     selected outputs of a node
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import rebuilt, with_replaced
from wengert._engine.core.node import NO_PARAMS, ConstantLeaf, DiscreteLeaf, LeafOp, Node
from wengert._engine.core.node_properties import frozen, substituted
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import at_sizes
from wengert._engine.core.tracing import infer, part_of

if TYPE_CHECKING:
    from wengert._engine.core.types import Size


class LoopView:
    """The parts of the node of a loop.

    Attributes
    ----------
    node : Node
    body : Body
    condition : Body or None
        Of a while.
    count : tuple of Node
        The number of steps, if it is an operand.
    consts, carry, rows : tuple of Node
        Operands; the loop runs over `rows`.
    """

    def __init__(self, node: Node) -> None:
        params, args = node.params, node.inputs
        self.node, self.params = node, params
        self.body: Body = params["body"]
        self.condition: Body | None = params.get("condition")
        self.carried: int = params["carried"]
        counted = int(params.get("counted", False))
        stacked = params.get("stacked", 0)
        self.count, args = args[:counted], args[counted:]
        self.fixed = fixed = len(args) - self.carried - stacked
        self.consts, self.carry = args[:fixed], args[fixed : fixed + self.carried]
        self.rows = args[fixed + self.carried :]
        self.is_while = node.op.name == "while"

    @property
    def length(self) -> Any:
        """The number of steps: an int, a symbolic size, a size known after the loop, or None."""
        return self.params["length"]

    def output(self, index: int) -> int:
        """The position in the results of the loop of an output of its body."""
        return index + (self.is_while and index >= self.carried)

    def of_body(self, index: int) -> int | None:
        """The position in the outputs of the body of a result of the loop; None for the count."""
        if self.is_while and index >= self.carried:
            return index - 1 if index > self.carried else None
        return index

    def with_body(
        self,
        body: Body,
        condition: Body | None,
        consts: Sequence[Node],
        carry: Sequence[Node],
        rows: Sequence[Node],
        *,
        length: Size | None = None,
    ) -> Node:
        """A loop of the same kind with another body, and operands for its inputs."""
        params = {**self.params, "body": body, "carried": len(carry)}
        if self.is_while:
            params["condition"] = condition
        else:
            params["stacked"] = len(rows)
        if length is not None:
            params["length"] = length
        return like(self.node, (*self.count, *consts, *carry, *rows), params)


def like(node: Node, args: tuple[Node, ...], params: dict[str, Any]) -> Node:
    """A node of the same operation with other operands and parameters."""
    spec, _ = infer(node.op, tuple([a.spec for a in args]), params)
    info = node.info_with(spec=spec)
    if info.linear:  # the positions of operands may have changed
        linear = {node.args[k] for k in info.linear}
        info.linear = tuple([k for k, a in enumerate(args) if a in linear])
    return type(node)(node.op, args, params, None, info)


def with_bodies(node: Node, args: tuple[Node, ...], bodies: Mapping[Body, Body]) -> Node:
    """A node of the same operation with other operands, and replaced bodies."""

    def replaced(x: Any) -> Any:
        if type(x) is tuple and x and all(isinstance(b, Body) for b in x):
            return tuple([bodies[b] for b in x])
        return bodies[x] if isinstance(x, Body) else x

    return like(node, args, {k: replaced(x) for k, x in node.params.items()})


class Rewiring:
    """Replacements of nodes, applied to the nodes that use them.

    Parameters
    ----------
    lengths : mapping, optional
        Replacements of symbolic sizes, by name.

    Attributes
    ----------
    replacements : dict
        The replacements of nodes; a node that is not in it stays as it is.
    parts : dict
        For a node with several outputs the replacement of each.
    """

    def __init__(self, lengths: Mapping[str, Any] | None = None) -> None:
        self.lengths = lengths or {}
        self.replacements: dict[Node, Node] = {}
        self.parts: dict[Node, Mapping[int, Node]] = {}

    def replaced(self, nodes: Iterable[Node]) -> list[Node]:
        """Nodes with replacements applied."""
        return [self.replacements.get(n, n) for n in nodes]

    def replace(self, node: Node, parts: Mapping[int, Node]) -> None:
        """Replace the outputs of a node."""
        self.parts[node] = {
            k: stopped_like(node, k, replacement) for k, replacement in parts.items()
        }
        self.replacements[node] = node

    def follow(self, node: Node) -> None:
        """Rebuild a node that is not itself replaced."""
        if node.op is PART and node.args[0] in self.parts:
            replacement = self.parts[node.args[0]].get(node.params["index"])
            if replacement is None:
                return  # an operand of a removed node
            if node.name is not None and replacement.op is PART and replacement.name is None:
                replacement.note(name=node.name)
            self.replacements[node] = replacement
        elif node not in self.replacements and (self.replacements or self.lengths):
            changed = self._renamed(node) if self.lengths and node.args else None
            rebuilt_node = with_replaced(node, self.replacements) if changed is None else changed
            if rebuilt_node is not node:
                self.replacements[node] = rebuilt_node

    def _renamed(self, node: Node) -> Node | None:
        """A node with replaced sizes and operands; None if it has no such sizes."""
        lengths = self.lengths
        spec, params = at_sizes(node.spec, lengths), substituted(node.params, lengths)
        if spec == node.spec and frozen(params) == frozen(node.params):
            return None
        args = tuple(self.replaced(node.inputs))
        return type(node)(node.op, args, params, None, node.info_with(spec=spec))

    def graph(self, graph: AnyGraph) -> AnyGraph:
        """The graph with all replacements."""
        return graph.with_nodes(
            {old: new for old, new in self.replacements.items() if old is not new}
        )


def stopped_like(node: Node, index: int, replacement: Node) -> Node:
    """A replacement of an output, not differentiable if the output was not."""
    was_differentiable = type(node) is Node and node.spec[index].dtype.kind in "fc"
    return replacement if was_differentiable or type(replacement) is not Node else held(replacement)


def held(node: Node) -> Node:
    """The same value without derivative."""
    op = lookup("stop_gradient")
    return DiscreteLeaf(op, (node,), NO_PARAMS, None, node.provenance(node.spec))


def inlined(body: Body, operands: Sequence[Node], differentiable: bool = True) -> list[Node]:
    """The outputs of a body, computed from operands.

    Parameters
    ----------
    differentiable : bool
        Whether the nodes that are differentiable in the body remain so.
    """
    replacements: dict[Node, Node] = {}
    for a, x in zip(body.inputs, operands, strict=True):
        is_stopped = type(a) is not Node or not differentiable
        replacements[a] = held(x) if is_stopped and type(x) is Node else x

    def change(node: Node, args: tuple[Any, ...]) -> Node | None:
        if isinstance(node.op, LeafOp) or not args:
            return None
        kinds = set(map(type, args))
        cls: type[Node] = ConstantLeaf if kinds == {ConstantLeaf} else DiscreteLeaf
        if Node in kinds:
            cls = type(node) if type(node) is not ConstantLeaf else DiscreteLeaf
        if cls is type(node) and all(a is b for a, b in zip(args, node.inputs, strict=True)):
            return None
        return cls(node.op, args, node.params, None, node.info_with(spec=node.spec))

    copies = rebuilt(body.nodes, replacements, change)
    return [copies[n] for n in body.outputs]


def parts_of(node: Node, indices: Iterable[int]) -> dict[int, Node]:
    """Nodes that select outputs of a node."""
    return {k: part_of(node, k) for k in indices}
