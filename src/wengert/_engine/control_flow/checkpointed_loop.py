"""Checkpointed loops: a loop that stores a few of its states for the backward pass.

    checkpointed    args: operands of the loop -> results of the loop, snapshots

If the length of the loop is known before it starts, the schedule determines the states to store;
otherwise states are stored at equal distances, and every second one is dropped when the slots are
full.  Snapshots are bytes, one row per state; they are read only by a replay (recompute.py), and
have no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.series_terms import SeriesCall
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.op_facts import CHECKPOINTED
from wengert._engine.core.spec import Spec, spec_of

from . import batching
from .checkpoint_schedule import blocks_of, offsets_of, size_of_state, stored_by_count
from .loops import map
from .operations import Control
from .taylor import Results
from .verify import check_checkpointed

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
