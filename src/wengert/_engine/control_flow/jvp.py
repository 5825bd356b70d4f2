"""JVP rules of loops and branches: the same loop, with tangents next to the carry.

    pushed, expanded                           a body with tangents, or with coefficients
    push_scan, push_while, push_conditional    rules of the operations

Taylor series: coefficients of order 1 to K instead of tangents (autodiff/series.py).

    scan_series, while_series                  rules of loops
    choice_series, body_series                 rules of branches, and of a body that runs once
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wengert._engine.autodiff.forward import pushforward
from wengert._engine.autodiff.jet import traced_series
from wengert._engine.autodiff.series_terms import SeriesCall
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup
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


def _interleaved(items: Sequence[Any], dots: Mapping[int, Any], bounds: Sequence[int]) -> list[Any]:
    """The items by group, each group followed by its tangents."""
    return _with_terms(items, {k: (dot,) for k, dot in dots.items()}, bounds)


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


Results = tuple[list[list[Any] | None], bool]  # by result, and whether zeros in them may be masked


class Expanded(NamedTuple):
    """The parts of a body with coefficients.

    inputs : the inputs of the body.
    terms : the coefficients of the inputs that have some, by position.
    outputs : the outputs of the body.
    series : the coefficients of the requested outputs, by position.
    masked : the requested outputs whose coefficients may be zero because something was not
        selected.
    """

    inputs: list[Node]
    terms: dict[int, list[Node]]
    outputs: list[Any]
    series: dict[int, list[Any]]
    masked: frozenset[int]


def expanded(
    body: Body, order: int, active: Iterable[int], requested: Sequence[int], masked: bool
) -> Expanded:
    """A body with the coefficients of the inputs at the positions `active`."""
    with body_derivative():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        terms = {k: [placeholder(inputs[k].spec) for _ in range(order)] for k in active}
        outs = inline_graph(body, [wrap(n) for n in inputs])
        nodes = [getattr(outs[k], "node", None) for k in requested]
        live = [n for n in nodes if type(n) is Node]
        given = {inputs[k]: [wrap(n) for n in of] for k, of in terms.items()}
        found, zero = traced_series(live, given, order, masked=masked) if live else ([], [])
        remaining = iter(zip(found, zero, strict=True))
        pairs = [next(remaining) if type(n) is Node else (None, False) for n in nodes]
        series = {}
        for k, (coefficients, _) in zip(requested, pairs, strict=True):
            spec = body.outputs[k].spec
            rows = [None] * order if coefficients is None else coefficients
            series[k] = [uniform(spec, 0) if x is None else x for x in rows]
    zeroed = [k for k, (_, m) in zip(requested, pairs, strict=True) if m]
    return Expanded(inputs, terms, outs, series, frozenset(zeroed))


def _with_terms(
    items: Sequence[Any], terms: Mapping[int, Sequence[Any]], bounds: Sequence[int]
) -> list[Any]:
    """The items by group, each group followed by the coefficients of its items."""
    interleaved: list[Any] = []
    for start, stop in itertools.pairwise(bounds):
        interleaved += items[start:stop]
        for k in range(start, stop):
            interleaved += terms.get(k, ())
    return interleaved


class _LoopBody(NamedTuple):
    """A body of a loop with coefficients.

    body : takes consts, their coefficients, carry, its coefficients, rows, theirs; returns the next
        carry, its coefficients, the ys, and theirs.
    active : the inputs that have coefficients.
    stacked : the ys that have coefficients.
    masked : whether coefficients of results may be zero because something was not selected.
    """

    body: Body
    active: tuple[int, ...]
    stacked: tuple[int, ...]
    masked: bool


@functools.lru_cache(maxsize=512)
def _loop_body(
    body: Body, carried: int, stacked: int, order: int, initially: frozenset[int], masked: bool
) -> _LoopBody:
    fixed = len(body.inputs) - carried - stacked
    depends = Dependence(body)
    active = tuple(sorted(depends.active(initially, range(fixed, fixed + carried))))
    ys = [k for k in range(carried, len(body.outputs)) if not depends.on(k).isdisjoint(active)]
    carries = [k - fixed for k in active if fixed <= k < fixed + carried]
    parts = expanded(body, order, active, [*carries, *ys], masked)
    if not masked and parts.masked.intersection(range(carried)):
        # A carried coefficient that a step masks must be a strong zero in the next step.
        return _loop_body(body, carried, stacked, order, initially, True)
    with_terms = Body(
        *results_once(
            *parts.outputs[:carried],
            *itertools.chain(*[parts.series[k] for k in carries]),
            *parts.outputs[carried:],
            *itertools.chain(*[parts.series[k] for k in ys]),
        ),
        inputs=_with_terms(
            parts.inputs, parts.terms, (0, fixed, fixed + carried, len(parts.inputs))
        ),
        name=f"{body.name}, with {order} Taylor coefficients",
    )
    return _LoopBody(with_terms, active, tuple(ys), bool(parts.masked))


class _LoopSeries:
    """One loop with coefficients."""

    def __init__(self, call: SeriesCall, operands: Sequence[Any], given: Sequence[Any]) -> None:
        params, order = call.params, call.order
        self.order, self.carried = order, params["carried"]
        stacked = params.get("stacked", 0)
        body: Body = params["body"]
        initially = frozenset(k for k, c in enumerate(given) if c is not None)
        self.made = made = _loop_body(body, self.carried, stacked, order, initially, call.masked)
        fixed = len(body.inputs) - self.carried - stacked
        self.bounds = (0, fixed, fixed + self.carried, len(body.inputs))
        specs = [n.spec for n in body.inputs]
        rows = range(fixed + self.carried, len(body.inputs))
        terms = {
            k: _filled(given[k], specs[k] if k not in rows else None, operands[k], order)
            for k in made.active
        }
        self.operands = _with_terms(operands, terms, self.bounds)
        self.stacked = stacked + order * sum(k in rows for k in made.active)
        self.active = [k - fixed for k in made.active if fixed <= k < fixed + self.carried]

    def params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of the loop."""
        carried = self.carried + self.order * len(self.active)
        return {**params, "body": self.made.body, "carried": carried}

    def series(self, results: Sequence[Any], count: int, ys: int) -> Results:
        """The coefficients of each result; `count` further results come before the `ys`."""
        order = self.order
        out: list[list[Any] | None] = [None] * (self.carried + count + ys)
        for j, i in enumerate(self.active):
            first = self.carried + j * order
            out[i] = list(results[first : first + order])
        start = self.carried + order * len(self.active) + count + ys
        for j, i in enumerate(self.made.stacked):
            out[i + count] = list(results[start + j * order : start + (j + 1) * order])
        return out, self.made.masked


def _filled(given: Sequence[Any] | None, spec: Any, operand: Any, order: int) -> list[Any]:
    """Coefficients with zeros for those that are None."""
    if given is None:
        given = [None] * order
    zero: Any = None
    filled = []
    for x in given:
        if x is None and zero is None:
            zero = zeros(spec) if spec is not None else operand * 0
        filled.append(zero if x is None else x)
    return filled


def scan_series(call: SeriesCall) -> Results:
    """The coefficients of a scan's results."""
    params = call.params
    count = params["counted"]
    loop = _LoopSeries(call, call.operands[count:], call.coefficients[count:])
    results = lookup("scan")(
        *call.operands[:count],
        *loop.operands,
        **{**loop.params(params), "stacked": loop.stacked},
    )
    return loop.series(results, 0, len(params["body"].outputs) - loop.carried)


def while_series(call: SeriesCall) -> Results:
    """The coefficients of a while loop's results; the number of steps has none."""
    params = call.params
    loop = _LoopSeries(call, call.operands, call.coefficients)
    old: Body = params["condition"]
    unused = {
        k: [placeholder(old.inputs[k].spec) for _ in range(call.order)] for k in loop.made.active
    }
    condition = Body(
        *old.outputs, inputs=_with_terms(old.inputs, unused, loop.bounds), name=old.name
    )
    results = lookup("while")(*loop.operands, **{**loop.params(params), "condition": condition})
    return loop.series(results, 1, len(params["body"].outputs) - loop.carried)


@functools.lru_cache(maxsize=512)
def _branch(
    body: Body, order: int, active: tuple[int, ...], requested: tuple[int, ...], masked: bool
) -> tuple[Body, frozenset[int]]:
    """A body that returns the coefficients of the requested results."""
    parts = expanded(body, order, active, requested, masked)
    inputs = [*parts.inputs, *itertools.chain(*[parts.terms[k] for k in active])]
    outs = list(itertools.chain(*[parts.series[k] for k in requested]))
    made = Body(*results_once(*outs), inputs=inputs, name=f"{body.name}, Taylor coefficients")
    return made, parts.masked


def choice_series(name: str, call: SeriesCall) -> Results:
    """The coefficients of a conditional's results: the conditional of those of the branches."""
    which, *operands = call.operands
    bodies = call.params["branches"]
    given = call.coefficients[1:]
    active = tuple([k for k, c in enumerate(given) if c is not None])
    requested: set[int] = set()
    for body in bodies:
        depends = Dependence(body)
        requested |= {k for k in range(len(body.outputs)) if not depends.on(k).isdisjoint(active)}
    wanted = tuple(sorted(requested))
    branches = tuple([_branch(b, call.order, active, wanted, call.masked)[0] for b in bodies])
    terms = [_filled(given[k], bodies[0].inputs[k].spec, None, call.order) for k in active]
    results = lookup(name)(
        which, *operands, *itertools.chain(*terms), **{**call.params, "branches": branches}
    )
    out: list[list[Any] | None] = [None] * len(bodies[0].outputs)
    for j, k in enumerate(wanted):
        out[k] = list(results[j * call.order : (j + 1) * call.order])
    return out, True  # the coefficients of a branch that does not vary are zero


def body_series(body: Body, call: SeriesCall) -> Results:
    """The coefficients of the results of a body that runs once."""
    active = tuple([k for k, c in enumerate(call.coefficients) if c is not None])
    depends = Dependence(body)
    count = len(body.outputs)
    wanted = tuple([k for k in range(count) if not depends.on(k).isdisjoint(active)])
    made, masked = _branch(body, call.order, active, wanted, call.masked)
    terms = [_filled(call.coefficients[k], body.inputs[k].spec, None, call.order) for k in active]
    results = inline_graph(made, [*call.operands, *itertools.chain(*terms)])
    out: list[list[Any] | None] = [None] * count
    for j, k in enumerate(wanted):
        out[k] = list(results[j * call.order : (j + 1) * call.order])
    return out, bool(masked)
