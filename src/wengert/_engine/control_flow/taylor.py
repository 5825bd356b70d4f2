"""Taylor series of loops and branches: the same loop, with coefficients next to the carry.

The bodies are transformed as for forward mode (jvp.py), with the coefficients of order 1 to K of
each value instead of its tangent (autodiff/series.py).

    expanded                              a body with coefficients
    scan_series, while_series             rules of loops
    choice_series, body_series            rules of branches, and of a body that runs once
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wengert._engine.autodiff.jet import traced_series
from wengert._engine.autodiff.series_terms import SeriesCall
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.uniform_arrays import uniform, zeros

from .dependence import Dependence
from .message_carry import body_derivative, results_once

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


def _interleaved(
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
        inputs=_interleaved(
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
        self.operands = _interleaved(operands, terms, self.bounds)
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
        *old.outputs, inputs=_interleaved(old.inputs, unused, loop.bounds), name=old.name
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
