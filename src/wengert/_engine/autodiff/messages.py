"""Derivatives of functions that exchange messages with other processes.

The token that orders messages (core/message_order.py) is one more argument and one more result of a
function that is differentiated: `Messages` adds both.  So each process takes part in all messages
of a backward or forward pass, also if its own operands do not depend on the arguments.

A derivative is that of the sum of the outputs of all processes.  An output that is the same in all
processes, because it was computed from results of `allreduce`, `bcast` or `allgather` only, is
counted once: its cotangent is divided by their number.

    Messages             the messages of one call
    counted_once         cotangents of outputs that may be the same in all processes
    are_replicated       whether unit vectors change the same variable in all processes
    different_columns    the error if they do not
    sources_of           whether a value was computed from messages, variables, inputs
    are_added            whether messages add the cotangents of a value
    origins_of           whether values are the same in all processes; for branches and loops:
                         origins_of_operands, of_condition, of_inputs; for a function with a rule
                         of its own: origins_of_call; for tensors and arrays: origins_of_values
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.loop_variants import from_variants
from wengert._engine.core.message_order import NO_MESSAGES, advance, current, is_used, ordered_by
from wengert._engine.core.node import INPUT, Node, is_variable
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import LOOPS, REPLAY
from wengert._engine.ops.messages import joined, tie_results, tied
from wengert.errors import NotDifferentiableError, at, user_line

from .tape import VARIABLE, fresh

if TYPE_CHECKING:
    from wengert._engine.kinds.collective import Collective

# What a value depends on: values of this process, and results that are the same in all processes of
# a communicator.
LOCAL = "local"
Origins = frozenset[Any]  # LOCAL, and communicators


class Messages:
    """The messages of one call of a function that is differentiated.

    Attributes
    ----------
    node : Node
        The variable of the first token.
    were_sent : bool
        Whether the call exchanged messages; known after `run`.
    counts_once : bool
        Whether an output that is the same in all processes is counted once.
    last : Node
        The token after the last message.
    """

    last: Node

    def __init__(self) -> None:
        outer = current()
        self.node = fresh(np.asarray(NO_MESSAGES)[()] if outer is None else outer.node)
        self.were_sent = False
        self.counts_once = True

    @staticmethod
    def of_call() -> Messages | None:
        """For a call that begins; None if collective operations are not in use."""
        return Messages() if is_used() else None

    def run(self, fun: Callable[[], Any]) -> Any:
        """The results of a function, which depend on the last token."""
        token = wrap(self.node)
        with ordered_by(token):
            results = fun()
        self.were_sent = token.node is not self.node
        if not self.were_sent:
            return results
        self.last = token.node
        results = tie_results(results, token)
        advance(token)
        return results

    def from_variants(self, outputs: Sequence[Node | None]) -> dict[Node, Node]:
        """The new nodes of outputs and of the last token, with each loop in the graph once."""
        latest = current()
        tokens = [self.last] if latest is None else [self.last, latest.node]
        nodes = [n for n in (*outputs, *tokens) if type(n) is Node]
        new = from_variants(nodes) if any(n.is_traced for n in nodes) else {}
        if latest is not None and latest.node in new:  # which a backward pass begins with
            advance(wrap(new[latest.node]))
        return new

    def token_of_tangents(self) -> Any:
        """The token that a forward pass begins with."""
        latest = current()
        return NO_MESSAGES if latest is None else wrap(latest.node)

    def end(self, token: Any) -> None:
        """Note the last token of a backward or forward pass."""
        latest = current()
        if latest is not None and isinstance(token, Handle):
            # Rules of the user may have sent messages, which are not in the chain of `token`.
            advance(joined(wrap(latest.node), token))


def counted_once(seeds: Mapping[Node, Any]) -> dict[Node, Any]:
    """Cotangents of outputs; divided among the processes if the output is the same in all.

    Raises
    ------
    NotDifferentiableError
        An output is computed both from such values and from values of this process.
    """
    return {node: _share(node, t) for node, t in seeds.items()}


def _share(node: Any, t: Any) -> Any:
    if type(node) is not Node or t is None:
        return t
    origins = origins_of([node])[0]
    if not origins or origins == {LOCAL}:
        return t
    sizes = {c.size for c in origins if c is not LOCAL}
    if LOCAL in origins or len(sizes) > 1:
        operation = ", ".join(sorted({c.name for c in origins if c is not LOCAL}))
        raise NotDifferentiableError(
            "the output is computed from results that are the same in all processes "
            f"({operation}), and from values of this process, so it is not known whether the "
            "derivative is that of one output or of the sum over all processes. End with "
            "allreduce(output, 'mean') if it is the same in all processes, and with "
            "allreduce(output, 'sum') or varying(output) if it is the part of this process; pass "
            f"arguments that are the same in all processes through replicated(){at(user_line())}."
        )
    comm = next(iter(origins))
    if comm.checked:
        same: Any = lookup("mpi.same")
        same.ordered(node.value if current() is None else wrap(node), comm=comm)
    return t / comm.size


def are_replicated(nodes: Sequence[Node], targets: Iterable[Node]) -> bool:
    """Whether targets reach the messages of a tape only as values that are equal in all processes.

    Then a unit vector in forward mode changes the same variable in all processes.
    """
    dependent = set(targets)
    for node in nodes:
        if node in dependent or dependent.isdisjoint(node.args_as_nodes()):
            continue
        op: Any = node.op
        if op.kind != "collective":
            dependent.add(node)
        elif not op.of_equal and node.args[0] in dependent:
            return False
    return True


def sources_of(x: Any) -> set[str]:
    """What a value was computed from: "messages", "variables", and "inputs" of a traced graph."""
    found: set[str] = set()
    stack, seen = [x], set()
    while stack:
        node = stack.pop()
        if type(node) is not Node or node in seen:
            continue
        seen.add(node)
        operands = node.args_as_nodes()
        if node.op.kind == "collective":
            found.add("messages")
        elif node.op is VARIABLE or (not operands and (node.op is not INPUT or is_variable(node))):
            found.add("variables")
        elif not operands:
            found.add("inputs")
        else:
            stack += operands[:1] if node.op is tied else operands
    return found


def are_added(x: Any, what: str) -> bool:
    """Whether the cotangents of a value that is the same in all processes are added by messages.

    They are if it was computed from results of messages.  Those of a variable are not.

    Raises
    ------
    NotDifferentiableError
        It was computed from both.
    """
    found = sources_of(x)
    if "messages" in found and len(found) > 1:
        raise NotDifferentiableError(
            f"{what}: the operand is computed from results of messages (of replicated(), "
            "allreduce ...) and from variables of this process, so it is not known whether its "
            "cotangents have been added. Pass all variables that it is computed from through "
            f"replicated(){at(user_line())}."
        )
    return "messages" in found


def different_columns(what: str) -> NotDifferentiableError:
    """The error for unit vectors that would change the variables of all processes at once."""
    return NotDifferentiableError(
        f"{what}: forward mode with respect to an argument that may differ between processes, and "
        "on which messages depend: a column would be the sum of the columns of all processes. Pass "
        "an argument that is the same in all processes through distributed.replicated(), or use "
        f"jacrev{at(user_line())}."
    )


def origins_of(outputs: Sequence[Node], known: Mapping[Node, Origins] | None = None) -> list[Any]:
    """What some nodes depend on."""
    origins: dict[Node, Origins] = dict(known or {})
    for node in _between(outputs, origins):
        origins[node] = _origins(node, origins)
    return [origins[n] for n in outputs]


def origins_of_operands(node: Node, known: Mapping[Node, Origins] | None = None) -> list[Origins]:
    """What the operands of a node depend on."""
    nodes = [a for a in node.args if isinstance(a, Node)]
    found = dict(zip(nodes, map(_union, origins_of(nodes, known)), strict=True))
    return [found[a] if isinstance(a, Node) else _of_constant(a) for a in node.args]


def origins_of_values(values: Sequence[Any]) -> list[Origins]:
    """What tensors, arrays and numbers depend on."""
    nodes = [x.node if isinstance(x, Handle) else x for x in values]
    recorded = [n for n in nodes if type(n) is Node]
    found = dict(zip(recorded, origins_of(recorded), strict=True))
    return [_union(found[n]) if type(n) is Node else _of_constant(n) for n in nodes]


def origins_of_call(
    outputs: Sequence[Any], variables: Sequence[Node | None]
) -> tuple[Origins, ...] | None:
    """What the results of a call depend on, if collective operations are in use.

    The number of an operand stands for what it depends on; `variables` has its node in the call.
    """
    if not is_used():
        return None
    known: dict[Node, Origins] = {
        v: frozenset([k]) for k, v in enumerate(variables) if v is not None
    }
    nodes = [x.node if isinstance(x, Handle) else x for x in outputs]
    recorded = [n for n in nodes if type(n) is Node]
    found = dict(zip(recorded, origins_of(recorded, known), strict=True))
    return tuple([_union(found[n]) if type(n) is Node else _of_constant(n) for n in nodes])


def _between(outputs: Iterable[Node], known: Mapping[Node, Origins]) -> list[Node]:
    """The nodes that decide the origins of outputs, operands first."""
    seen: set[Node] = set()
    stack = [n for n in outputs if n not in known]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if not _ends(node):
            stack += [a for a in node.args if isinstance(a, Node) and a not in known]
    return sorted(seen, key=lambda n: n.serial)


def _ends(node: Node) -> bool:
    """Whether the origins of a node do not depend on its operands."""
    return node.op is VARIABLE or node.op.kind == "collective" or not node.args


def _origins(node: Node, known: Mapping[Node, Any]) -> Any:
    """The origins of a node; a tuple of them for a node with bodies, one for each result."""
    op: Any = node.op
    if op.kind == "collective":
        collective: Collective = op
        return frozenset([node.params["comm"]] if collective.replicates else [LOCAL])
    if op is VARIABLE or op is INPUT:
        return frozenset([LOCAL])
    if not node.args:
        return _of_constant(node.value)
    first = _of_operand(node.args[0], known)
    if op is PART:
        return first[node.params["index"]] if type(first) is tuple else first
    if op is tied:
        return first
    operands = [_union(_of_operand(a, known)) for a in node.args]
    call = getattr(node.params.get("rule"), "origins", None)
    if call is not None:
        every = [[operands[x] if type(x) is int else {x} for x in own] for own in call]
        return tuple(frozenset[Any]().union(*own) for own in every)
    bodies = bodies_of(node)
    return _of_bodies(node, bodies, operands) if bodies else _union(operands)


def _of_operand(x: Any, known: Mapping[Node, Any]) -> Any:
    """The origins of an operand."""
    if not isinstance(x, Node):
        return _of_constant(x)
    return known[x] if x in known else _of_constant(x.value)


def _of_constant(value: Any) -> Origins:
    """Those of a constant: arrays may be the data of this process, numbers are taken to be equal.

    If numbers are not, the results are different, and `same` refuses them.
    """
    return frozenset() if np.ndim(value) == 0 else frozenset([LOCAL])


def _of_bodies(node: Node, bodies: Sequence[Body], operands: Sequence[Origins]) -> Any:
    """The origins of the results of a loop or branch: one for each."""
    params = node.params
    carried = params.get("carried", 0) if node.op.control_flow in LOOPS else 0
    count = len(node.spec) if isinstance(node.spec, tuple) else 1
    results = [frozenset[Any]() for _ in range(count)]
    if node.op.control_flow == REPLAY:  # cotangents, which messages have reached
        return tuple([_union(operands) | {LOCAL}] * count)
    for body in [params["body"]] if carried else bodies:
        outside = len(operands) - len(body.inputs)
        around = _union(operands[:outside])  # a condition, a number of steps
        own = of_inputs(body, operands[outside:], carried, params.get("stacked", 0))
        outs = [_union(x) | around for x in origins_of(body.outputs, own)]
        if "condition" in params:  # the number of steps comes after the carry
            outs.insert(carried, of_condition(params["condition"], own))
        if len(outs) != count:
            outs = [_union(outs)] * count
        results = [a | b for a, b in zip(results, outs, strict=True)]
    return tuple(results) if isinstance(node.spec, tuple) else results[0]


def of_condition(condition: Body, inputs: Mapping[Node, Origins]) -> Origins:
    """The origins of the condition of a loop, whose inputs are those of its body."""
    own = dict(zip(condition.inputs, inputs.values(), strict=True))
    return _union(origins_of(condition.outputs, own))


def of_inputs(
    body: Body, operands: Sequence[Origins], carried: int = 0, stacked: int = 0
) -> dict[Node, Origins]:
    """The origins of the inputs of a body, in all steps if it is that of a loop.

    Parameters
    ----------
    body : Body
    operands : sequence
        The origins of the operands for its inputs.
    carried, stacked : int
        The number of its inputs that are carried, and that are rows of arrays; they come last.
    """
    own = list(operands)
    start = len(own) - carried - stacked
    while True:
        inputs = dict(zip(body.inputs, own, strict=True))
        outs = origins_of(body.outputs[:carried], inputs)
        widened = list(own)
        for k, x in enumerate(outs):
            widened[start + k] = widened[start + k] | _union(x)
        if widened == own:
            return inputs
        own = widened


def _union(origins: Any) -> Origins:
    if isinstance(origins, frozenset):
        return origins
    return frozenset().union(*map(_union, origins))
