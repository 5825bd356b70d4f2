"""The time that each node of a graph takes, in the interpreter or in a backend.

    profile           run a graph and return the time of each node
    TimedInterpreter  the interpreter with timers
    NodeTimes         the result: nodes, the user's lines, a timeline for a trace viewer
    timed             times an executable, for the recorder of profiles
    timed_by_nodes    times a backend that runs node by node

The steps of the interpreter run with a timer around each, so the measurement includes its memory
reuse.  A timer costs about 0.1 microseconds per step.  A step is a node of the graph, and belongs
to one of the user's lines.  The interpreter does not depend on profiling.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from wengert._engine.backends.executable import Executable
from wengert._engine.backends.interpreter import InterpretedProgram, Interpreter
from wengert._engine.backends.liveness import in_place, known_bytes, live_bytes, specs_at
from wengert._engine.backends.registry import Run
from wengert._engine.core.display import duration
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.node import Node
from wengert._engine.core.node_properties import short
from wengert._engine.core.op import Op
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
from wengert.errors import ArgumentError, at, user_line

SHOWN = 10
Event = tuple[int, float, float]  # of one step: its node, start and duration in seconds


@dataclass(frozen=True)
class NodeTime:
    """The time of one node of the graph.

    Attributes
    ----------
    index, name, spec : int, str, Spec
        The index of the node, its operation and its spec.
    seconds : float
        Time of one run: the minimum over all runs.
    where : str
        The user's file and line.
    level : int
        0 for the function itself, k for a k-th derivative.
    scope : str
        The path of the scopes in which it was traced.
    """

    index: int
    name: str
    spec: Any
    seconds: float
    where: str
    level: int = 0
    scope: str = ""


class NodeTimes:
    """The times of the nodes of a graph; ``print`` it.

    Attributes
    ----------
    name : str
        The name of the graph.
    nodes : tuple of NodeTime
        The nodes that ran, in order.
    runs : int
        Number of runs.
    inside : dict
        For nodes of loops and branches, the nodes of their bodies, with their shares of the time
        in the last run.
    """

    __module__ = "wengert.backends"

    def __init__(self, graph: BaseGraph, runs: Sequence[Sequence[Event]]) -> None:
        self.name, self.runs = graph.name, len(runs)
        self.inside: dict[int, tuple[NodeTime, ...]] = {}
        self._last = runs[-1]
        least: dict[int, float] = {}
        for events in runs:
            total: dict[int, float] = {}
            for node, _, seconds in events:
                total[node] = total.get(node, 0.0) + seconds
            least = {node: min(s, least.get(node, s)) for node, s in total.items()}
        nodes = graph.nodes
        self.nodes = tuple(_node_time(i, nodes[i], seconds) for i, seconds in sorted(least.items()))

    def look_inside(self, graph: BaseGraph, clocked: Mapping[Body, Mapping[int, float]]) -> None:
        """Divide the time of loops and branches among the nodes of their bodies.

        Parameters
        ----------
        clocked : mapping
            The seconds of the nodes of each body, in a run with a timer around each.
        """
        for node in self.nodes:
            pairs = [(b, _seconds_of(b, clocked)) for b in bodies_of(graph.nodes[node.index])]
            whole = sum(sum(found.values()) for _, found in pairs)
            shares = [
                (b.nodes[i], i, node.seconds * seconds / whole)
                for b, found in pairs
                for i, seconds in sorted(found.items())
            ]
            if shares:
                self.inside[node.index] = tuple(_node_time(i, n, share) for n, i, share in shares)

    @property
    def seconds(self) -> float:
        """The total of all nodes in one run."""
        return sum(node.seconds for node in self.nodes)

    @property
    def slowest(self) -> list[NodeTime]:
        """The nodes, the slowest first."""
        return sorted(self.nodes, key=lambda node: -node.seconds)

    @property
    def sources(self) -> dict[str, float]:
        """Seconds of each of the user's lines, including derivatives, the slowest first."""
        total: dict[str, float] = {}
        for outer in self.nodes:
            for node in self.inside.get(outer.index, (outer,)):
                total[node.where] = total.get(node.where, 0.0) + node.seconds
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    def save(self, path: Any) -> Path:
        """Write the last run as a timeline of trace events, for chrome://tracing and Perfetto."""
        names = {node.index: node for node in self.nodes}
        begin = self._last[0][1] if self._last else 0.0
        events = [
            {
                "name": f"%{i} {names[i].name}",
                "ph": "X",
                "ts": (start - begin) * 1e6,
                "dur": seconds * 1e6,
                "pid": 0,
                "tid": 0,
                "args": {"spec": str(names[i].spec), "where": names[i].where},
            }
            for i, start, seconds in self._last
        ]
        target = Path(os.fspath(path))
        target.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
        return target

    def __repr__(self) -> str:
        return f"<NodeTimes of {self.name}: {len(self.nodes)} nodes, {duration(self.seconds)}>"

    def __str__(self) -> str:
        runs = "1 run" if self.runs == 1 else f"the minimum of {self.runs} runs"
        rows = [f"{self.name}: {duration(self.seconds)} in {len(self.nodes)} nodes, {runs}"]
        sources = [(short(where) or "?", s) for where, s in self.sources.items()]
        rows += ["your lines", *self._rows([(name, "", s) for name, s in sources[:SHOWN]])]
        slowest = [(f"%{x.index} {x.name}", str(x.spec), x.seconds) for x in self.slowest[:SHOWN]]
        return "\n".join([*rows, "slowest", *self._rows(slowest)])

    def _rows(self, cells: Sequence[tuple[str, str, float]]) -> list[str]:
        whole = self.seconds or 1.0
        widths = [max((len(c[k]) for c in cells), default=0) for k in (0, 1)]  # type: ignore[arg-type]
        return [
            f"  {a.ljust(widths[0])}  {b.ljust(widths[1])}  {duration(s):>8}  {s / whole:4.0%}"
            for a, b, s in cells
        ]


def _node_time(index: int, node: Node, seconds: float) -> NodeTime:
    where = node.where or ""
    return NodeTime(index, node.op.name, node.spec, seconds, where, node.level, node.scope)


def _seconds_of(body: Body, clocked: Mapping[Body, Mapping[int, float]]) -> Mapping[int, float]:
    """The times of the nodes of a body, which ran with numbers for named sizes."""
    for other, seconds in clocked.items():
        same = (other.name, len(other)) == (body.name, len(body))
        if other == body or (body.size_names and same):
            return seconds
    return {}


class TimedInterpreter(Interpreter):
    """The interpreter with a timer around each step.

    Parameters
    ----------
    of : Interpreter, optional
        Another backend that runs node by node; its functions are timed.
    """

    def __init__(self, of: Interpreter | None = None) -> None:
        self._of = of
        self.events: list[Event] = []
        self.inside: dict[Body, dict[int, float]] = {}
        self.is_last = False

    def implementation(self, op: Op) -> Callable[..., Any] | None:
        """The function that runs an operation."""
        return super().implementation(op) if self._of is None else self._of.implementation(op)

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """The interpreter's steps, with a timer around each."""
        program = InterpretedProgram(self, graph, sizes)
        program.steps = [
            (self._clocked(run, node), a, b, slot)
            for (run, a, b, slot), node in zip(program.steps, program.node_indices, strict=True)
        ]
        return program.run

    def compile_body(self, body: Body, sizes: Mapping[str, int]) -> Run:
        """The interpreter's steps, with timers in the last run."""
        program, slow = InterpretedProgram(self, body, sizes), InterpretedProgram(self, body, sizes)
        seconds = self.inside.setdefault(body, {})
        slow.steps = [
            (_adding(run, node, seconds), a, b, slot)
            for (run, a, b, slot), node in zip(slow.steps, slow.node_indices, strict=True)
        ]
        return lambda values: (slow if self.is_last else program).walk(values)

    def _clocked(self, run: Callable[..., Any], node: int) -> Callable[..., Any]:
        events = self.events

        def step(*operands: Any) -> Any:
            start = perf_counter()
            out = run(*operands)
            events.append((node, start, perf_counter() - start))
            return out

        return step


def _adding(run: Callable[..., Any], node: int, seconds: dict[int, float]) -> Callable[..., Any]:
    def step(*operands: Any) -> Any:
        start = perf_counter()
        out = run(*operands)
        seconds[node] = seconds.get(node, 0.0) + perf_counter() - start
        return out

    return step


def profile(graph: BaseGraph, values: Sequence[Any], repeat: int = 5) -> NodeTimes:
    """Run a graph in the interpreter and return the time of each node.

    Parameters
    ----------
    graph : Graph
    values : sequence
        A value for each input.
    repeat : int, default 5
        Number of runs. Each run updates variables and has its side effects.

    Returns
    -------
    NodeTimes

    Raises
    ------
    ArgumentError
        `repeat` is not a positive integer.
    """
    if not isinstance(repeat, int) or repeat < 1:
        raise ArgumentError(f"repeat={repeat!r} must be at least 1{at(user_line())}.")
    clock = TimedInterpreter()
    executable = Executable(graph, clock)
    runs = []
    for k in range(repeat):
        clock.events.clear()
        clock.is_last = k == repeat - 1
        executable(values)
        runs.append(list(clock.events))
    made = NodeTimes(graph, runs)
    made.look_inside(graph, clock.inside)
    return made


# ---- the recorder of profiles --------------------------------------------------------------------


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
