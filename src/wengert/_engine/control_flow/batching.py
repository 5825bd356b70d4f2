"""Batching rules of loops and branches.

The body is evaluated for the batch (autodiff/batch_graph.py).  A step makes batched results of
batched operands, so the parts of the carry that are batched are found by iteration.  If the batch
elements of a while loop take different numbers of steps, all run as long as the longest, and those
that have finished keep their values.

    scan, while_, choice  batching rules of the operations
    for_batch             a body for a batch
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.batch_graph import BatchedGraph
from wengert._engine.core.handle import Handle, shape_of, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import enable_grad, tracing
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.symbolic.dim import Dim, is_open
from wengert._engine.core.tracing import placeholder
from wengert._engine.ops.casts import astype

from .eager_loops import strong

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

Flags = tuple[bool, ...]


@functools.lru_cache(maxsize=512)
def for_batch(body: Body, flags: Flags, size: int, least: Flags) -> tuple[Body, Flags]:
    """A body for a batch, and which of its results are batched.

    Parameters
    ----------
    body : Body
    flags : tuple of bool
        Which inputs are batched.
    size : int or Dim
        The size of the batch.
    least : tuple of bool
        Which results must be batched, even if all elements are equal.
    """
    with tracing() as opened, enable_grad():
        opened.isolated = opened.general = True
        inputs = [
            _with_rows(n, size if f else None) for n, f in zip(body.inputs, flags, strict=True)
        ]
        nodes = BatchedGraph({}, size, 0)
        nodes.known.update(
            {n: (wrap(x), f) for n, x, f in zip(body.inputs, inputs, flags, strict=True)}
        )
        results, found = [], []
        for (x, has_rows), n, must in zip(
            nodes.values(body.outputs), body.outputs, least, strict=True
        ):
            if must and not has_rows:
                x = lookup("broadcast_to")(x, shape=(size, *n.spec.shape))
            results.append(strong(x))
            found.append(has_rows or must)
    return Body(*results, inputs=inputs, name=body.name), tuple(found)


def _with_rows(node: Node, size: int | None) -> Node:
    spec = node.spec
    shape = spec.shape if size is None else (size, *spec.shape)
    return placeholder(Spec(shape, spec.dtype), node.name, type(node) is Node)


def _settled(
    body: Body, flags: Flags, carried: range, size: int, length: Size | None
) -> tuple[Body, Flags, Flags]:
    """A body for a batch, the flags of its inputs, and those of its results.

    Results that are stacked along an unknown length are always batched, because they could not be
    repeated afterwards.
    """
    while True:
        ys = len(body.outputs) - len(carried)
        least = [*[flags[k] for k in carried], *[is_open(length)] * ys]
        made, found = for_batch(body, flags, size, tuple(least))
        new = list(flags)
        new[carried.start : carried.stop] = found[: len(carried)]
        if tuple(new) == flags:
            return made, flags, found
        flags = tuple(new)


def _spread(x: Any, size: Any) -> Any:
    """A value repeated for the batch."""
    if not hasattr(x, "dtype"):
        x = np.asarray(x)
    if isinstance(size, Dim) and not isinstance(x, Handle):
        x = wrap(constant(x))  # a node of a graph: the size of the batch may be symbolic
    return lookup("broadcast_to")(x, shape=(size, *shape_of(x)))


def _swapped(x: Array) -> Any:
    """Swap the first two axes."""
    axes = list(range(len(shape_of(x))))
    axes[:2] = 1, 0
    return lookup("transpose")(x, axes=tuple(axes))


def scan(args: Sequence[Any], flags: Sequence[bool], size: int, params: dict[str, Any]) -> Any:
    """A scan for a batch."""
    body, carried, stacked = params["body"], params["carried"], params["stacked"]
    count = params["counted"]
    counts, args = list(args[:count]), list(args[count:])
    differs = count and flags[0]
    flags = tuple(flags[count:])
    fixed = len(args) - carried - stacked
    if differs:
        body = _ended(body, fixed, carried, params["reverse"])
        longest = lookup("max")(counts[0])
        first = longest - 1 if params["reverse"] else np.int64(0)
        args[fixed:fixed] = [counts[0], first]
        flags = (*flags[:fixed], True, False, *flags[fixed:])
        counts, fixed, carried = [longest], fixed + 1, carried + 1
    made, inner, found = _settled(
        body, flags, range(fixed, fixed + carried), size, params["length"]
    )
    for k in range(fixed, fixed + carried):
        if inner[k] and not flags[k]:
            args[k] = _spread(args[k], size)
    for k in range(fixed + carried, len(args)):
        if flags[k]:
            args[k] = _swapped(args[k])
    outs = lookup("scan")(*counts, *args, **{**params, "body": made, "carried": carried})
    results = []
    for k, (x, has_rows) in enumerate(zip(outs, found, strict=True)):
        x = x if has_rows else _spread(x, size)
        results.append(_swapped(x) if has_rows and k >= carried else x)
    return tuple(results[1:] if differs else results)


def _ended(body: Body, fixed: int, carried: int, reverse: bool) -> Body:
    """A body that does nothing from a given step on; it carries the step number."""
    with tracing() as opened, enable_grad():
        opened.isolated = opened.general = True
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        end, now = (wrap(placeholder(Spec((), np.dtype(np.int64)))) for _ in range(2))
        handles = [wrap(n) for n in inputs]
        outs = [strong(x) for x in inline_graph(body, handles)]
        active = now < end
        carry = _chosen(active, outs[:carried], handles[fixed : fixed + carried])
        ys = [lookup("where")(active, y, _zero(y)) for y in outs[carried:]]
        results = [now - 1 if reverse else now + 1, *carry, *ys]
    full = [*inputs[:fixed], end.node, now.node, *inputs[fixed:]]
    return Body(*results, inputs=full, name=body.name)


def _zero(x: Any) -> Any:
    return np.zeros((), x.dtype)[()]


def _chosen(active: Any, new: Sequence[Any], old: Sequence[Any]) -> list[Any]:
    """The new value for batch elements that continue, else the old one."""
    where: Any = lookup("where")
    return [where(active, a, b) for a, b in zip(new, old, strict=True)]


def while_(args: Sequence[Any], flags: Sequence[bool], size: int, params: dict[str, Any]) -> Any:
    """A while loop for a batch, until the last element has ended."""
    body, condition, carried = params["body"], params["condition"], params["carried"]
    fixed = len(args) - carried
    args = list(args)
    made, inner, found = _settled(
        body, tuple(flags), range(fixed, len(args)), size, params["length"]
    )
    test, [differs] = for_batch(condition, inner, size, (False,))
    if differs:
        body, condition = _until_ended(body, condition, fixed, carried)
        args.append(np.int64(0))
        must = (*flags, True)
        made, inner, found = _settled(body, must, range(fixed, len(args)), size, params["length"])
        test, _ = for_batch(condition, inner, size, (True,))
        test = _any(test)
        flags, carried = (*flags, False), carried + 1
    for k in range(fixed, len(args)):
        if inner[k] and not flags[k]:
            args[k] = _spread(args[k], size)
    outs = lookup("while")(*args, **{**params, "body": made, "condition": test, "carried": carried})
    carry, count, ys = outs[:carried], outs[carried], outs[carried + 1 :]
    carry = [x if f else _spread(x, size) for x, f in zip(carry, found, strict=False)]
    ys = [_swapped(y) if f else _spread(y, size) for y, f in zip(ys, found[carried:], strict=True)]
    if differs:
        return (*carry, *ys)  # the last of the carry is the number of steps of each element
    return (*carry, _spread(count, size), *ys)


def _until_ended(body: Body, condition: Body, fixed: int, carried: int) -> tuple[Body, Body]:
    """A body that does nothing once the condition is false, and counts the steps before that."""
    with tracing() as opened, enable_grad():
        opened.isolated = opened.general = True
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        steps = wrap(placeholder(Spec((), np.dtype(np.int64))))
        handles = [wrap(n) for n in inputs]
        (active,) = inline_graph(condition, handles)
        outs = [strong(x) for x in inline_graph(body, handles)]
        carry = _chosen(active, outs[:carried], handles[fixed:])
        results = [*carry, steps + astype(active, np.int64)]
        results += outs[carried:]
    full = [*inputs, steps.node]
    more = [*condition.inputs, placeholder(Spec((), np.dtype(np.int64)))]
    return Body(*results, inputs=full, name=body.name), Body(
        *condition.outputs, inputs=more, name=condition.name
    )


def _any(condition: Body) -> Body:
    """Whether the condition holds for any element."""
    with tracing() as opened:
        opened.isolated = opened.general = True
        held = lookup("any")(wrap(condition.outputs[0]))
    return Body(held, inputs=condition.inputs, name=condition.name)


def custom(args: Sequence[Any], flags: Sequence[bool], size: int, params: dict[str, Any]) -> Any:
    """A custom call for a batch, whose rule is applied to each element."""
    body, first = params["body"], params["captured"]
    made, _ = for_batch(body, tuple(flags), size, (True,) * len(body.outputs))
    rule = params["rule"].for_batch(tuple(flags[first:]))
    return lookup("custom_call")(*args, body=made, rule=rule, captured=first)


def choice(args: Sequence[Any], flags: Sequence[bool], size: int, params: dict[str, Any]) -> Any:
    """A conditional for a batch: one branch, or for each element a selection from all results."""
    which, *operands = args
    branches: Sequence[Body] = params["branches"]
    inner = tuple(flags[1:])
    least = (True,) * len(branches[0].outputs)
    made = [for_batch(b, inner, size, least)[0] for b in branches]
    if not flags[0]:
        name = "cond" if len(branches) == 2 and which.dtype.kind == "b" else "switch"
        return lookup(name)(which, *operands, branches=tuple(made))
    with np.errstate(all="ignore"):  # also of branches that are not selected
        columns = list(zip(*[inline_graph(b, operands) for b in made], strict=True))
    return tuple([_picked(which, list(column)) for column in columns])


def _picked(which: Array, column: list[Any]) -> Any:
    """The result of the selected branch for each batch element."""
    ndim = len(shape_of(column[0]))
    which = lookup("reshape")(which, shape=(*shape_of(which), *[1] * (ndim - 1)))
    if which.dtype.kind == "b":
        return lookup("where")(which, column[1], column[0])
    found = column[-1]
    for k in range(len(column) - 2, -1, -1):
        found = lookup("where")(which <= k, column[k], found)
    return found
