"""Sparsity rules of loops, branches and custom functions.

The dependencies of a body are found once (`BodyDependencies`), and composed step by step if there
are few steps.  If there are many, or their number is not known, the sets of the carry are united
over all steps until a fixed point is reached; rows still have separate sets.

    scan            a known number of steps, with rows of arrays as inputs and outputs
    repeated_while  steps as long as a condition holds
    choice          one of several bodies: the union of all
    custom          a function with a custom rule
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from wengert._engine.control_flow.call_rule import BatchedRule, CustomRule
from wengert._engine.control_flow.custom_rules import as_linear
from wengert._engine.core.subgraph import Body
from wengert._engine.implicit.solver_calls import SolverRule
from wengert.errors import WengertError

from .dependency_sets import (
    Sets,
    chosen,
    equal,
    gathered,
    nothing,
    places,
    repeated,
    stacked,
    through,
    united,
)
from .rule_context import NodeContext, everything, size_of

STEPS = 256  # maximum number of steps that are composed one by one
Propagate = Callable[..., list[Sets | None]]


class BodyDependencies:
    """The dependencies of the outputs of a body on its inputs.

    Parameters
    ----------
    body : Body
    propagate : callable
        ``propagate(nodes, known, columns)``: the sets of the outputs from those of the inputs.
    """

    def __init__(self, body: Body, propagate: Propagate) -> None:
        sizes = [size_of(n.spec) for n in body.inputs]
        ends = [0, *accumulate(sizes)]
        total = ends[-1]
        moves = [n.spec.dtype.kind in "fc" for n in body.inputs]
        given = [
            places(size, total, first) if move else None
            for size, first, move in zip(sizes, ends, moves, strict=False)
        ]
        found = propagate(body, given, total)
        self.sizes = [size_of(n.spec) for n in body.outputs]
        self._outputs = [
            nothing(size, total) if s is None else s
            for s, size in zip(found, self.sizes, strict=True)
        ]

    def local(self, k: int) -> Sets:
        """The dependencies of an output on the concatenated inputs."""
        return self._outputs[k]

    def outputs(self, sets: Sets) -> list[Sets]:
        """The sets of the outputs, for those of the concatenated inputs."""
        return [through(local, sets) for local in self._outputs]


def scan(ctx: NodeContext, propagate: Propagate) -> list[Sets | None]:
    """A known number of steps, or one that is an operand."""
    params = ctx.params
    body, carried, rows_in = params["body"], params["carried"], params["stacked"]
    counted = int(params["counted"])
    given = _filled(ctx, range(counted, len(ctx.specs)))
    fixed = len(given) - carried - rows_in
    consts, carry, xs = given[:fixed], given[fixed : fixed + carried], given[fixed + carried :]
    inside = BodyDependencies(body, propagate)
    length = params["length"]
    if counted or not isinstance(length, int) or length > STEPS:
        return _closed(ctx, inside, consts, carry, xs)
    ys: list[list[Sets]] = [[nothing(0, ctx.columns)] * length for _ in inside.sizes[carried:]]
    each = [x.shape[0] // max(length, 1) for x in xs]
    for step in range(length):
        k = length - 1 - step if params["reverse"] else step
        row = [x[k * n : (k + 1) * n] for x, n in zip(xs, each, strict=True)]
        outs = inside.outputs(stacked([*consts, *carry, *row], ctx.columns))
        carry = outs[:carried]
        for y, sets in zip(ys, outs[carried:], strict=True):
            y[k] = sets
    return _of_numbers(ctx, [*carry, *[stacked(y, ctx.columns) for y in ys]])


def repeated_while(ctx: NodeContext, propagate: Propagate) -> list[Sets | None]:
    """Steps while a condition holds; their number has no derivative."""
    body, carried = ctx.params["body"], ctx.params["carried"]
    given = _filled(ctx, range(len(ctx.specs)))
    fixed = len(given) - carried
    found = _closed(ctx, BodyDependencies(body, propagate), given[:fixed], given[fixed:], [])
    return [*found[:carried], None, *found[carried:]]


def choice(ctx: NodeContext, propagate: Propagate) -> list[Sets | None]:
    """The union of the dependencies of all bodies."""
    given = stacked(_filled(ctx, range(1, len(ctx.specs))), ctx.columns)
    each = [BodyDependencies(b, propagate).outputs(given) for b in ctx.params["branches"]]
    return _of_numbers(ctx, [united(of_one) for of_one in zip(*each, strict=True)])


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
