"""Profiles of programs on a device: the time of each kernel and call, by events of the device.

The time of a stage is that between two events in the stream, before and after it; if the host needs
longer to start a kernel than the device to run it, this is the time of the host.

    timed    the timing of a run
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.backends.llvm.profile.step_times import step_cost_of
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.symbolic.dim import valued
from wengert._engine.profiling.record import (
    LineShare,
    StepRecord,
    Timing,
    call_seconds,
    lower_quartile,
    timed_rounds,
)

from ..llvm.lowering.loop_ir import Expr
from .listing import Listing
from .program import DeviceProgram
from .stage_timers import StageTimers

_MAX_RUNS = 100  # limit of runs, where their number is not given


def timed(
    graph: BaseGraph,
    program: DeviceProgram,
    values: Sequence[Any],
    sizes: Mapping[str, int],
    repeats: int | None,
    call: Callable[[], object] | None,
) -> Timing:
    """The timing of a run; see `Backend.timed`."""
    device, timers = program.device, StageTimers()
    seen: list[list[float]] = []

    def clocked() -> None:
        program.run(values, sizes, timers)
        seen.append(timers.seconds())

    def plain() -> None:
        program.run(values, sizes)
        device.wait()

    def called() -> None:
        assert call is not None
        call()
        device.wait()

    runs = [clocked, plain] if call is None else [clocked, plain, called]
    rounds = list(timed_rounds(runs, repeats, limit=_MAX_RUNS))
    seen = seen[-len(rounds) :]  # without runs that fill caches
    spent = lower_quartile(seen) if program.stages else []
    listing = Listing(graph, program)
    steps = tuple(
        _step(program, listing, stage, number, float(s), held, sizes)
        for (stage, number), s, held in zip(program.stages, spent, timers.held, strict=True)
    )
    inputs = sum(int(np.asarray(x).nbytes) if not device.owns(x) else x.nbytes for x in values)
    peak = max([0, *timers.held])
    outputs = sum(_bytes(program, x.shape, x.dtype, sizes) for x in program.plan.outputs)
    around = lower_quartile([one[0] - sum(s) for one, s in zip(rounds, seen, strict=True)])
    return Timing(
        backend="cuda",
        seconds=call_seconds(steps, float(around), [one[1:] for one in rounds]),
        plain=float(lower_quartile([one[1] for one in rounds])),
        runs=len(rounds),
        steps=steps,
        workspace=max(0, peak - inputs - outputs),
        peak=max(0, peak - inputs),
        inputs=inputs,
        outputs=outputs,
        sizes=dict(sizes),
    )


def _step(
    program: DeviceProgram,
    listing: Listing,
    stage: Any,
    number: int,
    seconds: float,
    held: int,
    sizes: Mapping[str, int],
) -> StepRecord:
    cost = step_cost_of(program.plan, [stage], sizes)
    own = program.parts.get(stage, ()) if isinstance(stage, Expr) else ()
    cost.keep([x for x in own if x in program.stored])
    return StepRecord(
        kind=listing.kind(stage, number),
        title=listing.line(stage, number),
        operations=cost.operations,
        calls=1.0,
        seconds=seconds,
        flops=cost.flops,
        read=cost.read,
        written=cost.written,
        held=held,
        parts=cost.parts() or (LineShare("", 0, "", 1.0),),
        kept=tuple(cost.kept),
    )


def _bytes(
    program: DeviceProgram, shape: Sequence[Any], dtype: Any, sizes: Mapping[str, int]
) -> int:
    count = 1
    for n in shape:
        known = valued(n, dict(sizes))
        count *= 1 if known is None else int(known)
    return count * int(dtype.itemsize)
