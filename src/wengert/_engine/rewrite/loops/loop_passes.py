"""Loop passes of a graph that has loops or branches; most graphs have none.

The passes, and the control flow that they rewrite, are a tenth of the modules of a first call, so
they are imported when a graph needs them.

    rewritten    a graph after the loop passes (driver.py)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.op_facts import BRANCH, LOOPS

if TYPE_CHECKING:
    from ..driver import Applied
    from . import driver
else:
    driver = LazyModule("wengert._engine.rewrite.loops.driver")

_REWRITTEN = frozenset((*LOOPS, BRANCH))


def rewritten(graph: AnyGraph) -> tuple[AnyGraph, tuple[Applied, ...]]:
    """A graph with simplified loops, and the rewrites that were applied."""
    if not any(n.op.control_flow in _REWRITTEN for n in graph.nodes):
        return graph, ()
    return driver.rewritten(graph)
