"""Closure conversion: a Python function as a subgraph, with its captured values as inputs.

The function is traced once, on placeholders.  Captured values (tensors, nodes of the graph that is
being built, arrays) become inputs of the body and operands of the loop, so that they are
differentiated.  Nodes that do not depend on the placeholders are computed once, before the loop.

    closed                the body of a function
    cut                   the nodes between some inputs and outputs, as a body
    nodes_between         the nodes between some inputs and outputs, in evaluation order
    dealiased             values without the aliases that derivatives make
    output                the node of a result
    operand               a captured node as an operand
    together              bodies that share their captured values
    with_lengths_grouped  outputs whose slices of computed lengths are in `sized` nodes
    same_in_each_step     the loop-invariant nodes of a body
    hoisted               a body without the loop-invariant nodes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.tape import VARIABLE
from wengert._engine.core import pytree, traced_inputs
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.graph_nodes import ancestors
from wengert._engine.core.handle import Handle, describe, refuse_ambiguous, wrap
from wengert._engine.core.message_order import current
from wengert._engine.core.node import CONSTANT, ConstantLeaf, LeafOp, Node, constant
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.recording import Session, current_trace, tracing_body
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import LengthsDiffer
from wengert._engine.core.tracing import SIZE, placeholder
from wengert._engine.core.validation import refuse_unknown_length
from wengert.errors import ShapeError, StructureError, TraceError, at, user_line

from .loop_bodies import grouped, with_products_before
from .message_carry import MessagesSent, results_once

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

_MAX_INLINE_CONSTANT = 64  # elements; larger constant arrays become operands
# Kinds whose operations cannot fail, so that they may run before a loop that has no steps.
_CANNOT_FAIL = frozenset(("elementwise", "reduction", "contraction"))


class Closed(NamedTuple):
    """A function as a body.

    body : Body
    captured : the operands for its first inputs.
    structure : the pytree structure of the function's result.
    live : for each leaf of the result, whether it is not None.
    """

    body: Body
    captured: list[Any]
    structure: Any
    live: tuple[bool, ...]

    def container(self, outputs: Sequence[Any]) -> Any:
        """Outputs of the body, in the containers of the function's result."""
        remaining = iter(outputs)
        return pytree.unflatten(self.structure, [next(remaining) if x else None for x in self.live])


def closed(
    fun: Callable[..., Any],
    specs: Sequence[Spec],
    what: str,
    hoist: bool = True,
    without_effects: str = "",
    steps: object = None,
) -> Closed:
    """The body of a function of leaves with these specs.

    Parameters
    ----------
    fun : callable
        Takes a tensor for each spec, and returns a container of tensors, arrays and numbers.
    specs : sequence of Spec
    what : str
        Its name in messages.
    hoist : bool
        Whether nodes that do not depend on the placeholders are computed outside of the body; False
        for branches, which may not be taken.
    without_effects : str
        Why the function cannot have side effects; by default because it is the body of a loop.
    steps : int, optional
        The number of steps of a loop, if it is known.

    Raises
    ------
    TraceError
        The function writes to captured values, prints or draws random numbers.
    StructureError
        The function returns something that is not a number or an array.
    """
    try:
        return _closed(fun, specs, what, hoist, without_effects, None, steps)
    except ShapeError as error:
        enclosing = current_trace()
        if (
            not isinstance(error.__cause__, LengthsDiffer)
            or enclosing is None
            or not enclosing.lengths
        ):
            raise
        # Slices in the step may have the same lengths as captured slices.
        return _closed(fun, specs, what, hoist, without_effects, enclosing, steps)


def _closed(
    fun: Callable[..., Any],
    specs: Sequence[Spec],
    what: str,
    hoist: bool,
    without_effects: str,
    enclosing: Session | None,
    steps: object,
) -> Closed:
    """`closed`; computed lengths that also occur in the session `enclosing` are its lengths."""
    with tracing_body() as opened, RuntimeChecks.collected() as checks:
        opened.lengths, opened.around = {}, enclosing
        inputs = [placeholder(s) for s in specs]
        try:
            out = fun(*map(wrap, inputs))
        finally:
            traced_inputs.mark_ended(inputs, f"the body of {what}")
        if checks:
            raise TraceError(
                f"{what}: it may raise a {type(checks[0].error).__name__} that depends on values, "
                f"which is not possible inside a compiled loop{at(user_line())}."
            )
        _check_without_effects(opened, what, without_effects)
        leaves, structure = pytree.flatten(out)
        live = tuple([x is not None for x in leaves])
        outputs = results_once(*[output(x, what) for x in leaves if x is not None])
        outputs = with_lengths_grouped(outputs, inputs, opened.since, opened.lengths, what, steps)
    body, captured = cut(outputs, inputs, opened.since, what, hoist)
    return Closed(body, [operand(n) for n in captured], structure, live)


def with_lengths_grouped(
    outputs: list[Node],
    inputs: Sequence[Node],
    since: int,
    lengths: Mapping[str, Node],
    what: str,
    steps: object = None,
) -> list[Node]:
    """The outputs of a step, with computations on slices of computed lengths in `sized` nodes.

    Parameters
    ----------
    outputs, inputs : sequence of Node
    since : int
        As for `cut`.
    lengths : mapping from str to Node
        The lengths by name, plus one.
    what : str
    steps : int, optional
        The number of steps, if it is known: products that all of them need are computed before.
    """
    if type(steps) is int and steps > 1:
        order = nodes_between([*outputs, *lengths.values()], inputs, since)
        new = with_products_before(order, _inside(order, inputs, True), steps)
        outputs = [new.get(n, n) for n in outputs]
        lengths = {name: new.get(n, n) for name, n in lengths.items()}
    if not lengths:
        return outputs
    order = nodes_between([*outputs, *lengths.values()], inputs, since, frozenset(lengths))
    return grouped(outputs, order, lengths, what)


def _check_without_effects(opened: Session, what: str, reason: str = "") -> None:
    if current() in opened.written:
        raise MessagesSent(
            f"{what}: it exchanges messages with other processes, which is possible in loops and "
            "branches, but not in a function with a rule of its own or one that is recomputed. "
            f"Exchange them before or after it{at(user_line())}."
        )
    if reason and (opened.written or opened.effects):
        raise TraceError(
            f"{what}: it writes to a captured tensor, draws random numbers, prints or checks, "
            f"{reason}. Do that outside, and pass the result as an argument (a mask, random "
            f"numbers){at(user_line())}."
        )
    if opened.written:
        raise TraceError(
            f"{what}: it writes to a captured tensor, or draws from a random stream, which would "
            "happen in each step. Carry the value, and write the result after the loop; draw "
            f"before the loop, a row for each step{at(user_line())}."
        )
    if opened.effects:
        first = opened.effects[0]
        raise TraceError(
            f"{what}: it prints, checks or has another side effect ({first.op.name}), which is not "
            "possible inside a compiled loop. Return the values instead"
            f"{at(first.where or user_line())}."
        )
    if opened.grads_left():
        raise TraceError(
            f"{what}: it calls backward(), which stores gradients in tensors. Use wengert.grad "
            f"inside a loop{at(user_line())}."
        )


def output(x: Array, what: str) -> Node:
    """The node of a result: a tensor, an array or a number."""
    if isinstance(x, Handle):
        refuse_ambiguous(x.node)
        return x.node
    if not isinstance(describe(x), Spec):
        refuse_unknown_length(x)
        raise StructureError(
            f"{what} returned a {type(x).__name__}. Return arrays, numbers and containers of them"
            f"{at(user_line())}."
        )
    return constant(np.array(x) if isinstance(x, np.ndarray) else x)


def operand(node: Node) -> Any:
    """A captured node as an operand of the loop."""
    return node.value if type(node) is ConstantLeaf and not node.args else wrap(node)


def cut(
    outputs: Sequence[Node], inputs: Sequence[Node], since: int, what: str, hoist: bool
) -> tuple[Body, list[Node]]:
    """The nodes that depend on the inputs, as a body, and the captured nodes.

    Parameters
    ----------
    outputs, inputs : sequence of Node
    since : int
        A serial number; nodes with smaller ones are captured.
    what : str
        The name of the body.
    hoist : bool
        Whether newer nodes that do not depend on the inputs are captured too.
    """
    order = nodes_between(outputs, inputs, since)
    inside = _inside(order, inputs, hoist)
    placeholders: dict[Node, Node] = {}
    captured: list[Node] = []

    def capture(node: Node) -> None:
        if node not in placeholders and node not in inside and not _is_small(node):
            placeholders[node] = placeholder(node.spec, node.name, type(node) is Node)
            captured.append(node)

    nodes = [n for n in order if n in inside]
    for node in nodes:
        for a in node.inputs:
            capture(a)
    for node in outputs:
        capture(node)
    copies = rebuilt(nodes, placeholders, without_aliases)
    body = Body(
        *[copies.get(n, n) for n in outputs],
        inputs=[*[placeholders[n] for n in captured], *inputs],
        name=what,
    )
    return body, captured


def without_aliases(node: Node, args: tuple[Node, ...]) -> Node | None:
    """Replace a variable node, an alias that a derivative made, by its operand (for `rebuilt`)."""
    return args[0] if node.op is VARIABLE else None


def dealiased(outputs: Sequence[Node]) -> list[Node]:
    """The same values without aliases; a rule that takes a derivative itself makes them."""
    plain = rebuilt(ancestors(outputs), change=without_aliases)
    return [plain[n] for n in outputs]


def nodes_between(
    outputs: Sequence[Node],
    inputs: Sequence[Node],
    since: int,
    local: frozenset[str] = frozenset(),
) -> list[Node]:
    """The nodes that some outputs need, recorded since a serial number, in evaluation order.

    Constants are not among them; of sizes those are that have one of the names `local`.
    """
    seen: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node in seen or node.serial < since or node.value is not None:
            continue
        is_leaf = isinstance(node.op, LeafOp) and node not in inputs
        if is_leaf and (node.op is not SIZE or local.isdisjoint(sizes_of(node.params))):
            continue
        seen.add(node)
        stack += node.inputs
    return sorted(seen.difference(inputs), key=lambda n: n.serial)


def _inside(order: Sequence[Node], inputs: Sequence[Node], hoist: bool) -> set[Node]:
    """The inputs of a body, and the nodes that must be part of it."""
    inside: set[Node] = set(inputs)
    for node in order:
        if _belongs(node, inside, hoist):
            inside.add(node)
    return inside


def _belongs(node: Node, inside: set[Node], hoist: bool) -> bool:
    """Whether a node must be part of the body."""
    if not inside.isdisjoint(node.inputs):
        return True
    op: Any = node.op
    if not node.args or op is VARIABLE:
        return not node.args
    return not hoist or op.kind not in _CANNOT_FAIL or op.effects.side_effect


def _is_small(node: Node) -> bool:
    """Whether a constant may be part of the body: a size, a number or a small array."""
    if node.op is SIZE:
        return True
    return (
        node.op is CONSTANT
        and isinstance(node, ConstantLeaf)
        and isinstance(node.value, np.ndarray | np.generic | int | float | complex)
        and np.size(node.value) <= _MAX_INLINE_CONSTANT
    )


def same_in_each_step(body: Body, count: int, runs: bool = False) -> set[Node]:
    """The loop-invariant nodes: they depend on the first inputs only, and may run before the loop.

    Parameters
    ----------
    body : Body
    count : int
        The number of inputs that are the same in each step.
    runs : bool
        Whether there is at least one step, so that operations that raise would raise anyway.
    """
    fixed = set(body.inputs[:count])
    for node in body.nodes:
        op: Any = node.op
        if isinstance(op, LeafOp) or op.effects.side_effect:
            continue
        may_move = op.kind in _CANNOT_FAIL or op.kind == "view" or op.effects.total or op is PART
        if not (
            may_move
            or (runs and getattr(op, "trusted", False) and not op.effects.value_dependent_shape)
        ):
            continue
        args = [a for a in node.inputs if a.op is not CONSTANT]
        if args and fixed.issuperset(args):
            fixed.add(node)
    return fixed


def hoisted(body: Body, count: int, runs: bool = False) -> tuple[Body, Body | None]:
    """A body without its loop-invariant nodes, and a body that computes these.

    A view costs nothing, and stays in the loop unless a hoisted node needs it.

    Parameters
    ----------
    body : Body
    count : int
        The number of inputs that are the same in each step.
    runs : bool
        Whether there is at least one step.

    Returns
    -------
    body, before : Body, Body or None
        `before` takes these inputs; `body` takes its results as additional inputs after them.
    """
    fixed = same_in_each_step(body, count, runs)
    pending = [a for n in body.nodes if n not in fixed for a in n.inputs]
    pending += [n for n in body.outputs]
    needed: dict[Node, None] = {}
    while pending:
        node = pending.pop(0)
        if node not in fixed or not node.args:
            continue
        if node.op.kind == "view" and node.op is not PART:
            pending += node.inputs
        else:
            needed[node] = None
    if not needed:
        return body, None
    before = Body(*needed, inputs=body.inputs[:count], name=body.name)
    placeholders = {n: placeholder(n.spec, n.name, type(n) is Node) for n in needed}
    copies = rebuilt(body.nodes, placeholders)
    inputs = [*body.inputs[:count], *placeholders.values(), *body.inputs[count:]]
    outputs = [copies[n] for n in body.outputs]
    return Body(*outputs, inputs=inputs, name=body.name), before


def together(closures: Sequence[Closed]) -> tuple[list[Body], list[Any]]:
    """Bodies that share their captured values, which become the first inputs of each.

    Returns
    -------
    bodies : list of Body
    captured : list
        The operands for the first inputs of each.
    """
    captured: list[Any] = []
    positions: dict[Any, int] = {}
    own_positions: list[list[int]] = []
    for closure in closures:
        own = []
        for x in closure.captured:
            key = x.node if isinstance(x, Handle) else id(x)
            if key not in positions:
                positions[key] = len(captured)
                captured.append(x)
            own.append(positions[key])
        own_positions.append(own)
    bodies = []
    for closure, own in zip(closures, own_positions, strict=True):
        own_inputs: dict[int, Node] = {}
        firsts = [
            own_inputs.setdefault(k, n) for k, n in zip(own, closure.body.inputs, strict=False)
        ]
        # One array may be the value of several constants.
        copies = rebuilt(closure.body.nodes, dict(zip(closure.body.inputs, firsts, strict=False)))
        outputs = [copies.get(n, n) for n in closure.body.outputs]
        captured_inputs = [own_inputs.get(k) or _placeholder_for(x) for k, x in enumerate(captured)]
        inputs = [*captured_inputs, *closure.body.inputs[len(own) :]]
        bodies.append(Body(*outputs, inputs=inputs, name=closure.body.name))
    return bodies, captured


def _placeholder_for(x: Array) -> Node:
    is_node = isinstance(x, Handle) and type(x.node) is Node
    return placeholder(describe(x), differentiable=is_node)
