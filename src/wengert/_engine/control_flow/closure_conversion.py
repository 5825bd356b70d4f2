"""Closure conversion: a Python function as a subgraph, with its captured values as inputs.

The function is traced once, on placeholders.  Captured values (tensors, nodes of the graph that is
being built, arrays) become inputs of the body and operands of the loop, so that they are
differentiated.  Nodes that do not depend on the placeholders are computed once, before the loop.

    closed     the body of a function
    cut        the nodes between some inputs and outputs, as a body
    output     the node of a result
    operand    a captured node as an operand
    together   bodies with the same captured values
    with_lengths_grouped  outputs with slices of computed lengths in nodes of their own
    hoisted    a body without the nodes that depend on its first inputs only
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.tape import VARIABLE
from wengert._engine.core import leaked_tracers, pytree
from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.dispatch import PART
from wengert._engine.core.handle import Handle, describe, refuse_ambiguous, wrap
from wengert._engine.core.node import CONSTANT, ConstantLeaf, LeafOp, Node, constant
from wengert._engine.core.recording import Session, current_trace, enable_grad, tracing
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.symbolic.constraints import LengthsDiffer
from wengert._engine.core.tracing import SIZE, placeholder
from wengert._engine.core.validation import refuse_unknown_length
from wengert.errors import ShapeError, StructureError, TraceError, at, user_line

from .slice_groups import grouped

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

_INSIDE = 64  # elements; a constant array up to this size is a part of the body
# Kinds whose operations cannot fail, so that they may run before a loop that has no steps.
_SAFE = frozenset(("elementwise", "reduction", "contraction"))


class Closed(NamedTuple):
    """A function as a body.

    body : Body
    captured : the operands for its first inputs.
    structure : the structure of the function's result.
    live : whether each leaf of the result is not None.
    """

    body: Body
    captured: list[Any]
    structure: Any
    live: tuple[bool, ...]

    def container(self, outputs: Sequence[Any]) -> Any:
        """Outputs of the body in the containers of the function's result."""
        rest = iter(outputs)
        return pytree.unflatten(self.structure, [next(rest) if x else None for x in self.live])


def closed(
    fun: Callable[..., Any],
    specs: Sequence[Spec],
    what: str,
    hoist: bool = True,
    twice: bool = False,
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
        Whether nodes that do not depend on the placeholders are computed before; not for branches,
        which may not be taken.
    twice : bool
        Whether it is the body of a call that is recomputed, rather than of a loop.

    Raises
    ------
    TraceError
        It writes to captured values, prints or draws random numbers.
    StructureError
        It returns something that is not a number or an array.
    """
    try:
        return _closed(fun, specs, what, hoist, twice, None)
    except ShapeError as error:
        around = current_trace()
        if not isinstance(error.__cause__, LengthsDiffer) or around is None or not around.lengths:
            raise
        # Slices in the step may have the same lengths as captured slices.
        return _closed(fun, specs, what, hoist, twice, around)


def _closed(
    fun: Callable[..., Any],
    specs: Sequence[Spec],
    what: str,
    hoist: bool,
    twice: bool,
    around: Session | None,
) -> Closed:
    """The body of a function; its slices have the lengths of those in the session `around`."""
    with tracing() as opened, enable_grad(), RuntimeChecks.collected() as checks:
        opened.isolated = opened.general = True
        opened.lengths, opened.around = {}, around
        inputs = [placeholder(s) for s in specs]
        try:
            out = fun(*map(wrap, inputs))
        finally:
            leaked_tracers.ended(inputs, f"the body of {what}")
        if checks:
            raise TraceError(
                f"{what}: it may raise a {type(checks[0].error).__name__} that depends on values, "
                f"which is not possible inside a compiled loop{at(user_line())}."
            )
        _check_without_effects(opened, what, twice)
        leaves, structure = pytree.flatten(out)
        live = tuple([x is not None for x in leaves])
        outputs = [output(x, what) for x in leaves if x is not None]
        outputs = with_lengths_grouped(outputs, inputs, opened.since, opened.lengths, what)
    body, outside = cut(outputs, inputs, opened.since, what, hoist)
    return Closed(body, [operand(n) for n in outside], structure, live)


def with_lengths_grouped(
    outputs: list[Node],
    inputs: Sequence[Node],
    since: int,
    lengths: Mapping[str, Node],
    what: str,
) -> list[Node]:
    """The outputs of a step, with what uses slices of computed lengths in `sized` nodes.

    Parameters
    ----------
    outputs, inputs : sequence of Node
    since : int
        As for `cut`.
    lengths : mapping from str to Node
        The lengths by name, plus one.
    what : str
    """
    if not lengths:
        return outputs
    order = _nodes_between([*outputs, *lengths.values()], inputs, since)
    return grouped(outputs, order, lengths, what)


def _check_without_effects(opened: Session, what: str, twice: bool = False) -> None:
    if twice and (opened.written or opened.effects):
        raise TraceError(
            f"{what}: it writes to a tensor from outside, draws random numbers, prints or checks, "
            "which would be repeated when the derivative recomputes it. Do that outside, and pass "
            f"what changes as arguments (a mask, random numbers){at(user_line())}."
        )
    if opened.written:
        raise TraceError(
            f"{what}: it writes to a tensor from outside, or draws from a random stream, which "
            "would happen in each step. Carry the value, and write the result afterwards; draw "
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
            f"{what}: it calls backward(), which leaves gradients in tensors. Use wengert.grad "
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
        A serial number; older nodes are captured.
    what : str
        The name of the body.
    hoist : bool
        Whether nodes that do not depend on the inputs are captured too.
    """
    order = _nodes_between(outputs, inputs, since)
    inside: set[Node] = set(inputs)
    for node in order:
        if _belongs(node, inside, hoist):
            inside.add(node)
    place: dict[Node, Node] = {}
    outside: list[Node] = []

    def taken(node: Node) -> None:
        if node not in place and node not in inside and not _is_small(node):
            place[node] = placeholder(node.spec, node.name, type(node) is Node)
            outside.append(node)

    nodes = [n for n in order if n in inside]
    for node in nodes:
        for a in node.inputs:
            taken(a)
    for node in outputs:
        taken(node)
    new = rebuilt(nodes, place, without_aliases)
    body = Body(
        *[new.get(n, n) for n in outputs],
        inputs=[*[place[n] for n in outside], *inputs],
        name=what,
    )
    return body, outside


def without_aliases(node: Node, args: tuple[Node, ...]) -> Node | None:
    """Replace the variable of a derivative with its operand (for `rebuilt`)."""
    return args[0] if node.op is VARIABLE else None


def _nodes_between(outputs: Sequence[Node], inputs: Sequence[Node], since: int) -> list[Node]:
    """The nodes recorded since a given serial number that some outputs need, in order."""
    seen: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node in seen or node.serial < since or node.value is not None:
            continue
        if isinstance(node.op, LeafOp) and node not in inputs:
            continue
        seen.add(node)
        stack += node.inputs
    return sorted(seen.difference(inputs), key=lambda n: n.serial)


def _belongs(node: Node, inside: set[Node], hoist: bool) -> bool:
    """Whether a node must be computed in each step."""
    if not inside.isdisjoint(node.inputs):
        return True
    op: Any = node.op
    if not node.args or op is VARIABLE:
        return not node.args
    return not hoist or op.kind not in _SAFE or op.effects.side_effect


def _is_small(node: Node) -> bool:
    """Whether a constant may be part of the body: a size, a number, a few of them."""
    if node.op is SIZE:
        return True
    return (
        node.op is CONSTANT
        and isinstance(node, ConstantLeaf)
        and isinstance(node.value, np.ndarray | np.generic | int | float | complex)
        and np.size(node.value) <= _INSIDE
    )


def same_in_each_step(body: Body, count: int, runs: bool = False) -> set[Node]:
    """The nodes that depend on the first inputs only, and may run before a loop.

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
        may_move = op.kind in _SAFE or op.kind == "view" or op.effects.total or op is PART
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
    """A body without the nodes that depend on its first inputs only, and a body for these.

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
    reached = [a for n in body.nodes if n not in fixed for a in n.inputs]
    reached += [n for n in body.outputs]
    used: dict[Node, None] = {}
    while reached:
        node = reached.pop(0)
        if node not in fixed or not node.args:
            continue
        if node.op.kind == "view" and node.op is not PART:
            reached += node.inputs
        else:
            used[node] = None
    if not used:
        return body, None
    before = Body(*used, inputs=body.inputs[:count], name=body.name)
    place = {n: placeholder(n.spec, n.name, type(n) is Node) for n in used}
    nodes = rebuilt(body.nodes, place)
    inputs = [*body.inputs[:count], *place.values(), *body.inputs[count:]]
    outputs = [nodes[n] for n in body.outputs]
    return Body(*outputs, inputs=inputs, name=body.name), before


def together(made: Sequence[Closed]) -> tuple[list[Body], list[Any]]:
    """Bodies with the same inputs: the captured values of all come first.

    Returns
    -------
    bodies : list of Body
    captured : list
        The operands for the first inputs of each.
    """
    captured: list[Any] = []
    place: dict[Any, int] = {}
    numbers: list[list[int]] = []
    for one in made:
        mine = []
        for x in one.captured:
            key = x.node if isinstance(x, Handle) else id(x)
            if key not in place:
                place[key] = len(captured)
                captured.append(x)
            mine.append(place[key])
        numbers.append(mine)
    bodies = []
    for one, mine in zip(made, numbers, strict=True):
        old = dict(zip(mine, one.body.inputs[: len(mine)], strict=True))
        first = [old.get(k) or _stand_in(x) for k, x in enumerate(captured)]
        inputs = [*first, *one.body.inputs[len(mine) :]]
        bodies.append(Body(*one.body.outputs, inputs=inputs, name=one.body.name))
    return bodies, captured


def _stand_in(x: Array) -> Node:
    is_node = isinstance(x, Handle) and type(x.node) is Node
    return placeholder(describe(x), differentiable=is_node)
