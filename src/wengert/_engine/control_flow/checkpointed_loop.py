"""Checkpointed loops: a loop that stores a few of its states for the backward pass.

    checkpointed    args: operands of the loop -> results of the loop, snapshots

If the length of the loop is known before it starts, the schedule determines the states to store;
otherwise states are stored at equal distances, and every second one is dropped when the slots are
full.  Snapshots are bytes, one row per state; they are read only by a replay, and have no
derivative.

Replay: the backward pass of a checkpointed loop, which recomputes most states.

    replay    args: [count] consts, carry, xs, snapshots, more consts, carried cotangents and sums,
              cotangents of the ys

`step` is the loop's body without its ys, `keep` the same with the residuals as ys, and `back` the
backward part of its pullback.  The schedule determines which states are stored, and when
(checkpoint_schedule.py).  The snapshots were stored by the forward loop; a
backend can start from them, but the value does not depend on them.  The derivatives of a replay are
those of the two loops that it is equivalent to, which store all residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.batch_graph import map_over_batch
from wengert._engine.autodiff.forward import pushforward
from wengert._engine.autodiff.reverse import gathered, pullback
from wengert._engine.autodiff.series_terms import SeriesCall
from wengert._engine.autodiff.tape import fresh, tape_between
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.op_facts import CHECKPOINTED, REPLAY
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec, spec_of
from wengert._engine.core.symbolic.dim import open_length
from wengert._engine.core.tracing import derivation, is_deriving, placeholder

from . import batching
from .checkpoint_schedule import (
    OperandGroups,
    blocks_of,
    offsets_of,
    reversal,
    size_of_state,
    stored_by_count,
)
from .jvp import Results, body_series
from .loops import map
from .operations import Control
from .verify import check_checkpointed, check_replay

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

_CHECKPOINT_PARAMS = ("loop", "slots", "block")


def plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the loop without checkpoints."""
    return {k: x for k, x in params.items() if k not in _CHECKPOINT_PARAMS}


class Checkpointed(Control):
    """A loop that stores snapshots."""

    control_flow = CHECKPOINTED

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Spec, ...]:
        """The specs of the loop's results, and of the snapshots."""
        check_checkpointed(params)
        outs: Any = lookup(params["loop"]).infer(specs, plain(params))
        shape = (params["slots"], size_of_state(outs[: params["carried"]]))
        return (*outs, Spec(shape, np.dtype(np.uint8)))

    def run_by(self, compile: Callable[..., Any], *values: Any, **params: Any) -> tuple[Any, ...]:
        """Run the loop and store snapshots."""
        op: Any = lookup(params["loop"])
        slots, block = params["slots"], params["block"]
        carried = params["carried"]
        stop = len(values) - params.get("stacked", 0)
        offsets: Any = offsets_of([spec_of(x) for x in values[stop - carried : stop]])
        rows = np.zeros((slots, offsets[-1]), np.uint8)
        writer = _SnapshotWriter(rows, offsets, block)
        if params["loop"] == "scan":
            count = max(int(values[0]), 0) if params["counted"] else params["length"]
            writer.stored_steps = stored_by_count(count, slots, block)
        return (*op.walked(compile, values, plain(params), writer.visit), rows)

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """The rule of the loop."""
        inner = _by_itself(node)
        return inner.op.vjp(inner, t, out, inputs, ctx)

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The rule of the loop."""
        inner = _by_itself(node)
        return [*inner.op.jvp(inner, dots, out, inputs, ctx), None]

    def series(self, call: SeriesCall) -> Results:
        """The loop without snapshots."""
        op: Any = lookup(call.params["loop"])
        results, masked = op.series(call._replace(params=plain(call.params)))
        return [*results, None], masked

    def batched(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The loop for a batch; the snapshots, which nothing reads in this case, per element."""
        rule = batching.scan if params["loop"] == "scan" else batching.while_
        outs = rule(args, batched, size, plain(params))
        columns = [x for x, f in zip(args, batched, strict=True) if f]

        def row(handles: list[Array]) -> Any:
            elements = iter(handles)
            operands = [next(elements) if f else x for x, f in zip(args, batched, strict=True)]
            return lookup("checkpointed")(*operands, **params)[-1]

        return (*outs, map(row, columns))


class _SnapshotWriter:
    """Stores the snapshots of one run."""

    def __init__(self, rows: np.ndarray[Any, Any], offsets: Sequence[int], block: int) -> None:
        self.rows, self.offsets, self.distance = rows, offsets, block
        self.stored_steps: Sequence[int] | None = None  # the steps to store, if known in advance
        self.count = 0  # stored states

    def visit(self, k: int, carry: Sequence[Any]) -> None:
        """Store the state before a step, if the schedule requires it."""
        if self.stored_steps is None:
            if k == self.count * self.distance and self.count == len(self.rows):
                self.count = blocks_of(self.count, 2)
                self.rows[: self.count] = self.rows[::2]
                self.distance *= 2
            if k != self.count * self.distance:
                return
        elif self.count == len(self.stored_steps) or k != self.stored_steps[self.count]:
            return
        for x, start in zip(carry, self.offsets, strict=False):
            data = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
            self.rows[self.count, start : start + data.size] = data
        self.count += 1


def _by_itself(node: Node) -> Any:
    """The node of the loop without snapshots."""
    info = node.info_with(spec=node.spec[:-1])
    return type(node)(lookup(node.params["loop"]), node.args, plain(node.params), None, info)


checkpointed = register(
    Checkpointed("checkpointed", "A loop that stores some of its states for the backward pass.")
)


Run = Callable[[Sequence[Any]], list[Any]]


class CheckpointedReplay(Control):
    """The backward pass of a checkpointed loop."""

    control_flow = REPLAY

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Spec, ...]:
        """The specs of the carried cotangents and of the stacked ones."""
        check_replay(specs, params)
        outs = [n.spec for n in params["back"].outputs]
        pulled, length = params["pulled"], params["length"]
        return (*outs[:pulled], *[Spec((length, *s.shape), s.dtype) for s in outs[pulled:]])

    def run_by(self, compile: Callable[..., Any], *values: Any, **params: Any) -> tuple[Any, ...]:
        """Recompute and reverse steps according to the schedule."""
        parts = OperandGroups(values, params)
        step, keep, back = (compile(params[k]) for k in ("step", "keep", "back"))
        pulled, length = params["pulled"], params["length"]
        count = max(int(parts.count[0]), 0) if params["counted"] else length
        outs = [n.spec for n in params["back"].outputs]
        stacks = [np.empty((count, *s.shape), s.dtype) for s in outs[pulled:]]
        states: list[list[Any]] = [list(parts.carry)]
        carried = list(parts.starts)
        consts = [*parts.consts, *parts.more]
        rows: Any = [x[::-1] for x in parts.xs] if params["reverse"] else parts.xs
        for action in reversal(count, params["slots"], params["block"]):
            del states[action.slot + 1 :]
            state = states[action.slot]
            middle = action.begin + action.steps
            for k in range(action.begin, middle):
                state = step([*parts.consts, *state, *[x[k] for x in rows]])
            if not action.backwards:
                states.append(state)
                continue
            residuals = []
            for k in range(middle, middle + action.backwards):
                out = keep([*parts.consts, *state, *[x[k] for x in rows]])
                state = out[: params["carried"]]
                residuals.append(out[params["carried"] :])
            for k in reversed(range(middle, middle + action.backwards)):
                row = count - 1 - k if params["reverse"] else k
                xs = [parts.xs[i][row] for i in params["read"]]
                row_operands = [*xs, *residuals.pop(), *[t[row] for t in parts.rows]]
                results = back([*consts, *carried, *row_operands])
                carried = results[:pulled]
                for stack, value in zip(stacks, results[pulled:], strict=True):
                    stack[row] = value
        return (*carried, *stacks)

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """The rule of the equivalent two loops."""
        variables = [fresh(_node(x)) for x in inputs]
        outs = _equivalent_loops(node, variables)
        seeds = gathered((_node(outs[k]), x) for k, x in t.items())
        tape = tape_between(seeds, set(variables), ends=True)
        masked_targets: set[Node] = set()
        cotangents = pullback(
            *(seeds, variables, ctx.recorded, tape),
            masked=ctx.guarded,
            masked_targets=masked_targets,
        )
        ctx.mask([a for a, v in zip(node.args, variables, strict=True) if v in masked_targets])
        return cotangents

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The rule of the equivalent two loops."""
        variables = [fresh(_node(x)) for x in inputs]
        outs = [_node(x) for x in _equivalent_loops(node, variables)]
        known = {v: d for v, d in zip(variables, dots, strict=True) if d is not None}
        live = [n for n in outs if type(n) is Node]
        tape = tape_between(live, set(known), ends=True)
        masked_outputs: set[Node] = set()
        tangents = iter(
            pushforward(
                *(live, known, ctx.recorded, tape),
                masked=ctx.guarded,
                masked_outputs=masked_outputs,
            )
        )
        if masked_outputs:
            ctx.mask([node])
        return [next(tangents) if type(n) is Node else None for n in outs]

    def series(self, call: SeriesCall) -> Results:
        """The rule of the equivalent two loops."""
        with tracing_body():
            inputs = [placeholder(describe(x)) for x in call.operands]
            outs = expanded([wrap(n) for n in inputs], call.params)
            body = Body(*[_node(x) for x in outs], inputs=inputs, name="replay")
        return body_series(body, call)

    def batched(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The equivalent two loops for the batch."""
        columns = [x for x, f in zip(args, batched, strict=True) if f]

        def row(*handles: Any) -> list[Any]:
            remaining = iter(handles)
            return list(
                expanded(
                    [next(remaining) if f else x for x, f in zip(args, batched, strict=True)],
                    params,
                )
            )

        pairs = map_over_batch(row, columns, size, "replay")
        broadcast_to: Any = lookup("broadcast_to")
        return tuple([x if f else broadcast_to(x, shape=(size, *x.shape)) for x, f in pairs])


def _node(x: Any) -> Node:
    return x.node if isinstance(x, Handle) else constant(x)


def _equivalent_loops(node: Node, variables: Sequence[Node]) -> Sequence[Any]:
    """The equivalent two loops, with the scope and level of the node."""
    handles = [wrap(v) for v in variables]
    if not is_deriving():
        return expanded(handles, node.params)
    with derivation(node.level) as origin:
        origin.enter(node)
        return expanded(handles, node.params)


def expanded(args: Sequence[Any], params: Mapping[str, Any]) -> Sequence[Any]:
    """The forward loop, storing all residuals, and the backward loop."""
    parts = OperandGroups(args, params)
    carried, stacked, length = params["carried"], params["stacked"], params["length"]
    if length is None:  # the loop had no rows, but its residuals are stacked
        length = open_length()
    shared_params = {"length": length, "counted": params["counted"]}
    states = lookup("scan")(
        *[*parts.count, *parts.consts, *parts.carry, *parts.xs],
        body=params["keep"], carried=carried, stacked=stacked, reverse=params["reverse"],
        **shared_params,
    )[carried:]  # fmt: skip
    rows = [*[parts.xs[k] for k in params["read"]], *states, *parts.rows]
    results: Sequence[Any] = lookup("scan")(
        *[*parts.count, *parts.consts, *parts.more, *parts.starts, *rows],
        body=params["back"], carried=params["pulled"], stacked=len(rows),
        reverse=not params["reverse"], **shared_params,
    )  # fmt: skip
    return results


replay = register(CheckpointedReplay("replay", "The backward pass of a checkpointed loop."))
