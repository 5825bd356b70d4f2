"""Propagation of sparsity through graphs: loops, branches, custom functions, and all nodes.

    scan            a known number of steps, with rows of arrays as inputs and outputs
    repeated_while  steps as long as a condition holds
    choice          one of several bodies: the union of all
    sized           a body with lengths that are computed
    custom          a function with a custom rule
    dependence      of a graph's outputs on some of its inputs, as one boolean matrix
    propagate       the traversal itself, which bodies of loops use too

The dependencies of a body are found once (`BodyDependencies`), and composed step by step if there
are few steps.  If there are many, or their number is not known, the sets of the carry are united
over all steps until a fixed point is reached; rows still have separate sets.

If what a step reads or writes depends on a known integer, such as the counter of the loop
(known_values.py), each step is propagated by itself.

An operation without a rule gives `everything` (rule_context.py), so that the pattern is never too
small.  Nodes whose derivative is known to be zero (comparisons, integers, `stop_gradient`) depend
on nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow.call_rule import BatchedRule, CustomRule
from wengert._engine.control_flow.custom_rules import as_linear
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import Node
from wengert._engine.core.op import Op
from wengert._engine.implicit.solver_calls import SolverRule
from wengert._engine.kinds.opaque import Opaque
from wengert.errors import WengertError

from . import array_rules
from .known_values import KnownValues, LoopValues, StepDependent, body_that_runs
from .rule_context import (
    NodeContext,
    Sets,
    chosen,
    equal,
    everything,
    gathered,
    nothing,
    places,
    repeated,
    size_of,
    stacked,
    through,
    united,
)

# ---- loops and branches ------------------------------------------------------------------------


STEPS = 256  # maximum number of steps of equal dependencies that are composed one by one
Propagate = Callable[..., list[Sets | None]]


class BodyDependencies:
    """The dependencies of the outputs of a body on its inputs.

    Parameters
    ----------
    body : Body
    propagate : callable
        ``propagate(body, sets, columns, values)``: the sets of the outputs from the inputs'.
    values : KnownValues
        The known values of the body.
    """

    def __init__(self, body: Body, propagate: Propagate, values: KnownValues) -> None:
        sizes = [size_of(n.spec) for n in body.inputs]
        ends = [0, *accumulate(sizes)]
        total = ends[-1]
        moves = [n.spec.dtype.kind in "fc" for n in body.inputs]
        given = [
            places(size, total, first) if move else None
            for size, first, move in zip(sizes, ends, moves, strict=False)
        ]
        found = propagate(body, given, total, values)
        self.sizes = [size_of(n.spec) for n in body.outputs]
        self._outputs = _without_none(body, found, total)

    def local(self, k: int) -> Sets:
        """The dependencies of an output on the concatenated inputs."""
        return self._outputs[k]

    def outputs(self, sets: Sets) -> list[Sets]:
        """The sets of the outputs, for those of the concatenated inputs."""
        return [through(local, sets) for local in self._outputs]


class LoopSets(NamedTuple):
    """A loop, and the sets of its operands.

    consts, carry, xs : the sets of constants, of the carry before a step, and of arrays of rows.
    values : known values of its body.
    """

    ctx: NodeContext
    propagate: Propagate
    consts: list[Sets]
    carry: list[Sets]
    xs: list[Sets]
    values: LoopValues

    @classmethod
    def of(cls, ctx: NodeContext, propagate: Propagate, first: int, rows: int) -> LoopSets:
        """Those of a node; `first` is the first of its operands that the body takes."""
        carried = ctx.params["carried"]
        given = _filled(ctx, range(first, len(ctx.specs)))
        fixed = len(given) - carried - rows
        values = LoopValues.of(ctx.node, ctx.values)
        consts, carry, xs = given[:fixed], given[fixed : fixed + carried], given[fixed + carried :]
        return cls(ctx, propagate, consts, carry, xs, values)

    @property
    def body(self) -> Body:
        """The body."""
        return self.ctx.params["body"]  # type: ignore[no-any-return]

    def row_sizes(self) -> list[int]:
        """The sizes of the rows that a step gets."""
        return [size_of(n.spec) for n in self.body.inputs[len(self.consts) + len(self.carry) :]]

    def in_steps(self, order: Sequence[int]) -> tuple[list[Sets], list[list[Sets]]] | None:
        """The sets of the carry after the steps, and of the rows they give; None if too many."""
        try:
            inside = BodyDependencies(self.body, self.propagate, self.values.of_no_step())
        except StepDependent as error:
            if error.loop is not self.values:
                raise
        else:
            if len(order) > STEPS:
                return None
            return self._each(order, lambda sets, _: inside.outputs(stacked(sets, self.columns)))
        if not self.ctx.values.allowance.permits(len(self.body.nodes) * len(order)):
            return None
        each = self.values.of_each_step(order)
        moves = [n.spec.dtype.kind in "fc" for n in self.body.inputs]

        def one(sets: list[Sets], columns: int) -> list[Sets]:
            given = [s if move else None for s, move in zip(sets, moves, strict=True)]
            found = self.propagate(self.body, given, columns, next(each))
            return _without_none(self.body, found, columns)

        return self._each(order, one)

    @property
    def columns(self) -> int:
        """The number of scalars to differentiate with respect to."""
        return self.ctx.columns

    def _each(
        self, order: Sequence[int], one: Callable[[list[Sets], int], list[Sets]]
    ) -> tuple[list[Sets], list[list[Sets]]]:
        carry, sizes, carried = self.carry, self.row_sizes(), len(self.carry)
        ys: list[list[Sets]] = [[] for _ in self.body.outputs[carried:]]
        for k in order:
            row = [x[k * n : (k + 1) * n] for x, n in zip(self.xs, sizes, strict=True)]
            outs = one([*self.consts, *carry, *row], self.columns)
            carry = outs[:carried]
            for y, sets in zip(ys, outs[carried:], strict=True):
                y.append(sets)
        return carry, ys

    def closed(self) -> list[Sets | None]:
        """The sets of the carry after any number of steps; each row with its own elements."""
        inside = BodyDependencies(self.body, self.propagate, self.values.of_all_steps())
        return _closed(self.ctx, inside, self.consts, self.carry, self.xs)


def scan(ctx: NodeContext, propagate: Propagate) -> list[Sets | None]:
    """A known number of steps, or one that is an operand."""
    params = ctx.params
    loop = LoopSets.of(ctx, propagate, int(params["counted"]), params["stacked"])
    length = params["length"]
    if params["counted"]:
        count = ctx.known(0)
        stacks = len(loop.body.outputs) > params["carried"]
        length = None if count is None or stacks else max(int(count), 0)
    if not isinstance(length, int):
        return loop.closed()
    found = loop.in_steps(range(length)[::-1] if params["reverse"] else range(length))
    if found is None:
        return loop.closed()
    carry, ys = found
    rows = [stacked(y[::-1] if params["reverse"] else y, ctx.columns) for y in ys]
    return _of_numbers(ctx, [*carry, *rows])


def repeated_while(ctx: NodeContext, propagate: Propagate) -> list[Sets | None]:
    """Steps while a condition holds; their number has no derivative."""
    params = ctx.params
    loop = LoopSets.of(ctx, propagate, 0, 0)
    if len(loop.body.outputs) == params["carried"]:  # rows would have an unknown length
        steps = loop.values.steps_while(params["condition"])
        found = None if steps is None else loop.in_steps(range(steps))
        if found is not None:
            return [*_of_numbers(ctx, found[0]), None]
    found_for_any = loop.closed()
    return [*found_for_any[: params["carried"]], None, *found_for_any[params["carried"] :]]


def choice(ctx: NodeContext, propagate: Propagate) -> list[Sets | None]:
    """The union of the dependencies of all bodies, or those of the one that is known to run."""
    runs = body_that_runs(ctx.node, ctx.values)
    if runs is not None:
        return _of_body(ctx, runs, propagate)
    branches = ctx.params["branches"]
    given = stacked(_filled(ctx, range(1, len(ctx.specs))), ctx.columns)
    each = [
        BodyDependencies(b, propagate, ctx.values.inside(b.inputs, ctx.node.inputs[1:]))
        for b in branches
    ]
    outs = [inside.outputs(given) for inside in each]
    return _of_numbers(ctx, [united(of_one) for of_one in zip(*outs, strict=True)])


def sized(ctx: NodeContext, propagate: Propagate) -> list[Sets | None]:
    """A body with computed lengths."""
    runs = body_that_runs(ctx.node, ctx.values)
    if runs is None:
        return everything(ctx)  # type: ignore[no-any-return]
    return _of_body(ctx, runs, propagate)


def _of_body(ctx: NodeContext, body: Body, propagate: Propagate) -> list[Sets | None]:
    """The sets of a body that runs once, with the operands after the first."""
    values = ctx.values.inside(body.inputs, ctx.node.inputs[1:])
    found = propagate(body, ctx.sets[1:], ctx.columns, values)
    return _of_numbers(ctx, _without_none(body, found, ctx.columns))


def _is_solver(rule: CustomRule) -> bool:
    """Whether the rule solves an equation, whose solution depends on everything."""
    while isinstance(rule, BatchedRule):
        rule = rule.rule
    return isinstance(rule, SolverRule)


def custom(ctx: NodeContext, propagate: Propagate) -> list[Sets | None]:
    """The dependencies of the rule for tangents, rather than those of the function."""
    if ctx.params["body"] is None or _is_solver(ctx.params["rule"]):
        return everything(ctx)  # type: ignore[no-any-return]
    try:
        body, moving = as_linear(ctx.node)
    except WengertError:  # the rule cannot be traced here
        return everything(ctx)  # type: ignore[no-any-return]
    given = [ctx.sets[k] for k in moving]
    before: list[Sets | None] = [None] * (len(body.inputs) - len(given))
    found = iter(propagate(body, [*before, *given], ctx.columns))
    return [next(found) if s.dtype.kind in "fc" else None for s in ctx.node.spec]


def _without_none(body: Body, found: Sequence[Sets | None], columns: int) -> list[Sets]:
    """The sets of a body's outputs, empty ones for those that depend on nothing."""
    pairs = zip(found, body.outputs, strict=True)
    return [nothing(size_of(n.spec), columns) if s is None else s for s, n in pairs]


def _filled(ctx: NodeContext, operands: Sequence[int]) -> list[Sets]:
    return [
        nothing(size_of(ctx.specs[k]), ctx.columns) if ctx.sets[k] is None else ctx.sets[k]
        for k in operands
    ]


def _of_numbers(ctx: NodeContext, found: Sequence[Sets]) -> list[Sets | None]:
    """None for results that are integers."""
    pairs = zip(found, ctx.node.spec, strict=False)
    return [s if spec.dtype.kind in "fc" else None for s, spec in pairs]


def _closed(
    ctx: NodeContext,
    inside: BodyDependencies,
    consts: list[Sets],
    carry: list[Sets],
    xs: list[Sets],
) -> list[Sets | None]:
    """The sets of the carry after any number of steps; each row with its own elements."""
    carried = len(carry)
    sizes = [size_of(n.spec) for n in ctx.params["body"].inputs[len(consts) + carried :]]
    counts = [x.shape[0] // max(n, 1) for x, n in zip(xs, sizes, strict=True)]
    any_row = [
        gathered(x, np.arange(x.shape[0]) % max(n, 1), n) for x, n in zip(xs, sizes, strict=True)
    ]
    while True:
        outs = inside.outputs(stacked([*consts, *carry, *any_row], ctx.columns))
        new = [united(pair) for pair in zip(carry, outs[:carried], strict=True)]
        if all(map(equal, new, carry)):
            break
        carry = new
    before = stacked([*consts, *carry], ctx.columns)
    specs = ctx.node.spec[len(ctx.node.spec) - len(outs) + carried :]
    made = []
    for j, spec in enumerate(specs):
        size = inside.sizes[carried + j]
        local = inside.local(carried + j)
        count = size_of(spec) // max(size, 1)
        fixed = through(local[:, : before.shape[0]], before)
        sets = [chosen(fixed, np.tile(np.arange(1, size + 1), count))]
        first = before.shape[0]
        for x, n, rows in zip(xs, sizes, counts, strict=True):
            if rows == count:
                sets.append(through(repeated(local[:, first : first + n], rows), x))
            first += n
        made.append(united(sets))
    return _of_numbers(ctx, [*carry]) + [
        s if spec.dtype.kind in "fc" else None for s, spec in zip(made, specs, strict=True)
    ]


# ---- graphs ------------------------------------------------------------------------------------


Rule = Callable[[NodeContext], Any]

_CHOOSING = (
    "broadcast_to concatenate copy diagonal expand_dims flip gather_along getitem reshape"
    " roll shift squeeze stack transpose"
)
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_CHOOSING.split(), array_rules.choosing),
    **dict.fromkeys("after cast imag real".split(), array_rules.identity),
    **dict.fromkeys("sum_to scatter scatter_along".split(), array_rules.adding),
    **dict.fromkeys("cumsum cumprod recurrence running".split(), array_rules.sums),
    **dict.fromkeys("fft rfft irfft fft.dct fft.dst".split(), array_rules.along),
    **dict.fromkeys("softmax log_softmax".split(), array_rules.along),
    **dict.fromkeys(
        "solve inv pinv det det_derivative slogdet cholesky qr eigh eig svd expm".split(),
        array_rules.matrices,
    ),
    "setitem": array_rules.placed,
    "scatter_add": array_rules.added,
    **dict.fromkeys(
        "convolution convolution_input convolution_weight sum_pool sum_pool_adjoint"
        " signal.convolve signal.slide".split(),
        array_rules.multilinear,
    ),
    **dict.fromkeys("convolve slide".split(), array_rules.sliding),
}
_KINDS: dict[str, Rule] = {
    "elementwise": array_rules.elementwise,
    "reduction": array_rules.reduction,
    "contraction": array_rules.contraction,
    "view": array_rules.linear,
}
_LOOPS: dict[str, Callable[..., Any]] = {
    "scan": scan,
    "while": repeated_while,
    "cond": choice,
    "switch": choice,
    "sized": sized,
    "custom_call": custom,
}


def dependence(graph: BaseGraph, inputs: Sequence[Node], first: int = 0) -> Sets:
    """Which elements of some inputs each element of the outputs may depend on, differentiably.

    Parameters
    ----------
    graph : Graph
    inputs : sequence of Node
        The inputs to differentiate with respect to.
    first : int
        The first of the outputs that count.

    Returns
    -------
    csr_array of bool
        A row for each output element, a column for each input element.
    """
    sizes = [size_of(n.spec) for n in inputs]
    ends = [0, *accumulate(sizes)]
    columns = ends[-1]
    given: dict[Node, Sets] = {
        n: places(size, columns, first) for n, size, first in zip(inputs, sizes, ends, strict=False)
    }
    found = propagate(graph, [given.get(n) for n in graph.inputs], columns)
    pairs = zip(found[first:], graph.outputs[first:], strict=True)
    rows = [nothing(size_of(n.spec), columns) if s is None else s for s, n in pairs]
    sets = stacked(rows, columns)
    sets.sum_duplicates()
    return sets


def propagate(
    graph: BaseGraph,
    inputs: Sequence[Sets | None],
    columns: int,
    values: KnownValues | None = None,
) -> list[Sets | None]:
    """The sets of the outputs, for those of the inputs; None for an input without derivative."""
    values = values or KnownValues()
    place: dict[Node, Any] = dict(zip(graph.inputs, inputs, strict=True))
    left = {n: k for k, node in enumerate(graph.nodes) for n in node.inputs}
    kept = set(graph.outputs)
    for k, node in enumerate(graph.nodes):
        if node not in place:
            place[node] = _sets(node, place, columns, values)
        for a in node.inputs:
            if left[a] == k and a not in kept:
                place[a] = None  # no longer needed
    return [place[n] for n in graph.outputs]


def _sets(node: Node, place: dict[Node, Any], columns: int, values: KnownValues) -> Any:
    """The sets of a node; a list for one with several outputs."""
    if type(node) is not Node or not node.args:
        return None
    if node.op is PART:
        whole = place[node.inputs[0]]
        return None if whole is None else whole[node.params["index"]]
    ctx = NodeContext(node, [place[a] for a in node.inputs], columns, values)
    if not ctx.moving:
        return None
    name = node.op.name
    if name in _LOOPS:
        return _LOOPS[name](ctx, propagate)
    return rule_of(node.op)(ctx)


def rule_of(op: Op) -> Rule:
    """The rule of an operation: its own, that of its kind, or `everything`."""
    if op.aliasing.transparent:
        return array_rules.identity
    if op.name in _RULES:
        return _RULES[op.name]
    if op.name.startswith("special.") and type(op) is not Opaque:
        return array_rules.pointwise  # functions of SciPy with hand-written derivatives
    return _KINDS.get(op.kind, everything)
