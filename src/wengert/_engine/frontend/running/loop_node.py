"""The node of a traced loop: ``scan`` if the number of iterations is known before it, or ``while``.

loop_node         add the node, and return its outputs
strongly_typed    an operand of the node
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.control_flow.closure_conversion import (
    Closed,
    cut,
    nodes_between,
    operand,
    output,
    together,
    with_lengths_grouped,
)
from wengert._engine.control_flow.loop_accesses import Counter
from wengert._engine.control_flow.loops import recorded, scan_node
from wengert._engine.control_flow.operations import while_op
from wengert._engine.control_flow.vectorized_loops import vectorized
from wengert._engine.core.handle import Handle, describe
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import Dim, bounds
from wengert._engine.core.tracing import size_value
from wengert._engine.ops.casts import astype
from wengert._engine.ops.indexing.slice_ends import linear
from wengert.errors import TraceError

from ..state import NotTraceable
from .block_tracing import TracedBlock
from .iterables import Items
from .loop_memory import LoopMemory

_INTEGER = np.dtype(np.int64)


def loop_node(
    outputs: list[Node],
    inputs: list[Node],
    start: list[Any],
    condition: Any,
    items: Items | None,
    block: TracedBlock,
    memory: LoopMemory,
) -> list[Any]:
    """Add the node of a loop to the graph.

    Parameters
    ----------
    outputs : list of Node
        The carry after an iteration, and the rows to be stacked.
    inputs : list of Node
        The placeholders for the counter and the carry.
    start : list
        The carry before the first iteration.
    condition : Tensor or None
        Whether there is another iteration; None if their number is known before the loop.
    items : Items or None
        The items of a ``for`` loop.
    block : TracedBlock
        The body.
    memory : LoopMemory
        Refuses a body that reads arrays which it may modify by other names.

    Returns
    -------
    list
        The final carry, and the stacked rows.
    """
    steps = None if items is None or condition is not None else items.length
    if condition is None and not block.checks:
        assert items is not None
        results = _vectorized(outputs, inputs, start, items, block, memory)
        if results is not None:
            return results
    outputs = _grouped(outputs, inputs, block, steps)
    body, outside = cut(outputs, inputs, block.since, "loop", hoist=True)
    memory.check(block, _read_from_outside(outside, block.since))
    closed = Closed(body, [operand(n) for n in outside], None, ())
    if condition is None:
        assert items is not None
        length = items.length
        count = None
        if isinstance(length, Dim) and (bounds(length)[0] or -1) < 0:
            length = size_value(length)
        if isinstance(length, Handle):
            count = lookup("maximum")(astype(length, _INTEGER), np.int64(0))
            length = None
        return scan_node(closed, start, [], length, False, count)
    tests = _grouped([output(condition, "loop")], inputs, block)
    test, captured_by_test = cut(tests, inputs, block.since, "loop", hoist=True)
    test_closed = Closed(test, [operand(n) for n in captured_by_test], None, ())
    (body, test), captured = together([closed, test_closed])
    params = {
        "body": body,
        "condition": test,
        "carried": len(start),
        "limit": None,
        "length": None,
    }
    return list(recorded(while_op, [*captured, *start], params))[: len(start)]


def _vectorized(
    outputs: list[Node],
    inputs: list[Node],
    start: list[Any],
    items: Items,
    block: TracedBlock,
    memory: LoopMemory,
) -> list[Any] | None:
    """The results of a loop with independent iterations, as operations on whole arrays."""
    order = nodes_between([*outputs[1:], *block.lengths.values()], inputs, block.since)
    used = [*outputs, *[a for n in order for a in n.inputs]]
    counter = Counter(inputs[0], linear(items.start), items.step, linear(items.length))
    results = vectorized(
        outputs, inputs, start, counter, items.length, order, block.since, block.lengths
    )
    if results is not None:
        memory.check(block, [a for a in used if a.serial < block.since])
    return results


def _read_from_outside(captured: Sequence[Node], since: int) -> list[Node]:
    """The older nodes that captured ones are, or are computed from before the loop."""
    found: dict[Node, None] = {}
    pending = list(captured)
    while pending:
        node = pending.pop()
        if node not in found:
            found[node] = None
            pending += node.inputs if node.serial >= since else ()
    return list(found)


def _grouped(
    outputs: list[Node], inputs: list[Node], block: TracedBlock, steps: object = None
) -> list[Node]:
    """The outputs, with nodes that use slices of computed lengths grouped in nodes of their own."""
    try:
        return with_lengths_grouped(outputs, inputs, block.since, block.lengths, "loop", steps)
    except TraceError as error:
        raise NotTraceable(str(error).rstrip(".")) from error


def strongly_typed(x: object) -> Any:
    """An operand of the loop node: an array or number that is not weakly typed."""
    if isinstance(x, Dim):
        return astype(size_value(x), _INTEGER)
    if isinstance(x, Handle):
        spec = describe(x)
        return astype(x, spec.dtype) if spec.weak else x
    return np.asarray(x)[()]
