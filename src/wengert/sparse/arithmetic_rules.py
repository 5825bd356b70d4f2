"""Sparsity rules of elementwise operations, reductions and contractions.

elementwise   an element depends on the elements at the same position; constant zero factors
              and constant conditions are taken into account
reduction     an element depends on all that are reduced to it
contraction   an element depends on its factors: by the subscripts, and for a constant matrix
              by its nonzero entries
multilinear   convolutions, and users' linear maps: found by running them on unit vectors, if
              these are few
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

PRODUCTS = 1 << 22  # products of a contraction that are examined one by one
UNITS = 1 << 12, 1 << 22  # unit vectors that are tried, and elements of their results


def elementwise(line: NodeContext) -> Sets:
    """The union over the operands, broadcast."""
    name = line.op.name
    if name == "where" and line.known(0) is not None:
        return choosing(line)
    found = []
    for k in line.moving:
        if _has_partial(line.op, k):
            sets = broadcast(line, k)
            if name == "multiply" and len(line.sets) == 2:
                sets = _times(line, sets, line.known(1 - k))
            found.append(sets)
    return united(found) if found else nothing(line.size, line.columns)


def _has_partial(op: Op, k: int) -> bool:
    """Whether an operand has a derivative; a condition has none."""
    if not isinstance(op, Elementwise) or not any(op.rules):
        return True  # a real function of complex numbers has its gradient elsewhere
    return op.rules[k] is not None


def broadcast(line: NodeContext, k: int) -> Sets:
    """The sets of an operand for each element of the result."""
    shape = line.specs[k].shape
    if shape == line.shape:
        return line.sets[k]
    return chosen(line.sets[k], np.broadcast_to(line.numbers(k), line.shape))


def _times(line: NodeContext, sets: Sets, factor: Any) -> Sets:
    """The sets without elements whose factor is a constant zero."""
    if factor is None:
        return sets
    kept = np.broadcast_to(np.asarray(factor) != 0, line.shape).ravel()
    return sets if kept.all() else chosen(sets, np.where(kept, np.arange(1, line.size + 1), 0))


def reduction(line: NodeContext) -> Sets:
    """The union of the reduced elements' sets."""
    (k,) = line.moving
    shape = line.specs[k].shape
    kept = kept_shape(shape, line.params.get("axis"))
    groups = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape)
    return gathered(line.sets[k], groups, line.size)


def contraction(line: NodeContext) -> Sets:
    """The union of the sets of all factors of each element of the result."""
    op: Any = line.op
    words = op.letters(*[len(s.shape) for s in line.specs], **line.params)
    lengths: dict[str, int] = {}
    for word, spec in zip(words[:-1], line.specs, strict=True):
        for letter, n in zip(word, spec.shape, strict=True):
            lengths[letter] = n if lengths.get(letter, 1) == 1 else lengths[letter]
    found = []
    for k in line.moving:
        sets = _by_entries(line, k, words, lengths)
        found.append(_by_letters(line, k, words, lengths) if sets is None else sets)
    return united(found)


def _by_letters(line: NodeContext, k: int, words: Sequence[str], lengths: dict[str, int]) -> Sets:
    """The union over the subscripts that are summed, repeated along those the operand lacks."""
    shape, word, result = line.specs[k].shape, words[k], words[-1]
    common = [c for c in result if c in word]
    within = tuple([shape[word.index(c)] for c in common])
    numbers = np.arange(math.prod(within)).reshape(within)
    axes = [common.index(c) if c in common else None for c in word]
    groups = np.broadcast_to(placed_axes(numbers, axes), shape)
    sets = gathered(line.sets[k], groups, numbers.size)
    wide = placed_axes(numbers, [common.index(c) if c in common else None for c in result])
    return chosen(sets, np.broadcast_to(wide + 1, tuple([lengths[c] for c in result])))


def _by_entries(
    line: NodeContext, k: int, words: Sequence[str], lengths: dict[str, int]
) -> Sets | None:
    """Without products with a constant zero; None if there are none, or too many products."""
    others = [j for j in range(len(line.sets)) if j != k and line.known(j) is not None]
    factors = {j: np.asarray(line.known(j)) != 0 for j in others}
    factors = {j: x for j, x in factors.items() if not x.all()}
    letters = [c for c in lengths if any(c in words[j] for j in (k, -1, *factors))]
    shape = tuple([lengths[c] for c in letters])
    if not factors or math.prod(shape) > PRODUCTS:
        return None
    counts = np.ones(shape, np.bool_)
    for j, x in factors.items():
        counts &= placed_axes(x, [words[j].index(c) if c in words[j] else None for c in letters])
    where = dict(zip(letters, np.nonzero(counts), strict=True))

    def number(word: str, of: Sequence[int]) -> Any:
        flat: Any = np.zeros(int(counts.sum()), np.int64)
        for c, n in zip(word, of, strict=True):
            flat = flat * n + (where[c] if n > 1 else 0)
        return flat

    rows, columns = number(words[-1], line.shape), number(words[k], line.specs[k].shape)
    return through(relation(rows, columns, (line.size, size_of(line.specs[k]))), line.sets[k])


def placed_axes(x: Any, axes: Sequence[int | None]) -> Any:
    """An array with its axes in another order, and axes of length one for None."""
    x = np.transpose(x, [a for a in axes if a is not None])
    for place, a in enumerate(axes):
        if a is None:
            x = np.expand_dims(x, place)
    return x


def sliding(line: NodeContext) -> Sets:
    """A kernel that slides along a sequence: modes full and valid."""
    if any(len(s.shape) != 1 for s in line.specs):
        return everything(line)
    x, v = (_taps(line, k) for k in (0, 1))
    if x.size * v.size > PRODUCTS:
        return everything(line)
    places, taps = (a.ravel() for a in np.meshgrid(x, v, indexing="ij"))
    rows = places + taps if line.op.name == "convolve" else places - taps
    inside = (rows >= 0) & (rows < line.size)
    found = []
    for k in line.moving:
        columns = (places, taps)[k][inside]
        local = relation(rows[inside], columns, (line.size, size_of(line.specs[k])))
        found.append(through(local, line.sets[k]))
    return united(found)


def _taps(line: NodeContext, k: int) -> Any:
    """Where an operand is not a constant zero."""
    value = line.known(k)
    return np.arange(size_of(line.specs[k])) if value is None else np.flatnonzero(value)


def multilinear(line: NodeContext) -> Sets:
    """The results for each unit vector in one operand; in the others only constants are zero."""
    return _by_units(line, [_ones(line, k) for k in range(len(line.sets))])


def linear(line: NodeContext) -> Sets:
    """The results for each unit vector, for a linear map of the first operand."""
    if line.moving != [0]:
        return everything(line)
    ones = np.ones(line.specs[0].shape, line.specs[0].dtype)
    return _by_units(line, [ones, *[line.known(k) for k in range(1, len(line.sets))]])


def _by_units(line: NodeContext, operands: list[Any]) -> Sets:
    counts = [size_of(line.specs[k]) for k in line.moving]
    few = max(counts) <= UNITS[0] and max(counts) * line.size <= UNITS[1]
    if not few or any(x is None for x in operands):
        return everything(line)
    found = []
    for k, count in zip(line.moving, counts, strict=True):
        rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for j in range(count):
            unit = np.zeros(count, line.specs[k].dtype)
            unit[j] = 1
            given = [
                unit.reshape(line.specs[k].shape) if i == k else x for i, x in enumerate(operands)
            ]
            out = np.asarray(line.op.run(*given, **line.params))
            if out.shape != line.shape:
                return everything(line)
            reached = np.flatnonzero(out)
            rows.append(reached)
            columns.append(np.full(reached.size, j))
        shape = line.size, count
        local = relation(np.concatenate(rows), np.concatenate(columns), shape)
        found.append(through(local, line.sets[k]))
    return united(found)


def _ones(line: NodeContext, k: int) -> Any:
    """An operand of ones where it is not a constant zero; None for an unknown index."""
    value, spec = line.known(k), line.specs[k]
    if value is None:
        return np.ones(spec.shape, spec.dtype) if spec.dtype.kind in "fc" else None
    return np.not_equal(value, 0).astype(spec.dtype)


def pointwise(line: NodeContext) -> Any:
    """The union over the operands, broadcast, for every result of the broadcast shape."""
    spec = line.node.spec
    if isinstance(spec, tuple) or any(_too_wide(line, k) for k in line.moving):
        return everything(line)
    return united([broadcast(line, k) for k in line.moving])


def _too_wide(line: NodeContext, k: int) -> bool:
    shape = line.specs[k].shape
    try:
        return np.broadcast_shapes(shape, line.shape) != line.shape
    except ValueError:
        return True
