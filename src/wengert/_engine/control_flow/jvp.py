"""JVP rules of loops and branches: the same loop, with tangents next to the carry.

pushed                                     a body with tangents
push_scan, push_while, push_conditional    rules of the operations
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from wengert._engine.autodiff.forward import pushforward
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.uniform_arrays import uniform, zeros

from .dependence import Dependence
from .message_carry import after_messages, before_tangents, body_derivative, results_once


class Pushed(NamedTuple):
    """A body with tangents; inputs and outputs are given by position.

    body : takes consts, their tangents, carry, its tangents, rows, their tangents; returns the next
        carry, its tangents, the ys, and theirs.
    active : the inputs that have tangents.
    tangents : the ys that have tangents.
    masked : whether tangents of results may be zero because something was not selected.
    """

    body: Body
    active: tuple[int, ...]
    tangents: tuple[int, ...]
    masked: bool


@functools.lru_cache(maxsize=512)
def pushed(
    body: Body, carried: int, stacked: int, initially_active: frozenset[int], guarded: bool
) -> Pushed:
    """A body with tangents, if some of its inputs have tangents before the first step."""
    fixed = len(body.inputs) - carried - stacked
    depends = Dependence(body)
    active = tuple(sorted(depends.active(initially_active, range(fixed, fixed + carried))))
    ys = [k for k in range(carried, len(body.outputs)) if not depends.on(k).isdisjoint(active)]
    requested = [*[k - fixed for k in active if fixed <= k < fixed + carried], *ys]
    inputs, dots, outs, tangents, masked_outputs = _with_tangents(body, active, requested, guarded)
    if not guarded and masked_outputs.intersection(range(carried)):
        # A carried tangent that a step masks must be a strong zero in the next step.
        return pushed(body, carried, stacked, initially_active, True)
    count = len(requested) - len(ys)
    body_with_tangents = Body(
        *results_once(*outs[:carried], *tangents[:count], *outs[carried:], *tangents[count:]),
        inputs=_interleaved(inputs, dots, (0, fixed, fixed + carried, len(inputs))),
        name=f"{body.name}, with tangents",
    )
    return Pushed(body_with_tangents, active, tuple(ys), bool(masked_outputs))


def _with_tangents(
    body: Body, active: Sequence[int], requested: Sequence[int], guarded: bool
) -> tuple[list[Node], dict[int, Any], list[Any], list[Any], set[int]]:
    """Inputs, their tangents by position, outputs, the requested tangents, and the masked ones."""
    with body_derivative():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        dots = {k: placeholder(inputs[k].spec) for k in active}
        outs = inline_graph(body, [wrap(n) for n in inputs])
        nodes = [getattr(outs[k], "node", None) for k in requested]
        live = [n for n in nodes if type(n) is Node]
        known = {inputs[k]: before_tangents(wrap(dot), outs, body) for k, dot in dots.items()}
        masked_outputs: set[Node] = set()
        computed = (
            pushforward(live, known, record=True, masked=guarded, masked_outputs=masked_outputs)
            if live
            else ()
        )
        remaining = iter(computed)
        tangents = [next(remaining) if type(n) is Node else None for n in nodes]
        tangents = [
            after_messages(uniform(body.outputs[k].spec, 0) if x is None else x, outs[k], body)
            for k, x in zip(requested, tangents, strict=True)
        ]
    masked = {k for k, n in zip(requested, nodes, strict=True) if n in masked_outputs}
    return inputs, dots, outs, tangents, masked


def _interleaved(items: Sequence[Any], dots: dict[Any, Any], bounds: Sequence[int]) -> list[Any]:
    """The items by group, each group followed by its tangents."""
    interleaved: list[Any] = []
    for start, stop in itertools.pairwise(bounds):
        interleaved += items[start:stop]
        interleaved += [dots[k] for k in range(start, stop) if k in dots]
    return interleaved


class _LoopTangent:
    """The JVP of one loop."""

    def __init__(
        self, node: Node, dots: Sequence[Any], inputs: Sequence[Any], ctx: RuleContext
    ) -> None:
        params = node.params
        self.carried, stacked = params["carried"], params.get("stacked", 0)
        body: Body = params["body"]
        initially_active = frozenset(k for k, d in enumerate(dots) if d is not None)
        self.bodies = bodies = pushed(body, self.carried, stacked, initially_active, ctx.guarded)
        if bodies.masked:
            ctx.mask([node])
        tangents = {
            k: zeros(body.inputs[k].spec) if dots[k] is None else dots[k] for k in bodies.active
        }
        self.fixed = fixed = len(body.inputs) - self.carried - stacked
        self.bounds = (0, fixed, fixed + self.carried, len(body.inputs))
        self.operands = _interleaved(inputs, tangents, self.bounds)
        self.stacked = stacked + sum(k >= fixed + self.carried for k in bodies.active)
        self.active = [k - fixed for k in bodies.active if fixed <= k < fixed + self.carried]

    def tangents(self, results: Sequence[Any], count: int, ys: int) -> list[Any]:
        """The tangent of each output, or None; `count` further outputs come before the `ys`."""
        out: list[Any] = [None] * (self.carried + count + ys)
        for k, i in enumerate(self.active):
            out[i] = results[self.carried + k]
        first = self.carried + len(self.active) + count + ys
        for k, i in enumerate(self.bodies.tangents):
            out[i + count] = results[first + k]
        return out


def push_scan(
    node: Node, dots: Sequence[Any], inputs: Sequence[Any], ctx: RuleContext
) -> list[Any]:
    """The tangents of a scan's results."""
    params = node.params
    count = params["counted"]
    loop = _LoopTangent(node, dots[count:], inputs[count:], ctx)
    results = lookup("scan")(
        *inputs[:count],
        *loop.operands,
        **{
            **params,
            "body": loop.bodies.body,
            "carried": loop.carried + len(loop.active),
            "stacked": loop.stacked,
        },
    )
    return loop.tangents(results, 0, len(params["body"].outputs) - loop.carried)


def push_while(
    node: Node, dots: Sequence[Any], inputs: Sequence[Any], ctx: RuleContext
) -> list[Any]:
    """The tangents of a while loop's results; the number of steps has none."""
    params = node.params
    loop = _LoopTangent(node, dots, inputs, ctx)
    body = loop.bodies.body
    condition = _with_more_inputs(params["condition"], loop.bodies.active, loop.bounds)
    results = lookup("while")(
        *loop.operands,
        **{
            **params,
            "body": body,
            "condition": condition,
            "carried": loop.carried + len(loop.active),
        },
    )
    return loop.tangents(results, 1, len(params["body"].outputs) - loop.carried)


def _with_more_inputs(condition: Body, active: Iterable[int], bounds: Sequence[int]) -> Body:
    """A condition that also takes tangents, and ignores them."""
    dots = {k: placeholder(condition.inputs[k].spec) for k in active}
    inputs = _interleaved(condition.inputs, dots, bounds)
    return Body(*condition.outputs, inputs=inputs, name=condition.name)


def push_conditional(
    node: Node, dots: Sequence[Any], inputs: Sequence[Any], ctx: RuleContext
) -> list[Any]:
    """The tangents of a conditional's results: the conditional of the branches' JVPs."""
    which, *operands = inputs
    active = tuple([k for k, d in enumerate(dots[1:]) if d is not None])
    bodies = node.params["branches"]
    requested = _results_with_tangents(bodies, active)
    branches = tuple([_pushed_branch(b, active, requested, ctx.guarded) for b in bodies])
    tangents = [dots[k + 1] for k in active]
    results = lookup(node.op.name)(
        which, *operands, *tangents, **{**node.params, "branches": branches}
    )
    out: list[Any] = [None] * len(bodies[0].outputs)
    for k, dot in zip(requested, results, strict=True):
        out[k] = dot
    ctx.mask([node])  # the tangent of a branch without tangents is zero
    return out


def _results_with_tangents(bodies: Iterable[Body], active: Sequence[int]) -> tuple[int, ...]:
    """The results that have a tangent in some branch."""
    results: set[int] = set()
    for body in bodies:
        depends = Dependence(body)
        results |= {k for k in range(len(body.outputs)) if not depends.on(k).isdisjoint(active)}
    return tuple(sorted(results))


@functools.lru_cache(maxsize=512)
def _pushed_branch(
    body: Body, active: tuple[int, ...], requested: tuple[int, ...], guarded: bool
) -> Body:
    inputs, dots, _, tangents, _ = _with_tangents(body, active, requested, guarded)
    all_inputs = [*inputs, *[dots[k] for k in active]]
    return Body(*results_once(*tangents), inputs=all_inputs, name=f"{body.name}, tangents")
