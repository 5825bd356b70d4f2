"""VJP rule of branches: the conditional of the branches' pullbacks.

Each branch is differentiated separately, and the same selector chooses the pullback.  A pullback
computes again what it needs of its branch, except results of messages.
Operands that no pullback reads are left out, so that an enclosing loop does not store them.

    pull_conditional    the rule of cond, switch and sized

Results of messages that the derivative of a branch needs: the branch returns them.

A derivative computes its branch again as far as it needs its values.  Messages would be sent again,
by all processes, whether or not they need the values.  So the results of messages, and of loops
and branches with messages, are further results of the branch, and operands of its derivative.  A
branch that is not taken returns zeros in their place.

    are_returned    whether branches can return them
    Derivative      the derivative of one branch, as nodes
    divided         the branches with further results, and the derivatives that read them
    returned        the further results of a conditional in a graph
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wengert._engine.autodiff.reverse import gathered, pullback
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.graph_copies import inline_graph, rebuilt
from wengert._engine.core.graph_nodes import ancestors
from wengert._engine.core.handle import Handle, is_traced, wrap
from wengert._engine.core.loop_variants import set_variant
from wengert._engine.core.message_order import NO_MESSAGES, is_token, is_used
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import RuleContext, lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.uniform_arrays import uniform

from .dependence import with_used_inputs
from .message_carry import after_messages, body_derivative, results_once, sends_messages
from .sparse_cotangents import added_in_place


def pull_conditional(
    node: Node, t: Mapping[int, Any], inputs: Sequence[Any], ctx: RuleContext
) -> list[Any]:
    """The cotangents of a conditional's operands: the conditional of the branches' pullbacks."""
    which, *operands = inputs
    wanted = tuple([k for k, a in enumerate(node.args[1:]) if ctx.wants(a)])
    seeded = tuple(sorted(t))
    bodies = node.params["branches"]
    forward, back = _pulled_branches(
        bodies, seeded, wanted, ctx.guarded, are_returned(bodies, inputs)
    )
    branches, used_inputs = with_used_inputs(back)
    every = [*operands, *returned(node, inputs, forward), *[t[k] for k in seeded]]
    results = lookup(node.op.name)(
        which, *[every[k] for k in used_inputs], **{**node.params, "branches": branches}
    )
    cotangents: list[Any] = [None] * len(operands)
    for k, cotangent in zip(wanted, results, strict=True):
        cotangents[k] = cotangent
    # A branch that does not use an operand contributes zero.
    ctx.mask([node.args[k + 1] for k in wanted])
    return [None, *cotangents]


@functools.lru_cache(maxsize=512)
def _pulled_branches(
    bodies: tuple[Body, ...],
    seeded: tuple[int, ...],
    wanted: tuple[int, ...],
    guarded: bool,
    returns: bool,
) -> tuple[tuple[Body, ...], tuple[Body, ...]]:
    """The branches with further results, and their pullbacks; see `divided`."""
    pulled = [_pulled_branch(b, seeded, wanted, guarded, returns) for b in bodies]
    return divided(bodies, pulled, "backwards", returns)


@functools.lru_cache(maxsize=512)
def _pulled_branch(
    body: Body, seeded: tuple[int, ...], wanted: tuple[int, ...], guarded: bool, returns: bool
) -> Derivative:
    """The pullback of a branch: from operands and cotangents of results to those of operands."""
    with body_derivative():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        outs = inline_graph(body, [wrap(n) for n in inputs])
        seeds = [placeholder(body.outputs[k].spec) for k in seeded]
        handles = list(map(wrap, seeds))
        if not returns:
            pairs_of_seeds = zip(handles, seeded, strict=True)
            handles = [after_messages(s, outs[k], body) for s, k in pairs_of_seeds]
        nodes = [getattr(outs[k], "node", None) for k in seeded]
        targets = [inputs[k] for k in wanted]
        pairs = gathered(zip(nodes, handles, strict=True))
        cotangents = pullback(pairs, targets, masked=guarded) if pairs else [None] * len(targets)
        results = [
            (uniform(n.spec, 0) if cotangent is None else cotangent).node
            for cotangent, n in zip(cotangents, targets, strict=True)
        ]
        results = added_in_place(results, ancestors(results), keeps_sums=True)
    return Derivative(inputs, outs, seeds, results)


class Derivative(NamedTuple):
    """The derivative of one branch, as nodes.

    inputs, outputs : of the branch.
    given : the placeholders of (co)tangents that the derivative is given.
    results : the (co)tangents that it computes.
    """

    inputs: list[Node]
    outputs: list[Any]
    given: list[Node]
    results: list[Any]


def are_returned(bodies: Sequence[Body], operands: Sequence[Any]) -> bool:
    """Whether branches exchange messages whose results have lengths that are known before.

    All processes decide in the same way, because they have the same messages.  Branches with loops
    or branches that exchange messages send all messages again, and so do those whose operands have
    values, because they run at once.
    """
    if not is_used() or not any(map(is_traced, operands)) or not any(map(sends_messages, bodies)):
        return False
    return all(_is_returned(n) for b in bodies for n in b.nodes if _has_messages(n))


def _is_returned(node: Node) -> bool:
    specs = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    return node.op.kind == "collective" and not any(is_open(n) for s in specs for n in s.shape)


def _has_messages(node: Node) -> bool:
    return node.op.kind == "collective" or any(map(sends_messages, bodies_of(node)))


def divided(
    bodies: Sequence[Body], derivatives: Sequence[Derivative], suffix: str, returns: bool
) -> tuple[tuple[Body, ...], tuple[Body, ...]]:
    """The branches with further results, if there are any, and the bodies of the derivatives.

    A derivative takes the operands of the branch, the further results, and (co)tangents.

    Parameters
    ----------
    bodies : sequence of Body
        The branches.
    derivatives : sequence of Derivative
    suffix : str
        Added to the names of the branches.
    returns : bool
        Whether the branches return results of messages; see `are_returned`.
    """
    parts = [_received(d) if returns else _Received([], [], d.results) for d in derivatives]
    specs, places = _places(parts)
    forward, back = [], []
    for body, derivative, part, own in zip(bodies, derivatives, parts, places, strict=True):
        with body_derivative():
            further = [
                (uniform(s, 0).node, placeholder(s))
                if k is None
                else (part.values[k], part.placeholders[k])
                for s, k in zip(specs, own, strict=True)
            ]
        if specs:
            outputs = results_once(*derivative.outputs, *[value for value, _ in further])
            forward.append(Body(*outputs, inputs=derivative.inputs, name=body.name))
        inputs = [*derivative.inputs, *[inner for _, inner in further], *derivative.given]
        results = results_once(*part.results)
        back.append(Body(*results, inputs=inputs, name=f"{body.name}, {suffix}"))
    return tuple(forward), tuple(back)


class _Received(NamedTuple):
    """Results of messages of a branch, and the derivative that reads them.

    values : the results, in the branch.
    placeholders : the same in the derivative.
    results : the results of the derivative.
    """

    values: list[Node]
    placeholders: list[Node]
    results: list[Any]


def _received(derivative: Derivative) -> _Received:
    """A derivative in which the results of messages of the branch are operands."""
    results = [x.node if isinstance(x, Handle) else x for x in derivative.results]
    nodes = ancestors(results)
    dependent = set(derivative.given)
    for node in nodes:
        if not dependent.isdisjoint(node.inputs):
            dependent.add(node)
    new: dict[Node, Node] = {}
    values: list[Node] = []
    for node in nodes:
        if node.op is not PART or node in dependent or not _has_messages(node.inputs[0]):
            continue
        if is_token(node.spec):  # the messages of the branch have been exchanged
            new[node] = constant(NO_MESSAGES)
        else:
            new[node] = placeholder(node.spec, node.name, type(node) is Node)
            values.append(node)
    copies = rebuilt(nodes, new)
    back = [copies[n] for n in results]
    needed = set(ancestors(back))
    values = [n for n in values if new[n] in needed]
    return _Received(values, [new[n] for n in values], back)


def _places(parts: Sequence[_Received]) -> tuple[list[Spec], list[list[int | None]]]:
    """The specs of further results; for each branch, which of its own results each one is.

    One branch is taken: results of different branches that have the same spec share a place.
    """
    specs: list[Spec] = []
    places: list[list[int | None]] = []
    for part in parts:
        own: list[int | None] = [None] * len(specs)
        for k, node in enumerate(part.values):
            spec = Spec(node.spec.shape, node.spec.dtype)
            free = [i for i, s in enumerate(specs) if own[i] is None and s == spec]
            if not free:
                specs.append(spec)
                own.append(None)
                free = [len(specs) - 1]
            own[free[0]] = k
        places.append(own)
    return specs, [[*x, *[None] * (len(specs) - len(x))] for x in places]


def returned(node: Node, inputs: Sequence[Any], branches: tuple[Body, ...]) -> list[Any]:
    """The further results of a conditional, which its results are taken from, too.

    Parameters
    ----------
    node : Node
        The conditional.
    inputs : sequence
        Its operands.
    branches : tuple of Body
        Its branches with further results; empty if there are none.
    """
    if not branches:
        return []
    outs = lookup(node.op.name)(*inputs, **{**node.params, "branches": branches})
    set_variant(node, outs[0].node.inputs[0])
    return list(outs[len(node.params["branches"][0].outputs) :])
