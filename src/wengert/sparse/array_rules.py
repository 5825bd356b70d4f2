"""Sparsity rules of operations of arrays: those that move elements, and those that compute.

    choosing     each element of the result is one of an operand's, or none (numbers_of: which)
    adding       each element of the operand is added to one of the result's (groups_of: which)
    along        all elements along one axis or several
    sums         a cumulative sum: the elements before
    matrices     the last two axes are matrices, the others a batch
    placed       x[index] = v, also for an unknown index
    added        x[index] += v, with indices that may repeat
    elementwise  an element depends on the elements at the same position; constant zero factors and
                 constant conditions are taken into account
    reduction    an element depends on all elements that are reduced to it
    contraction  an element depends on its factors, which the subscripts determine; zeros of
                 constant factors are taken into account
    multilinear  convolutions and user-defined linear maps: run on unit vectors, if these are few

The effect of an operation that only moves elements is found by running it on the numbers of the
elements (`choosing`); that of an operation that adds elements, by running its transpose on the
numbers of the results (`adding`).  So indices are not interpreted a second time here.  Operations
along an axis make groups of elements that all depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.op import Op, RuleContext
from wengert._engine.kinds.elementwise import Elementwise
from wengert._engine.kinds.reduction import axes_of, kept_shape
from wengert._engine.ops.indexing.template import join_index

from .rule_context import (
    NodeContext,
    Numbers,
    Sets,
    chosen,
    everything,
    gathered,
    nothing,
    one_of,
    relation,
    size_of,
    spread,
    stacked,
    through,
    united,
)

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


# ---- elementwise operations, reductions, contractions ------------------------------------------


PRODUCTS = 1 << 22  # maximum number of products of a contraction that are enumerated
UNITS = 1 << 12, 1 << 22  # maximum number of unit vectors, and of elements of their results


def elementwise(ctx: NodeContext) -> Sets:
    """The union over the operands, broadcast."""
    name = ctx.op.name
    if name == "where" and ctx.known(0) is not None:
        return choosing(ctx)
    found = []
    for k in ctx.moving:
        if _has_partial(ctx.op, k):
            sets = broadcast(ctx, k)
            if name == "multiply" and len(ctx.sets) == 2:
                sets = _times(ctx, sets, ctx.known(1 - k))
            found.append(sets)
    return united(found) if found else nothing(ctx.size, ctx.columns)


def _has_partial(op: Op, k: int) -> bool:
    """Whether an operand has a derivative; a condition has none."""
    if not isinstance(op, Elementwise) or not any(op.rules):
        return True  # the gradient of a real function of complex numbers is defined separately
    return op.rules[k] is not None


def broadcast(ctx: NodeContext, k: int) -> Sets:
    """The sets of an operand for each element of the result."""
    shape = ctx.specs[k].shape
    if shape == ctx.shape:
        return ctx.sets[k]
    return chosen(ctx.sets[k], np.broadcast_to(ctx.numbers(k), ctx.shape))


def _times(ctx: NodeContext, sets: Sets, factor: Any) -> Sets:
    """The sets without elements whose factor is a constant zero."""
    if factor is None:
        return sets
    kept = np.broadcast_to(np.asarray(factor) != 0, ctx.shape).ravel()
    return sets if kept.all() else chosen(sets, np.where(kept, np.arange(1, ctx.size + 1), 0))


def reduction(ctx: NodeContext) -> Sets:
    """The union of the reduced elements' sets."""
    (k,) = ctx.moving
    shape = ctx.specs[k].shape
    kept = kept_shape(shape, ctx.params.get("axis"))
    groups = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape)
    return gathered(ctx.sets[k], groups, ctx.size)


def contraction(ctx: NodeContext) -> Sets:
    """The union of the sets of all factors of each element of the result."""
    op: Any = ctx.op
    words = op.subscripts(*[len(s.shape) for s in ctx.specs], **ctx.params)
    lengths: dict[str, int] = {}
    for word, spec in zip(words[:-1], ctx.specs, strict=True):
        for letter, n in zip(word, spec.shape, strict=True):
            lengths[letter] = n if lengths.get(letter, 1) == 1 else lengths[letter]
    found = []
    for k in ctx.moving:
        sets = _by_entries(ctx, k, words, lengths)
        found.append(_by_subscripts(ctx, k, words, lengths) if sets is None else sets)
    return united(found)


def _by_subscripts(ctx: NodeContext, k: int, words: Sequence[str], lengths: dict[str, int]) -> Sets:
    """The union over the subscripts that are summed, repeated along those the operand lacks."""
    shape, word, result = ctx.specs[k].shape, words[k], words[-1]
    common = [c for c in result if c in word]
    within = tuple([shape[word.index(c)] for c in common])
    numbers = np.arange(math.prod(within)).reshape(within)
    axes = [common.index(c) if c in common else None for c in word]
    groups = np.broadcast_to(placed_axes(numbers, axes), shape)
    sets = gathered(ctx.sets[k], groups, numbers.size)
    wide = placed_axes(numbers, [common.index(c) if c in common else None for c in result])
    return chosen(sets, np.broadcast_to(wide + 1, tuple([lengths[c] for c in result])))


def _by_entries(
    ctx: NodeContext, k: int, words: Sequence[str], lengths: dict[str, int]
) -> Sets | None:
    """The union without products with constant zeros; None if there are none, or too many."""
    others = [j for j in range(len(ctx.sets)) if j != k and ctx.known(j) is not None]
    factors = {j: np.asarray(ctx.known(j)) != 0 for j in others}
    factors = {j: x for j, x in factors.items() if not x.all()}
    subscripts = [c for c in lengths if any(c in words[j] for j in (k, -1, *factors))]
    shape = tuple([lengths[c] for c in subscripts])
    if not factors or math.prod(shape) > PRODUCTS:
        return None
    counts = np.ones(shape, np.bool_)
    for j, x in factors.items():
        counts &= placed_axes(x, [words[j].index(c) if c in words[j] else None for c in subscripts])
    where = dict(zip(subscripts, np.nonzero(counts), strict=True))

    def number(word: str, of: Sequence[int]) -> Any:
        flat: Any = np.zeros(int(counts.sum()), np.int64)
        for c, n in zip(word, of, strict=True):
            flat = flat * n + (where[c] if n > 1 else 0)
        return flat

    rows, columns = number(words[-1], ctx.shape), number(words[k], ctx.specs[k].shape)
    return through(relation(rows, columns, (ctx.size, size_of(ctx.specs[k]))), ctx.sets[k])


def placed_axes(x: Any, axes: Sequence[int | None]) -> Any:
    """An array with its axes in another order, and axes of length one for None."""
    x = np.transpose(x, [a for a in axes if a is not None])
    for place, a in enumerate(axes):
        if a is None:
            x = np.expand_dims(x, place)
    return x


def sliding(ctx: NodeContext) -> Sets:
    """A convolution along a sequence, in the modes full and valid."""
    if any(len(s.shape) != 1 for s in ctx.specs):
        return everything(ctx)
    x, v = (_taps(ctx, k) for k in (0, 1))
    if x.size * v.size > PRODUCTS:
        return everything(ctx)
    places, taps = (a.ravel() for a in np.meshgrid(x, v, indexing="ij"))
    rows = places + taps if ctx.op.name == "convolve" else places - taps
    inside = (rows >= 0) & (rows < ctx.size)
    found = []
    for k in ctx.moving:
        columns = (places, taps)[k][inside]
        local = relation(rows[inside], columns, (ctx.size, size_of(ctx.specs[k])))
        found.append(through(local, ctx.sets[k]))
    return united(found)


def _taps(ctx: NodeContext, k: int) -> Any:
    """Where an operand is not a constant zero."""
    value = ctx.known(k)
    return np.arange(size_of(ctx.specs[k])) if value is None else np.flatnonzero(value)


def multilinear(ctx: NodeContext) -> Sets:
    """The results for unit vectors in one operand; the others are zero only if constant."""
    return _by_units(ctx, [_ones(ctx, k) for k in range(len(ctx.sets))])


def linear(ctx: NodeContext) -> Sets:
    """The results for each unit vector, for a linear map of the first operand."""
    if ctx.moving != [0]:
        return everything(ctx)
    ones = np.ones(ctx.specs[0].shape, ctx.specs[0].dtype)
    return _by_units(ctx, [ones, *[ctx.known(k) for k in range(1, len(ctx.sets))]])


def _by_units(ctx: NodeContext, operands: list[Any]) -> Sets:
    counts = [size_of(ctx.specs[k]) for k in ctx.moving]
    few = max(counts) <= UNITS[0] and max(counts) * ctx.size <= UNITS[1]
    if not few or any(x is None for x in operands):
        return everything(ctx)
    found = []
    for k, count in zip(ctx.moving, counts, strict=True):
        rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for j in range(count):
            unit = np.zeros(count, ctx.specs[k].dtype)
            unit[j] = 1
            given = [
                unit.reshape(ctx.specs[k].shape) if i == k else x for i, x in enumerate(operands)
            ]
            out = np.asarray(ctx.op.run(*given, **ctx.params))
            if out.shape != ctx.shape:
                return everything(ctx)
            reached = np.flatnonzero(out)
            rows.append(reached)
            columns.append(np.full(reached.size, j))
        shape = ctx.size, count
        local = relation(np.concatenate(rows), np.concatenate(columns), shape)
        found.append(through(local, ctx.sets[k]))
    return united(found)


def _ones(ctx: NodeContext, k: int) -> Any:
    """An operand of ones where it is not a constant zero; None for an unknown index."""
    value, spec = ctx.known(k), ctx.specs[k]
    if value is None:
        return np.ones(spec.shape, spec.dtype) if spec.dtype.kind in "fc" else None
    return np.not_equal(value, 0).astype(spec.dtype)


def pointwise(ctx: NodeContext) -> Any:
    """The union over the operands, broadcast, for every result of the broadcast shape."""
    spec = ctx.node.spec
    if isinstance(spec, tuple) or any(_too_wide(ctx, k) for k in ctx.moving):
        return everything(ctx)
    return united([broadcast(ctx, k) for k in ctx.moving])


def _too_wide(ctx: NodeContext, k: int) -> bool:
    shape = ctx.specs[k].shape
    try:
        return np.broadcast_shapes(shape, ctx.shape) != ctx.shape
    except ValueError:
        return True
