"""Inner loops whose number of steps depends on an outer counter: residuals in buffers.

The residuals of such a loop have a length that differs between the steps of the outer loop, which
cannot stack them.  If the range of the counter bounds the number of steps, the loop carries buffers
of that length instead, and writes one row per step.

    ranges_of       the ranges of a loop's induction variables
    noted           ranges of placeholders, while a derivative is traced
    most_steps      an upper bound of the number of steps
    buffered        a forward body that carries its residuals in buffers
    from_buffers    the backward body that reads them
    merged          outputs that use the buffered loops instead of the original ones
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.dispatch import PART, part
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import CONSTANT, LeafOp, Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import enable_grad, tracing
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import placeholder

from .residuals import ancestors
from .restoration import BackwardBody

Range = tuple[int, int]

_LONGEST = 1 << 16  # a buffer
_NUMBER = Spec((), np.dtype(np.int64))
_ranges: weakref.WeakKeyDictionary[Node, Range] = weakref.WeakKeyDictionary()
_buffered: weakref.WeakKeyDictionary[Node, Node] = weakref.WeakKeyDictionary()


def ranges_of(body: Body, args: Sequence[Any], fixed: int, carried: int, most: Any) -> Any:
    """(number, least, largest) of each induction variable, if an inner loop needs them."""
    if type(most) is not int or not any([_is_counted(n) for n in body.nodes]):
        return ()
    found = []
    for k in range(fixed, fixed + carried):
        end, start = body.outputs[k - fixed], body.inputs[k]
        if end.op is not lookup("add") or start.spec.shape or start.spec.dtype.kind not in "iu":
            continue
        a, b = end.inputs
        step, now = (b, a) if a is start else (a, b)
        first = _range(args[k])
        if now is start and step.op is CONSTANT and first is not None:
            last = int(step.value) * max(most - 1, 0)
            found.append((k, first[0] + min(last, 0), first[1] + max(last, 0)))
    return tuple(found)


def _is_counted(node: Node) -> bool:
    return node.op is lookup("scan") and bool(node.params["counted"])


def noted(inputs: Sequence[Node], ranges: Sequence[tuple[int, int, int]]) -> None:
    """Remember the ranges of placeholders."""
    for k, least, largest in ranges:
        _ranges[inputs[k]] = least, largest


def most_steps(count: Any) -> int | None:
    """The largest number of steps, if it is known and not too large."""
    found = _range(count)
    return None if found is None or found[1] > _LONGEST else max(found[1], 1)


def _range(x: Any) -> Range | None:
    """The range of an integer: of constants, placeholders, and sums and differences of them."""
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
    found = [_range(a) for a in node.inputs]
    if len(found) != 2 or None in found:
        return None
    (a, b), (c, d) = found  # type: ignore[misc]
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
def buffered(forward: Body, carried: int, stacked: int, kept: int, most: int) -> Body:
    """The body without ys, which carries the step number and buffers of its residuals."""
    with tracing() as opened, enable_grad():
        opened.isolated = opened.general = True
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in forward.inputs]
        number = placeholder(_NUMBER)
        specs = [n.spec for n in forward.outputs[len(forward.outputs) - kept :]]
        buffers = [placeholder(Spec((most, *s.shape), s.dtype)) for s in specs]
        outs = inline_graph(forward, [wrap(n) for n in inputs])
        new = []
        for buffer, row in zip(buffers, outs[len(outs) - kept :], strict=True):
            index = wrap(buffer)[wrap(number)].node.params["index"]
            new.append(lookup("setitem")(wrap(buffer), row, wrap(number), index=index))
        results = [*outs[:carried], wrap(number) + 1, *new]
    split = len(inputs) - stacked
    return Body(
        *results, inputs=[*inputs[:split], number, *buffers, *inputs[split:]], name=forward.name
    )


@functools.lru_cache(maxsize=512)
def from_buffers(
    back: Body, places: range, carried: range, buffers: int, most: int
) -> BackwardBody:
    """The backward body that reads residuals from buffers, which follow the consts.

    Parameters
    ----------
    places, carried : range
        Its inputs that are residuals, and those that are carried.
    """
    with tracing() as opened, enable_grad():
        opened.isolated = opened.general = True
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in back.inputs]
        number = placeholder(_NUMBER)
        stacks = [
            placeholder(Spec((most, *back.inputs[k].spec.shape), back.inputs[k].spec.dtype))
            for k in places
        ]
        now = wrap(number) + (-1)
        fed = [wrap(n) for n in inputs]
        for k, stack in zip(places, stacks, strict=True):
            fed[k] = wrap(stack)[now]
        outs = inline_graph(back, fed)
        results = [*outs[: len(carried)], now, *outs[len(carried) :]]
    rows = [n for k, n in enumerate(inputs) if k >= carried.stop and k not in places]
    consts = inputs[: carried.start]
    made = BackwardBody(
        *results,
        inputs=[*consts, *stacks, *inputs[carried.start : carried.stop], number, *rows],
        name=back.name,
    )
    made.restores = getattr(back, "restores", range(0))
    return made


def replaces(loop: Node, new: Node) -> None:
    """Remember that a loop has a variant with buffers."""
    _buffered[loop] = new


def merged(outputs: Sequence[Node]) -> list[Node]:
    """The same outputs from the loops with buffers, so that no loop runs twice."""
    found = list(outputs)
    done: set[Node] = set()
    while True:
        nodes = ancestors(found)
        loops = [n for n in nodes if n in _buffered and n not in done]
        loops = [n for n in loops if _buffered[n] in nodes]
        if not loops:
            return found
        loop = loops[0]
        done.add(loop)
        new = _buffered[loop]
        place = {
            n: part(new, n.params["index"]) for n in nodes if n.op is PART and n.inputs[0] is loop
        }
        changed = rebuilt(nodes, place)
        found = [changed[n] for n in found]
        if changed[new] is not new:
            return found
