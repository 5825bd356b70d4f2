"""Null backend: runs nothing, for testing and for counting costs.

Arguments are checked as in other backends, and results are zeros of the right shapes and dtypes,
whose memory is not touched; variables keep their values.  `report` (cost_report.py) gives the cost
of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.spec import at_sizes

from .registry import Backend, Run, register_backend

if TYPE_CHECKING:
    from . import cost_report
    from .cost_report import Report
else:
    cost_report = LazyModule("wengert._engine.backends.cost_report")


class Null(Backend):
    """Runs nothing, and returns zeros of the right shapes and dtypes; see `Backend`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.input("x", shape=("n", "n"))
    >>> f = wg.computation(np.linalg.inv(x), backend="null")
    >>> f(np.ones((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """

    __module__ = "wengert.backends"

    name = "null"
    tolerance = float("inf")

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """Return a function that returns zeros."""
        specs = [at_sizes(n.spec, sizes) for n in graph.outputs]
        first = len(graph.inputs)
        place = {v: first + k for k, v in enumerate(graph.variables)}
        kept = [place[v] for v in graph.updates]

        def run(values: Sequence[Any]) -> list[Any]:
            return [np.zeros(s.shape, s.dtype)[()] for s in specs] + [
                np.array(values[k]) for k in kept
            ]

        return run

    def report(
        self, graph: BaseGraph, sizes: Mapping[str, int] | None = None, **more: int
    ) -> Report:
        """The cost of a run; see `wengert.backends.report`."""
        return cost_report.report(graph, sizes, **more)


register_backend(Null())
