"""Interpreter profile: the time that each node of a graph takes.

The interpreter's own steps run, with a clock around each; so what is measured is what runs, memory
that is used again included.  A clock costs about 0.1 microseconds a step.

    profile           run a graph, and say where the time went
    TimedInterpreter  the interpreter that does it
    NodeTimes         what was seen: nodes, the user's lines, a timeline for a trace viewer
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from wengert._engine.core.format_units import duration
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import Node
from wengert._engine.core.op import Op
from wengert._engine.core.source_location import short
from wengert._engine.core.subgraph import Body, bodies_of
from wengert.errors import ArgumentError, at, user_line

from .executable import Executable
from .interpreter.interpreter import InterpretedProgram, Interpreter
from .registry import Run

SHOWN = 10
Event = tuple[int, float, float]  # of one step: its node, when it began, how many seconds it took


@dataclass(frozen=True)
class NodeTime:
    """How long one node of the graph took.

    Attributes
    ----------
    index, name, spec : int, str, Spec
        The node, its operation and what it computes.
    seconds : float
        For one run: the least of all runs.
    where : str
        The user's file and line.
    level : int
        0 of the function itself, k of a k-th derivative.
    scope : str
        The path of the scopes that it was traced in.
    """

    index: int
    name: str
    spec: Any
    seconds: float
    where: str
    level: int = 0
    scope: str = ""


class NodeTimes:
    """How long the nodes of a graph took; ``print`` it.

    Attributes
    ----------
    name : str
        Of the graph.
    nodes : tuple of NodeTime
        The nodes that ran, in order.
    runs : int
        How many times the graph ran.
    inside : dict
        For nodes of loops and branches the nodes of their bodies, with their shares of the time as
        they were found in the last run.
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
        """Share the time of loops and branches out among the nodes of their bodies.

        Parameters
        ----------
        clocked : mapping
            For each body the seconds that its nodes took, in a run with a clock around each.
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
        """For all nodes together, in one run."""
        return sum(node.seconds for node in self.nodes)

    @property
    def slowest(self) -> list[NodeTime]:
        """The nodes, the slowest first."""
        return sorted(self.nodes, key=lambda node: -node.seconds)

    @property
    def sources(self) -> dict[str, float]:
        """Seconds for each of the user's lines, the slowest first; derivatives count there too."""
        total: dict[str, float] = {}
        for outer in self.nodes:
            for node in self.inside.get(outer.index, (outer,)):
                total[node.where] = total.get(node.where, 0.0) + node.seconds
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    def save(self, path: Any) -> Path:
        """Write the last run as a timeline: trace events, as chrome://tracing and Perfetto read."""
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
        runs = "1 run" if self.runs == 1 else f"the least of {self.runs} runs"
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
    """What the nodes of a body took, which ran with numbers in the place of named sizes."""
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
        Another backend that goes line by line, whose functions run.
    """

    def __init__(self, of: Interpreter | None = None) -> None:
        self._of = of
        self.events: list[Event] = []
        self.inside: dict[Body, dict[int, float]] = {}
        self.is_last = False

    def implementation(self, op: Op) -> Callable[..., Any] | None:
        """What runs an operation."""
        return super().implementation(op) if self._of is None else self._of.implementation(op)

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """The interpreter's steps, each of which notes how long it took."""
        program = InterpretedProgram(self, graph, sizes)
        program.steps = [
            (self._clocked(run, node), a, b, slot)
            for (run, a, b, slot), node in zip(program.steps, program.node_indices, strict=True)
        ]
        return program.run

    def compile_body(self, body: Body, sizes: Mapping[str, int]) -> Run:
        """The interpreter's steps, which the last run clocks too."""
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
    """Run a graph by the interpreter, and say how long each node took.

    Parameters
    ----------
    graph : Graph
    values : sequence
        For each input a value.
    repeat : int, default 5
        How many times to run. Each run updates variables, and prints what it prints.

    Returns
    -------
    NodeTimes

    Raises
    ------
    ArgumentError
        `repeat` is not a positive integer.
    """
    if not isinstance(repeat, int) or repeat < 1:
        raise ArgumentError(f"repeat={repeat!r}: run at least once{at(user_line())}.")
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
