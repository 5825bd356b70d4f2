"""Inner loops whose number of steps depends on an outer counter: residuals in buffers.

The residuals of such a loop have a length that differs between the steps of the outer loop, which
therefore cannot stack them.  If the range of the counter bounds the number of steps, the loop
carries buffers of that length instead, and writes one row per step.

    ranges_of             the ranges of a loop's induction variables
    set_ranges            stores ranges of placeholders, while a derivative is traced
    most_steps            an upper bound of the number of steps
    buffered              a forward body that carries its residuals in buffers
    from_buffers          the backward body that reads them
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import wrap
from wengert._engine.core.node import CONSTANT, LeafOp, Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import placeholder

from .restoration import BackwardBody

Range = tuple[int, int]

_MAX_BUFFER_LENGTH = 1 << 16  # steps
_STEP_NUMBER = Spec((), np.dtype(np.int64))
_ranges: weakref.WeakKeyDictionary[Node, Range] = weakref.WeakKeyDictionary()


def ranges_of(body: Body, args: Sequence[Any], fixed: int, carried: int, max_steps: Any) -> Any:
    """(input, minimum, maximum) of each induction variable, if an inner loop needs them."""
    if type(max_steps) is not int or not any([_is_counted(n) for n in body.nodes]):
        return ()
    ranges = []
    for k in range(fixed, fixed + carried):
        next_value, start = body.outputs[k - fixed], body.inputs[k]
        if (
            next_value.op is not lookup("add")
            or start.spec.shape
            or start.spec.dtype.kind not in "iu"
        ):
            continue
        a, b = next_value.inputs
        step, current = (b, a) if a is start else (a, b)
        initial = _range(args[k])
        if current is start and step.op is CONSTANT and initial is not None:
            total = int(step.value) * max(max_steps - 1, 0)
            ranges.append((k, initial[0] + min(total, 0), initial[1] + max(total, 0)))
    return tuple(ranges)


def _is_counted(node: Node) -> bool:
    return node.op is lookup("scan") and bool(node.params["counted"])


def set_ranges(inputs: Sequence[Node], ranges: Sequence[tuple[int, int, int]]) -> None:
    """Store the ranges of placeholders."""
    for k, minimum, maximum in ranges:
        _ranges[inputs[k]] = minimum, maximum


def most_steps(count: Any) -> int | None:
    """An upper bound of the number of steps; None if unknown or too large for buffers."""
    bounds = _range(count)
    return None if bounds is None or bounds[1] > _MAX_BUFFER_LENGTH else max(bounds[1], 1)


def _range(x: Any) -> Range | None:
    """The range of an integer that is computed from constants and placeholders; None if unknown."""
    node = x if isinstance(x, Node) else constant(x)
    if node in _ranges:
        return _ranges[node]
    if node.op is CONSTANT:
        return (int(node.value),) * 2 if np.ndim(node.value) == 0 else None
    op: Any = node.op
    if isinstance(op, LeafOp) or not _is_integer(node):
        return None
    if op.aliasing.transparent or op in (lookup("cast"), lookup("discretise")):
        return _range(node.inputs[0]) if _is_integer(node.inputs[0]) else None
    ranges = [_range(a) for a in node.inputs]
    if len(ranges) != 2 or None in ranges:
        return None
    (a, b), (c, d) = ranges  # type: ignore[misc]
    rules = {
        lookup("add"): (a + c, b + d),
        lookup("subtract"): (a - d, b - c),
        lookup("maximum"): (max(a, c), max(b, d)),
        lookup("minimum"): (min(a, c), min(b, d)),
    }
    return rules.get(op)


def _is_integer(node: Node) -> bool:
    return type(node.spec) is Spec and node.spec.dtype.kind in "iu" and not node.spec.shape


@functools.lru_cache(maxsize=512)
def buffered(
    forward: Body, carried: int, stacked: int, residual_count: int, max_steps: int
) -> Body:
    """The body without ys, which also carries the step number and buffers for its residuals."""
    with tracing_body():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in forward.inputs]
        number = placeholder(_STEP_NUMBER)
        specs = [n.spec for n in forward.outputs[len(forward.outputs) - residual_count :]]
        buffers = [placeholder(Spec((max_steps, *s.shape), s.dtype)) for s in specs]
        outs = inline_graph(forward, [wrap(n) for n in inputs])
        written = []
        for buffer, row in zip(buffers, outs[len(outs) - residual_count :], strict=True):
            index = wrap(buffer)[wrap(number)].node.params["index"]
            written.append(lookup("setitem")(wrap(buffer), row, wrap(number), index=index))
        results = [*outs[:carried], wrap(number) + 1, *written]
    first_stacked = len(inputs) - stacked
    return Body(
        *results,
        inputs=[*inputs[:first_stacked], number, *buffers, *inputs[first_stacked:]],
        name=forward.name,
    )


@functools.lru_cache(maxsize=512)
def from_buffers(
    backward: Body, residual_inputs: range, carried: range, max_steps: int
) -> BackwardBody:
    """The backward body that reads residuals from buffers, which follow the consts.

    Parameters
    ----------
    residual_inputs, carried : range
        Its inputs that are residuals, and those that are carried.
    """
    with tracing_body():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in backward.inputs]
        number = placeholder(_STEP_NUMBER)
        buffer_inputs = [
            placeholder(
                Spec((max_steps, *backward.inputs[k].spec.shape), backward.inputs[k].spec.dtype)
            )
            for k in residual_inputs
        ]
        row = wrap(number) + (-1)
        operands = [wrap(n) for n in inputs]
        for k, buffer in zip(residual_inputs, buffer_inputs, strict=True):
            operands[k] = wrap(buffer)[row]
        outs = inline_graph(backward, operands)
        results = [*outs[: len(carried)], row, *outs[len(carried) :]]
    rows = [n for k, n in enumerate(inputs) if k >= carried.stop and k not in residual_inputs]
    consts = inputs[: carried.start]
    reader = BackwardBody(
        *results,
        inputs=[*consts, *buffer_inputs, *inputs[carried.start : carried.stop], number, *rows],
        name=backward.name,
    )
    reader.restores = getattr(backward, "restores", range(0))
    return reader
