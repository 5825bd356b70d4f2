"""Sparsity rules of operations that move elements or act along some axes.

The effect of an operation that only moves elements is found by running it on the numbers of the
elements (`choosing`); that of an operation that adds elements, by running its transpose on the
numbers of the results (`adding`).  So indices are not interpreted a second time here.  Operations
along an axis make groups of elements that all depend on each other.

    choosing    each element of the result is one of an operand's, or none (numbers_of: which)
    adding      each element of the operand is added to one of the result's (groups_of: which)
    along       all elements along one axis or several
    sums        a cumulative sum: the elements before
    matrices    the last two axes are matrices, the others a batch
    placed      x[index] = v, also for an unknown index
    added       x[index] += v, with indices that may repeat
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.op import RuleContext
from wengert._engine.kinds.reduction import axes_of
from wengert._engine.ops.indexing.template import join_index

from .dependency_sets import Numbers, Sets, chosen, gathered, relation, stacked, through, united
from .rule_context import NodeContext, everything, one_of, size_of, spread

Rule = Callable[[NodeContext], Any]
PREFIXES = 1 << 22  # entries of the relation of a cumulative sum up to which it is built


def choosing(ctx: NodeContext) -> Sets:
    """Run on the numbers of the elements; constants that are inserted have number 0."""
    numbers = numbers_of(ctx)
    if numbers is None:
        return along(ctx) if ctx.op.name == "gather_along" else everything(ctx)
    return chosen(stacked([ctx.sets[k] for k in ctx.moving], ctx.columns), numbers)


def numbers_of(ctx: NodeContext) -> Numbers | None:
    """Which element each element of the result is; None if that is not known at trace time.

    Elements of the operands that depend on something are counted from 1, through all operands.
    """
    data = _data(ctx)
    if any(ctx.known(k) is None for k in range(len(ctx.specs)) if k not in data):
        return None
    operands: list[Any] = []
    first = 1
    for k, spec in enumerate(ctx.specs):
        if k not in data:
            operands.append(ctx.known(k))
        elif ctx.sets[k] is None:
            operands.append(np.zeros(spec.shape, np.int64))
        else:
            operands.append(ctx.numbers(k, first))
            first += size_of(spec)
    try:
        numbers = np.asarray(ctx.op.run(*operands, **ctx.params))
    except IndexError:  # in a step or branch that does not run
        return None
    return numbers if numbers.dtype.kind in "iu" and numbers.shape == ctx.shape else None


def _data(ctx: NodeContext) -> Sequence[int]:
    """The operands whose elements are moved; the others select."""
    selectors = range(len(ctx.specs))[ctx.op.selectors]
    return [k for k in range(len(ctx.specs)) if k not in selectors]


def adding(ctx: NodeContext) -> Sets:
    """Run the transpose on the numbers of the results, which gives the target of each element."""
    groups = groups_of(ctx)
    return everything(ctx) if groups is None else gathered(ctx.sets[0], groups, ctx.size)


def groups_of(ctx: NodeContext) -> Numbers | None:
    """The element of the result that each of the operand is added to; -1 for none; or None."""
    if ctx.moving != [0] or not ctx.others_known():
        return None
    spec = ctx.specs[0]
    numbers = np.arange(1, ctx.size + 1).reshape(ctx.shape)
    rest = [ctx.known(k) for k in range(1, len(ctx.specs))]
    operand = np.zeros(spec.shape, np.int64)
    try:
        bars = ctx.op.vjp(ctx.node, numbers, numbers, [operand, *rest], RuleContext())
    except IndexError:  # in a step or branch that does not run
        return None
    groups = np.asarray(bars[0])
    fits = groups.dtype.kind in "iu" and groups.shape == spec.shape
    return groups - 1 if fits else None


def along(ctx: NodeContext) -> Any:
    """Each element depends on all elements along the axis, or axes; None means all axes.

    The result may be longer or shorter along the axis, have length one, or lack it.
    """
    axis = ctx.params.get("axis", -1)
    shape = ctx.specs[ctx.moving[0]].shape
    if any(ctx.specs[k].shape != shape for k in ctx.moving):
        return everything(ctx)
    gone = axes_of(tuple(axis) if isinstance(axis, list) else axis, len(shape))
    kept = tuple([1 if i in gone else n for i, n in enumerate(shape)])
    outer = np.arange(math.prod(kept)).reshape(kept)
    groups = np.broadcast_to(outer, shape)
    out = ctx.shape
    if len(out) == len(shape):
        fits = all(i in gone or n == m for i, (n, m) in enumerate(zip(shape, out, strict=True)))
        wide = np.broadcast_to(outer, out) if fits else None
    else:
        rest = tuple([n for i, n in enumerate(shape) if i not in gone])
        wide = outer.reshape(rest) if rest == out else None
    if wide is None:
        return everything(ctx)
    lines = united([gathered(ctx.sets[k], groups, outer.size) for k in ctx.moving])
    return chosen(lines, wide + 1)


def sums(ctx: NodeContext) -> Sets:
    """Each element depends on those before it along the axis, and on itself."""
    axis = ctx.params.get("axis")
    shape = ctx.shape
    if not isinstance(axis, int) or any(ctx.specs[k].shape != shape for k in ctx.moving):
        return everything(ctx)
    if not shape or ctx.size * shape[axis] > PREFIXES:
        return along(ctx)
    numbers = np.moveaxis(np.arange(ctx.size).reshape(shape), axis, -1)
    later, earlier = np.tril_indices(shape[axis])
    if ctx.params.get("reverse"):
        later, earlier = earlier, later
    rows, columns = numbers[..., later].ravel(), numbers[..., earlier].ravel()
    local = relation(rows, columns, (ctx.size, ctx.size))
    return through(local, united([ctx.sets[k] for k in ctx.moving]))


def matrices(ctx: NodeContext) -> Any:
    """Each matrix of a result depends on the matrices at the same position of the batch."""
    spec = ctx.node.spec
    outs = list(spec) if isinstance(spec, tuple) else [spec]
    floating = [s for s in outs if s.dtype.kind in "fc"]
    cores = [len(ctx.specs[k].shape) for k in ctx.moving]
    first = ctx.specs[0].shape
    if len(first) <= 2 or min(cores) < 2:
        return everything(ctx)
    many = first[:-2]
    if any(ctx.specs[k].shape[:-2] != many for k in ctx.moving) or any(
        s.shape[: len(many)] != many for s in floating
    ):
        return everything(ctx)
    count = math.prod(many)
    each = np.arange(count)
    found = []
    for k in ctx.moving:
        inside = size_of(ctx.specs[k]) // max(count, 1)
        found.append(gathered(ctx.sets[k], np.repeat(each, inside), count))
    together = united(found)
    made = [
        chosen(together, np.repeat(each + 1, size_of(s) // max(count, 1)))
        if s.dtype.kind in "fc"
        else None
        for s in outs
    ]
    return made if isinstance(spec, tuple) else made[0]


def placed(ctx: NodeContext) -> Sets:
    """x[index] = v; for an unknown index each element may be unchanged or any of v."""
    if all(ctx.known(k) is not None for k in range(2, len(ctx.specs))):
        return choosing(ctx)
    found = [] if ctx.sets[0] is None else [ctx.sets[0]]
    if ctx.sets[1] is not None:
        found.append(spread(one_of(ctx.sets[1]), ctx.size))
    return united(found)


def added(ctx: NodeContext) -> Any:
    """x with v added at an index; for an unknown index each element may get any of v."""
    found = [] if ctx.sets[0] is None else [ctx.sets[0]]
    if ctx.sets[1] is not None:
        index = [ctx.known(k) for k in range(2, len(ctx.specs))]
        if any(i is None for i in index):
            found.append(spread(one_of(ctx.sets[1]), ctx.size))
        else:
            numbers = np.arange(ctx.size).reshape(ctx.shape)
            try:
                targets = numbers[join_index(ctx.params["index"], index)]
            except IndexError:  # in a step or branch that does not run
                return everything(ctx)
            found.append(gathered(ctx.sets[1], targets, ctx.size))
    return united(found)


def identity(ctx: NodeContext) -> Sets | None:
    """The first operand; the others are ordering constraints and contribute nothing."""
    return ctx.sets[0]
