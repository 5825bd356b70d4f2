"""VJP rules of loops: the pullback of a loop is a loop in reverse.

The pullback of the body is traced once: from the cotangents of the next carry and of the ys to
those of the carry, of the x and of the captured values.  It is split in two: the nodes that can be
computed in the forward loop, and those that depend on cotangents.  The forward loop stores the
residuals that the second part reads (residuals.py); the backward loop reads them along with the xs,
carries the cotangents, and sums those of the consts.

    pulled                   the bodies of the forward and the backward loop
    pull_scan, pull_while    rules of the operations
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.reverse import gathered, pullback
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.graph_nodes import ancestors
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.loop_variants import set_variant, with_variants
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import RuleContext, lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim, is_open, open_length
from wengert._engine.core.tracing import deriving_level, placeholder, size_value
from wengert._engine.core.uniform_arrays import uniform, zeros
from wengert._engine.ops.casts import astype

from .checkpoint_schedule import MOST_STATES, blocks_of, bytes_of
from .closure_conversion import dealiased, hoisted
from .dependence import Dependence, used_of, with_consts
from .message_carry import body_derivative, set_variant_with_messages
from .residuals import (
    SplitPullback,
    buffered,
    from_buffers,
    most_steps,
    ranges_of,
    set_ranges,
    split,
)
from .restoration import BackwardBody, Chain, chains_of, step_of
from .sparse_cotangents import added_in_place

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


class Request(NamedTuple):
    """Which derivative of a loop is needed.

    carried, stacked : how many of the body's inputs are carried, and how many are rows of the xs.
    given : the outputs of the loop that have cotangents.
    wanted : the body's inputs whose operands need cotangents.
    guarded : whether zero cotangents are strong zeros.
    restores : whether arrays may be restored (restoration.py); if not, only induction variables.
    ranges : the ranges of induction variables, if known.
    """

    carried: int
    stacked: int
    given: frozenset[int]
    wanted: frozenset[int]
    guarded: bool
    restores: bool
    ranges: tuple[tuple[int, int, int], ...] = ()


class Pulled(NamedTuple):
    """The bodies of a loop's derivative; inputs and outputs are given by position.

    forward : the body, with the residuals as additional ys.
    residual_count : the number of residuals.
    before : the loop-invariant part of the backward body; None if there is none.
    back : the backward body: takes the consts, the results of `before`, the carried cotangents,
        sums and restored values; rows of the xs, of the residuals, of the cotangents of the ys.
    live : the carried inputs that have cotangents.
    consts : the consts whose cotangents are summed.
    stacks : the xs whose cotangents are needed.
    read : the xs that `back` reads.
    ys : the ys that have cotangents.
    restored : the carried inputs that `back` restores.
    steps : the increment of each of these per step: an input, a number, or None if unknown.
    masked : the inputs whose cotangents may be zero because something was not selected.
    used : the consts that `back` uses.
    """

    forward: Body
    residual_count: int
    before: Body | None
    back: Body
    live: tuple[int, ...]
    consts: tuple[int, ...]
    stacks: tuple[int, ...]
    read: tuple[int, ...]
    ys: tuple[int, ...]
    restored: tuple[int, ...]
    steps: tuple[Any, ...]
    masked: frozenset[int]
    used: tuple[int, ...]


@functools.lru_cache(maxsize=512)
def pulled(body: Body, request: Request) -> Pulled:
    """The bodies of the forward and the backward loop."""
    fixed = len(body.inputs) - request.carried - request.stacked
    carried = range(fixed, fixed + request.carried)
    depends = Dependence(body)
    active = depends.active(request.wanted, carried)
    ys = tuple(
        [k for k in sorted(request.given) if k >= request.carried and depends.on(k) & active]
    )
    live = depends.live(
        [k for k in request.given if k < request.carried or k in ys], active, carried
    )
    ends = [k - fixed for k in live]
    reached = frozenset[int]().union(*[depends.on(k) for k in (*ends, *ys)])
    consts = tuple([k for k in sorted(request.wanted & reached) if k < fixed])
    stacks = tuple([k for k in sorted(request.wanted & reached) if k >= carried.stop])
    with body_derivative():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        set_ranges(inputs, request.ranges)
        outs = inline_graph(body, [wrap(n) for n in inputs])
        seeds = [placeholder(body.outputs[k].spec) for k in (*ends, *ys)]
        targets = [inputs[k] for k in (*live, *consts, *stacks)]
        nodes = [x.node if isinstance(x, Handle) else constant(x) for x in outs]
        pairs = zip([nodes[k] for k in (*ends, *ys)], map(wrap, seeds), strict=True)
        masked_targets: set[Node] = set()
        cotangents = pullback(
            gathered(pairs), targets, masked=request.guarded, masked_targets=masked_targets
        )
        masked = frozenset([k for k in (*live, *consts, *stacks) if inputs[k] in masked_targets])
        if not request.guarded and not masked.isdisjoint(live):
            # A carried cotangent that a step masks must be a strong zero in the step before.
            return pulled(body, request._replace(guarded=True))
        cotangents = [
            uniform(n.spec, 0) if cotangent is None else cotangent
            for cotangent, n in zip(cotangents, targets, strict=True)
        ]
        sums = [placeholder(n.spec) for n in targets[len(live) : len(live) + len(consts)]]
        for k, total in enumerate(sums, len(live)):
            cotangents[k] = wrap(total) + cotangents[k]
        results = dealiased([cotangent.node for cotangent in cotangents])
        results = added_in_place(results, ancestors(results))
        chains = chains_of(inputs, nodes[: request.carried], fixed)
        if not request.restores:
            chains = [c for c in chains if step_of(c, inputs[:fixed]) is not None]
        parts = split(results, {*seeds, *sums}, inputs[fixed : carried.stop], chains)
    read = tuple([k for k in range(carried.stop, len(inputs)) if inputs[k] in parts.read])
    rows = [*[inputs[k] for k in read], *parts.placeholders, *seeds[len(live) :]]
    back, before = _backward_body(
        parts,
        [*inputs[:fixed], *seeds[: len(live)], *sums, *parts.ends, *rows],
        (fixed, len(live) + len(consts)),
        f"{body.name}, backwards",
    )
    restored = tuple([c.number for c in parts.chains])
    steps = tuple([_step(c, inputs[:fixed]) for c in parts.chains])
    # No inner loop runs twice: its results come from the loop that stores its residuals.
    forward = Body(*with_variants([*nodes, *parts.residuals]), inputs=inputs, name=body.name)
    return Pulled(
        *(forward, len(parts.residuals), before, back, tuple(live), consts, stacks, read, ys),
        *(restored, steps, masked, used_of(back, fixed)),
    )


def _backward_body(
    parts: SplitPullback, inputs: Sequence[Node], counts: tuple[int, int], name: str
) -> tuple[Body, Body | None]:
    """The backward body without its loop-invariant part, and this part.

    `counts` are the number of consts, and of the results that are carried.
    """
    fixed, carried = counts
    outputs = [*parts.results[:carried], *parts.starts, *parts.results[carried:]]
    back, before = hoisted(Body(*outputs, inputs=inputs, name=name), fixed)
    if parts.chains:
        back = BackwardBody(*back.outputs, inputs=back.inputs, name=back.name)
        back.restores = range(carried, carried + len(parts.chains))
    return back, before


def _step(chain: Chain, fixed: Sequence[Node]) -> Any:
    """The increment per step: the position of an input, a constant node, or None if unknown."""
    step = step_of(chain, fixed)
    return fixed.index(step) if step in fixed else step


def pull_scan(
    node: Node, t: Mapping[int, Any], out: Sequence[Any], inputs: Sequence[Any], ctx: RuleContext
) -> list[Any]:
    """The cotangents of a scan's operands."""
    params = node.params
    count = list(inputs[: params["counted"]])
    length = params["length"]
    steps: Any = (
        lookup("maximum")(count[0], 0)
        if count
        else size_value(length)
        if isinstance(length, Dim)
        else length
    )
    operands = slice(len(count), None)
    loop = _LoopCotangent(node, node.args[operands], inputs[operands], t, ctx, out, steps)
    bodies = loop.bodies
    residuals: Sequence[Any] = ()
    if loop.slots is not None and bodies.residual_count:
        extra = {k: params[k] for k in ("length", "reverse", "counted")}
        snapshots = lookup("checkpointed")(*inputs, **loop.checkpointed_params(node))[-1]
        return [*[None] * len(count), *loop.replayed(count, snapshots, extra)]
    if bodies.residual_count and loop.max_steps is not None:
        return [*[None] * len(count), *loop.through_buffers(node, count)]
    if bodies.residual_count:
        if length is None:
            length = open_length()
        outs = lookup("scan")(*inputs, **{**params, "body": bodies.forward, "length": length})
        set_variant_with_messages(node, outs)
        residuals = outs[len(outs) - bodies.residual_count :]
    extra = {"length": length, "reverse": not params["reverse"], "counted": params["counted"]}
    return [*[None] * len(count), *loop.backwards(count, residuals, extra)]


def pull_while(
    node: Node, t: Mapping[int, Any], out: Sequence[Any], inputs: Sequence[Any], ctx: RuleContext
) -> list[Any]:
    """The cotangents of a while loop's operands, by a scan over its steps."""
    params = node.params
    carried = params["carried"]
    # The number of steps follows the carry; it is not an output of the body.
    cotangents = {k - (k > carried): x for k, x in t.items() if k != carried}
    loop = _LoopCotangent(node, node.args, inputs, cotangents, ctx, out, out[carried])
    bodies = loop.bodies
    length = params["length"]
    if loop.slots is not None and bodies.residual_count:
        outs = lookup("checkpointed")(*inputs, **loop.checkpointed_params(node))
        extra = {"length": length, "reverse": False, "counted": True, "spread": True}
        return loop.replayed([outs[carried]], outs[-1], extra)
    if bodies.residual_count and length is None:
        length = open_length()
    outs = lookup("while")(*inputs, **{**params, "body": bodies.forward, "length": length})
    set_variant_with_messages(node, outs)
    residuals = outs[len(outs) - bodies.residual_count :]
    extra = {"length": length, "reverse": True, "counted": True}
    return loop.backwards([outs[carried]], residuals, extra)


class _LoopCotangent:
    """The VJP of one loop."""

    def __init__(
        self,
        node: Node,
        args: Sequence[Any],
        inputs: Sequence[Any],
        t: Mapping[int, Any],
        ctx: RuleContext,
        results: Sequence[Any],
        steps: Any,
    ) -> None:
        self.results, self.steps = results, steps
        self.params = params = node.params
        self.body: Body = params["body"]
        self.args, self.inputs, self.t = args, inputs, t
        self.carried, self.stacked = params["carried"], params.get("stacked", 0)
        self.fixed = len(args) - self.carried - self.stacked
        wanted = frozenset(k for k, a in enumerate(args) if ctx.wants(a))
        # Arrays are restored only if the number of steps is known: otherwise the length of the undo
        # logs differs between the steps of an outer loop, which cannot stack them.
        self.max_steps = None
        max_steps = params["length"]
        if max_steps is None and params.get("counted") and params.get("slots") is None:
            max_steps = self.max_steps = most_steps(node.args[0])
        restores = max_steps is not None and not is_open(max_steps)
        ranges = ranges_of(self.body, args, self.fixed, self.carried, max_steps)
        request = Request(
            self.carried, self.stacked, frozenset(t), wanted, ctx.guarded, restores, ranges
        )
        self.bodies = pulled(self.body, request)
        ctx.mask([args[k] for k in self.bodies.masked])
        self.slots = _slots(params, self.bodies)

    def backwards(
        self, count: list[Any], residuals: Sequence[Any], extra: dict[str, Any]
    ) -> list[Any]:
        """The cotangent of each operand, or None."""
        bodies = self.bodies
        if not bodies.live and not bodies.ys:
            return [None] * len(self.args)
        consts, initial = (
            [*[self.inputs[k] for k in bodies.used], *self.hoisted()],
            self.initial_values(),
        )
        rows = [*[self.inputs[k] for k in bodies.read], *residuals, *[self.t[k] for k in bodies.ys]]
        results = lookup("scan")(
            *[*count, *consts, *initial, *rows],
            body=with_consts(bodies.back, self.fixed, bodies.used),
            carried=len(initial),
            stacked=len(rows),
            **extra,
        )
        return self.by_operand(results)

    def through_buffers(self, node: Node, count: list[Any]) -> list[Any]:
        """`backwards` with residuals in buffers, for a number of steps that has a bound."""
        bodies, max_steps, params = self.bodies, self.max_steps, self.params
        assert max_steps is not None
        if not bodies.live and not bodies.ys:
            return [None] * len(self.args)
        first_stacked = len(self.inputs) - self.stacked
        specs = [n.spec for n in bodies.forward.outputs[-bodies.residual_count :]]
        buffers = [zeros(Spec((max_steps, *s.shape), s.dtype)) for s in specs]
        extra = {"length": None, "counted": True}
        outs = lookup("scan")(
            *[
                *count,
                *self.inputs[:first_stacked],
                np.int64(0),
                *buffers,
                *self.inputs[first_stacked:],
            ],
            body=buffered(
                bodies.forward, self.carried, self.stacked, bodies.residual_count, max_steps
            ),
            carried=self.carried + 1 + bodies.residual_count,
            stacked=self.stacked,
            reverse=params["reverse"],
            **extra,
        )
        set_variant(node, outs[0].node.inputs[0])
        residuals = outs[self.carried + 1 :]
        consts, initial = (
            [*[self.inputs[k] for k in bodies.used], *self.hoisted()],
            self.initial_values(),
        )
        carried = range(len(consts), len(consts) + len(initial))
        first_residual = carried.stop + len(bodies.read)
        residual_inputs = range(first_residual, first_residual + bodies.residual_count)
        rows = [*[self.inputs[k] for k in bodies.read], *[self.t[k] for k in bodies.ys]]
        results = lookup("scan")(
            *[*count, *consts, *residuals, *initial, self.steps, *rows],
            body=from_buffers(
                with_consts(bodies.back, self.fixed, bodies.used),
                residual_inputs,
                carried,
                max_steps,
            ),
            carried=len(initial) + 1,
            stacked=len(rows),
            reverse=not params["reverse"],
            **extra,
        )
        return self.by_operand([*results[: len(initial)], *results[len(initial) + 1 :]])

    def checkpointed_params(self, node: Node) -> dict[str, Any]:
        """The parameters of the loop that stores snapshots."""
        params = {k: x for k, x in node.params.items() if k not in ("slots", "bytes")}
        return {**params, "loop": node.op.name, **self._schedule_params()}

    def _schedule_params(self) -> dict[str, Any]:
        assert self.slots is not None
        slots, length = min(self.slots, MOST_STATES), self.params["length"]
        needed = blocks_of(length, slots) if isinstance(length, int) else slots
        return {"slots": min(slots, needed), "block": slots}

    def replayed(self, count: list[Any], snapshots: Array, extra: dict[str, Any]) -> list[Any]:
        """`backwards` by a replay, which stores a few states only."""
        bodies = self.bodies
        if not bodies.live and not bodies.ys:
            return [None] * len(self.args)
        hoisted, initial = self.hoisted(), self.initial_values()
        results = lookup("replay")(
            *[*count, *self.inputs, snapshots, *hoisted, *initial, *[self.t[k] for k in bodies.ys]],
            step=_only(self.body, range(self.carried)),
            keep=_only(bodies.forward, [*range(self.carried), *range(-bodies.residual_count, 0)]),
            back=bodies.back,
            carried=self.carried,
            stacked=self.stacked,
            more=len(hoisted),
            pulled=len(initial),
            read=tuple([k - self.fixed - self.carried for k in bodies.read]),
            **{**self._schedule_params(), "spread": False, **extra},
        )
        return self.by_operand(results)

    def hoisted(self) -> list[Any]:
        """The loop-invariant operands of the backward loop, computed from the consts."""
        before = self.bodies.before
        if before is None:
            return []
        # In the body the derivative level is relative; here it is that of this backward pass.
        return inline_graph(before, self.inputs[: self.fixed], highest=deriving_level())

    def initial_values(self) -> list[Any]:
        """The carried cotangents, sums and restored values before the first backward step."""
        initial = []
        for k in self.bodies.live:
            cotangent = self.t.get(k - self.fixed)
            initial.append(zeros(self.body.inputs[k].spec) if cotangent is None else cotangent)
        initial += [zeros(self.body.inputs[k].spec) for k in self.bodies.consts]
        return initial + [
            self._end(*p) for p in zip(self.bodies.restored, self.bodies.steps, strict=True)
        ]

    def _end(self, k: int, step: Any) -> Any:
        """The value after the last step of a carried value that the backward loop restores."""
        if step is None:
            return self.results[k - self.fixed]
        # Computed from the number of steps, so that no outer loop needs to store it.
        dtype = self.body.inputs[k].spec.dtype
        increment = self.inputs[step] if isinstance(step, int) else wrap(step)
        return self.inputs[k] + increment * astype(self.steps, dtype)

    def by_operand(self, results: Sequence[Any]) -> list[Any]:
        """The cotangent of each operand, from the results of the backward loop."""
        bodies = self.bodies
        cotangents: list[Any] = [None] * len(self.args)
        restored_start = len(bodies.live) + len(bodies.consts)
        results = [*results[:restored_start], *results[restored_start + len(bodies.restored) :]]
        for k, cotangent in zip(
            (*bodies.live, *bodies.consts, *bodies.stacks), results, strict=True
        ):
            cotangents[k] = cotangent
        return cotangents


def _only(body: Body, outputs: Iterable[int]) -> Body:
    """A body with some of its outputs."""
    return Body(*[body.outputs[k] for k in outputs], inputs=body.inputs, name=body.name)


def _slots(params: Mapping[str, Any], bodies: Pulled) -> int | None:
    """The number of steps whose residuals may be stored; None for all."""
    slots: int | None = params.get("slots")
    if slots is not None and params.get("bytes"):
        # For each step either its state or its residuals are stored.
        carry = bodies.forward.outputs[: params["carried"]]
        state, residuals = (
            bytes_of(carry),
            bytes_of(bodies.forward.outputs[-bodies.residual_count or None :]),
        )
        slots = max(slots * state // max(state + residuals, 1), 1)
    length = params["length"]
    return None if slots is None or (isinstance(length, int) and length <= slots) else slots
