"""Sparsity rules of elementwise operations, reductions and contractions.

elementwise   an element depends on the elements at the same position; constant zero factors
              and constant conditions are taken into account
reduction     an element depends on all elements that are reduced to it
contraction   an element depends on its factors, which the subscripts determine; zeros of
              constant factors are taken into account
multilinear   convolutions and user-defined linear maps: run on unit vectors, if these are few
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.op import Op
from wengert._engine.kinds.elementwise import Elementwise
from wengert._engine.kinds.reduction import kept_shape

from .dependency_sets import Sets, chosen, gathered, nothing, relation, through, united
from .indexing_rules import choosing
from .rule_context import NodeContext, everything, size_of

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
