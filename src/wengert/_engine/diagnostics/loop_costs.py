"""Loop costs: what the loops of a function take in memory, and in time without compilation.

residuals      the rows that loops store for their backward passes
loop_costs     notes for `wengert.explain`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.op_facts import LOOPS
from wengert._engine.core.spec import shown
from wengert._engine.core.subgraph import bodies_of
from wengert._engine.ops.cost_model import bytes_of, steps_of

from .findings import Finding

# An eager operation of a few numbers with its share of the bookkeeping, and a compiled one, both
# on the slow side of what `make bench` measures.
_EAGER_SECONDS, _COMPILED_SECONDS = 1e-5, 4e-9
_LEAST_SECONDS = 1.0  # of eager time from which there is a note


def residuals(graph: BaseGraph) -> list[Node]:
    """The rows that loops of a graph store for their backward passes.

    Those of inner loops are parts of the rows of the outer loop.
    """
    loops = {n for n in graph.nodes if _is_loop(n)}
    read = {a for n in loops if n.level for a in n.inputs}
    found = []
    for node in graph.nodes:
        if node.op is PART and node in read and node.inputs[0] in loops:
            loop = node.inputs[0]
            if node.params["index"] >= loop.params["carried"] and node.spec.shape:
                found.append(node)
    return found


def loop_costs(graph: BaseGraph, is_compiled: bool) -> Iterator[Finding]:
    """Notes on the loops of a graph.

    Parameters
    ----------
    graph : Graph
    is_compiled : bool
        Whether the user's function is compiled.
    """
    rows = residuals(graph)
    if rows:
        total: Any = sum(bytes_of(n.spec) for n in rows)
        kept = ", ".join(shown(n.spec) for n in rows)
        yield Finding(
            "residuals",
            f"the backward passes of loops store {total} bytes: {kept}. wengert.scan and "
            "fori_loop with memory= store less, and compute more",
            rows[0],
            rows[0].inputs[0].where,
        )
    count = _operations(graph.nodes, 1)
    if not is_compiled and count * _EAGER_SECONDS >= _LEAST_SECONDS:
        largest = max(graph.nodes, key=lambda n: _operations([n], 1))
        yield Finding(
            "eager",
            f"{count} operations run one after the other, about {count * _EAGER_SECONDS:.2g} "
            f"seconds without wengert.jit, and {count * _COMPILED_SECONDS:.2g} seconds with it",
            largest,
            largest.where,
        )


def _is_loop(node: Node) -> bool:
    return not isinstance(node.op, LeafOp) and node.op.control_flow in LOOPS


def _operations(nodes: Any, times: int) -> int:
    """How many operations run, those of loops with a known number of steps in each."""
    count = 0
    for node in nodes:
        if isinstance(node.op, LeafOp) or node.op.aliasing.transparent:
            continue
        count += times
        steps = steps_of(node) if _is_loop(node) else 1
        if node.params and isinstance(steps, int):
            for body in bodies_of(node):
                count += _operations(body.nodes, times * steps)
    return count
