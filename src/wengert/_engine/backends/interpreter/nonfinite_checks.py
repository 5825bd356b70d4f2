"""Checked: the interpreter, which looks at every value for NaN and infinities.

While `wengert.debug(nan=True)` holds, every graph, whatever its backend, is run by this one: it is
not fast, and its lines are the user's (core/nan_locator.py says which of them is told).

    run_checked   a run of a graph
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wengert._engine.core.graph import Graph
from wengert._engine.core.lazy_import import Late
from wengert._engine.core.node import Node
from wengert._engine.core.nonfinite_checks import Checks
from wengert._engine.core.static_params import substituted

from ..registry import Run
from .interpreter import Interpreter, Program

_inside = Late("wengert._engine.core.nan_locator")


def run_checked(
    graph: Graph, sizes: Mapping[str, int], values: Sequence[Any], checks: Checks
) -> list[Any]:
    """The results of a graph, each line of which is looked at.

    Parameters
    ----------
    graph, sizes, values
        The graph, the numbers of its named sizes, and values of its inputs and variables.
    checks : Checks

    Raises
    ------
    NotFiniteError
    """
    return _Checked(checks).compile(graph, sizes)(values)


class _Checked(Interpreter):
    """The interpreter; one object for each run."""

    def __init__(self, checks: Checks) -> None:
        self._watch = _inside.Watch(checks)

    def compile(self, graph: Graph, sizes: Mapping[str, int]) -> Run:
        """The interpreter's steps, each of which is looked at."""
        program = Program(self, graph, sizes, reuses=False)
        program.steps = [
            (self._looked_at(run, graph.nodes[line], sizes), a, b, slot)
            for (run, a, b, slot), line in zip(program.steps, program.lines, strict=True)
        ]

        def run(values: Sequence[Any]) -> list[Any]:
            found = program.run(values)
            self._watch.ended(graph.nodes, (*graph.outputs, *graph.updates.values()))
            return found

        return run

    def _looked_at(
        self, run: Callable[..., Any], node: Node, sizes: Mapping[str, int]
    ) -> Callable[..., Any]:
        def step(*operands: Any) -> Any:
            out = run(*operands)
            self._watch.saw(node, substituted(node.params, sizes), operands, out)
            return out

        return step
