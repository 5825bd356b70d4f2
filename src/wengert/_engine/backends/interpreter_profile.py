"""Interpreter profile: the time that each node of a graph takes.

The steps of the interpreter run with a timer around each, so the measurement includes its memory
reuse.  A timer costs about 0.1 microseconds per step.

    profile           run a graph and return the time of each node
    TimedInterpreter  the interpreter with timers
    NodeTimes         the result: nodes, the user's lines, a timeline for a trace viewer
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from wengert._engine.core.display import duration
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.node import Node
from wengert._engine.core.node_properties import short
from wengert._engine.core.op import Op
from wengert.errors import ArgumentError, at, user_line

from .executable import Executable
from .interpreter.interpreter import InterpretedProgram, Interpreter
from .registry import Run

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
