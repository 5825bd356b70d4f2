"""Timing of a run, by the backend or node by node.

The interpreter is timed here, with a timer around each node (interpreter_profile.py): a step is a
node of the graph, and belongs to one of the user's lines.  The interpreter does not depend on
profiling.

    timed              times an executable
    timed_by_nodes     times a backend that runs node by node
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec, at_sizes, shown
from wengert._engine.core.symbolic.dim import valued
from wengert._engine.ops.cost_model import flops_of, shares_memory, steps_of
from wengert._engine.profiling.record import (
    LineShare,
    LiveArray,
    StepRecord,
    Timing,
    call_seconds,
    lower_quartile,
    timed_rounds,
)

from .executable import Executable
from .interpreter.interpreter import Interpreter
from .interpreter_profile import NodeTime, NodeTimes, TimedInterpreter
from .liveness import in_place, known_bytes, live_bytes, specs_at

_MAX_RUNS = 100  # limit of runs, where their number is not given


def timed(
    executable: Executable,
    values: Sequence[Any],
    repeats: int | None = None,
    call: Callable[[], object] | None = None,
    overwrites: bool = False,
) -> Timing:
    """The timing of a run; updates are computed but not written.

    Raises
    ------
    ShapeError, DtypeError
        As for a call.
    BackendError
        The backend does not support timing.
    """
    fed, sizes = executable.prepared(values)
    backend, graph = executable.backend, executable.graph
    if isinstance(backend, Interpreter):
        return timed_by_nodes(backend, graph, fed, sizes, repeats, call)
    return backend.timed(graph, fed, sizes, repeats, call, overwrites)


def timed_by_nodes(
    backend: Interpreter,
    graph: BaseGraph,
    values: Sequence[Any],
    sizes: Mapping[str, int],
    repeats: int | None = None,
    call: Callable[[], object] | None = None,
) -> Timing:
    """The timing of a run; see `Backend.timed`."""
    plain, clock = backend.compile(graph, sizes), TimedInterpreter(backend)
    clocked = clock.compile(graph, sizes)
    runs = [functools.partial(run, values) for run in (clocked, plain)]
    seconds, seen = [], []
    for one in timed_rounds(
        runs if call is None else [*runs, call], repeats, clock.events.clear, _MAX_RUNS
    ):
        seconds.append(one)
        seen.append(list(clock.events))
    if any(map(bodies_of, graph.nodes)):
        clock.is_last = True  # a run with timers in the bodies of loops too, for shares only
        clocked(values)
    profile = NodeTimes(graph, seen)
    spent = [sum(s for *_, s in events) for events in seen]
    around = lower_quartile([one[0] - s for one, s in zip(seconds, spent, strict=True)])
    rounds = [one[1:] for one in seconds]
    profile.look_inside(graph, clock.inside)
    specs = specs_at(graph, sizes)
    live = live_bytes(graph, specs, in_place(graph, specs))
    outputs = sum(known_bytes(specs[graph.index(n)]) for n in graph.outputs)
    made = _NodeSteps(graph, specs, live, sizes)
    steps = tuple(made.step(node, profile.inside.get(node.index, ())) for node in profile.nodes)
    peak = max(live, default=0)
    return Timing(
        backend=backend.name,
        seconds=call_seconds(steps, float(around), rounds),
        plain=float(lower_quartile([one[-1] for one in rounds])),
        runs=len(seen),
        steps=steps,
        workspace=max(0, peak - outputs),
        peak=peak,
        inputs=sum(np.asarray(v).nbytes for v in values),
        outputs=outputs,
        sizes=dict(sizes),
    )


class _NodeSteps:
    """Nodes as steps."""

    def __init__(
        self, graph: BaseGraph, specs: Sequence[Any], live: Sequence[int], sizes: Mapping[str, int]
    ) -> None:
        self._graph, self._specs, self._live, self._sizes = graph, specs, live, sizes
        self._results = set(graph.outputs)

    def step(self, timed: NodeTime, inside: Sequence[NodeTime]) -> StepRecord:
        """A node, with the nodes of its bodies."""
        i, node = timed.index, self._graph.nodes[timed.index]
        spec = self._specs[i]
        own = shares_memory(node)
        read = sum(known_bytes(self._specs[k]) for k in dict.fromkeys(self._graph.operands(i)))
        written = known_bytes(spec)
        kept = LiveArray(f"{node.op.name} {shown(spec)}", written, timed.where, True)
        return StepRecord(
            kind=_kind(node),
            title=self._title(node, spec),
            operations=(node.op.name,),
            calls=1.0,
            seconds=timed.seconds,
            flops=self._flops(node, spec),
            read=0 if own else read,
            written=0 if own else written,
            held=self._live[i],
            parts=(LineShare(timed.where, node.level, node.scope, 1.0),),
            kept=(kept,) if node in self._results else (),
            inside=tuple(map(_inner, inside)),
        )

    def _title(self, node: Node, spec: tuple[Spec, ...] | Spec) -> str:
        steps = steps_of(node) if bodies_of(node) else None
        if steps is None:
            return f"{node.op.name} {shown(spec)}"
        return f"{node.op.name} of {valued(steps, self._sizes):,} steps"

    def _flops(self, node: Node, spec: tuple[Spec, ...] | Spec) -> float | None:
        operands = [at_sizes(a.spec, self._sizes) for a in node.inputs]
        found = valued(flops_of(node, operands, spec), self._sizes)
        return None if found is None else float(found)


def _inner(node: NodeTime) -> StepRecord:
    """A node of a body; its number of runs is not known."""
    title, parts = (
        f"{node.name} {shown(node.spec)}",
        (LineShare(node.where, node.level, node.scope, 1.0),),
    )
    return StepRecord("node", title, (node.name,), 1.0, node.seconds, None, 0, 0, 0, parts)


def _kind(node: Node) -> str:
    if not bodies_of(node):
        return "node"
    return "branch" if "branches" in node.params else "loop"
