"""The derivatives of a node: diagonals, and numbers that are kept one by one after sums.

    Diagonal        one derivative for each element of the node (diagonal_entries.py)
    Scattered       any number for each element, one by one
    added_entries   of a node that adds elements, from the diagonals of its operand
    pushed_entries  of a node, from those of its operands

Where many elements are added to one, a node has as many derivatives as there are summands, and they
are no diagonals.  Each is kept as a number with two positions: the element of the node, and the
input element.  Nothing is summed before the entries are read.

Operations that move elements copy positions; elementwise operations multiply each derivative by the
partial at its element; a further sum moves its element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.infinities import TracedGuards
from wengert._engine.autodiff.reverse import handles_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.reduction import kept_shape

from . import array_rules
from .propagation import rule_of
from .rule_context import NodeContext, Numbers, size_of


class Diagonal(NamedTuple):
    """For each element of a node one derivative, and its input element; -1 for none.

    clean : whether the derivative is exactly zero where there is none, so that it may be added to
        others; a zero that has been multiplied may be 0 * inf.
    """

    by: Numbers
    dot: Any
    clean: bool = True


class Scattered(NamedTuple):
    """Derivatives of elements of a node.

    at : the element of the node, in C order; -1 for none.
    by : the input element that it is taken with respect to; -1 for none.
    dot : the derivatives, a vector.
    """

    at: Numbers
    by: Numbers
    dot: Any


REDUCTIONS = ("sum", "mean")


def added_entries(ctx: NodeContext, sides: Sequence[list[Diagonal]]) -> list[Scattered] | None:
    """The derivatives of a sum, or of an addition at an index array, of one operand."""
    groups = _groups(ctx)
    if groups is None or ctx.moving != [0]:
        return None
    made = []
    for diagonal in sides[0]:
        dot = _divided(ctx, lookup("reshape")(diagonal.dot, shape=(diagonal.by.size,)))
        made.append(Scattered(groups, diagonal.by.ravel(), dot))
    return made


def _groups(ctx: NodeContext) -> Numbers | None:
    """The element of the result that each element of the operand is added to, if it adds."""
    if ctx.op.name in REDUCTIONS:
        shape = ctx.specs[0].shape
        kept = kept_shape(shape, ctx.params.get("axis"))
        numbers = np.arange(size_of(ctx.node.spec)).reshape(kept)
        return np.broadcast_to(numbers, shape).ravel()
    if rule_of(ctx.op) is array_rules.adding:
        groups = array_rules.groups_of(ctx)
        return None if groups is None else groups.ravel()
    return None


def _divided(ctx: NodeContext, dot: Any) -> Any:
    """The derivatives of a mean, from those of a sum."""
    if ctx.op.name == "mean":
        dot = dot / (size_of(ctx.specs[0]) // max(ctx.size, 1))
    return (
        dot if dot.dtype == ctx.node.spec.dtype else lookup("cast")(dot, dtype=ctx.node.spec.dtype)
    )


def pushed_entries(
    ctx: NodeContext,
    sides: Sequence[list[Scattered]],
    plan: TracedGuards,
    stem: Any,
    limit: int,
) -> list[Scattered] | None:
    """The derivatives of a node, from those of its operands.

    Returns
    -------
    list of Scattered, or None if its operation has no rule here, or there are more than `limit`
    """
    rule = rule_of(ctx.op)
    if ctx.node.spec.dtype.kind == "c" or not ctx.op.has_jvp:
        return None
    if rule is array_rules.elementwise:
        return _elementwise(ctx, sides, plan, stem, limit)
    if rule in (array_rules.choosing, array_rules.placed):
        return _moved(ctx, sides, array_rules.numbers_of(ctx), limit)
    if rule is array_rules.identity:
        made = _moved(ctx, sides, ctx.numbers(0), limit)
        return None if made is None else [s._replace(dot=_divided(ctx, s.dot)) for s in made]
    groups = _groups(ctx)
    if groups is None or ctx.moving != [0]:
        return None
    summed = [Scattered(_at(groups, s.at), s.by, _divided(ctx, s.dot)) for s in sides[0]]
    return summed


def _at(groups: Numbers, at: Numbers) -> Numbers:
    return np.where(at >= 0, groups[at], -1)


def _moved(
    ctx: NodeContext, sides: Sequence[list[Scattered]], numbers: Numbers | None, limit: int
) -> list[Scattered] | None:
    """Copies of the derivatives, for each element that is a copy of theirs."""
    if numbers is None:
        return None
    made: list[Scattered] = []
    first = 1
    for k in ctx.moving:
        for entries in sides[k]:
            found = _copied(entries, numbers.ravel() - first, size_of(ctx.specs[k]), limit)
            if found is None:
                return None
            made.append(found)
        first += size_of(ctx.specs[k])
    return made


def _copied(entries: Scattered, numbers: Numbers, size: int, limit: int) -> Scattered | None:
    """The derivatives of results that are copies of the elements with some numbers."""
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(size + 1))
    begin, count = ends[:-1][entries.at], np.diff(ends)[entries.at]
    count = np.where((entries.at >= 0) & (entries.by >= 0), count, 0)
    total = int(count.sum())
    if total > limit:
        return None
    which = np.repeat(np.arange(len(count)), count)
    inside = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    at = order[begin[which] + inside]
    is_same = len(which) == len(count) and bool(np.all(count == 1))
    return Scattered(at, entries.by[which], entries.dot if is_same else entries.dot[which])


def _elementwise(
    ctx: NodeContext, sides: Sequence[list[Scattered]], plan: TracedGuards, stem: Any, limit: int
) -> list[Scattered] | None:
    """Each derivative times the partial at its element."""
    node: Any = ctx.node
    out, inputs = handles_of(node)
    made: list[Scattered] = []
    for k, side in enumerate(sides):
        numbers = np.broadcast_to(ctx.numbers(k, 0), ctx.shape).ravel()
        for given in side:
            entries = given
            if ctx.specs[k].shape != ctx.shape or np.any(given.at < 0):
                copied = _copied(given, numbers, size_of(ctx.specs[k]), limit)
                if copied is None:
                    return None
                entries = copied
            dots = [entries.dot if i == k else None for i in range(len(inputs))]
            context = plan.forwards(node, dots, stem)
            operands = [_elements(x, ctx.shape, entries.at) for x in inputs]
            dot = ctx.op.jvp(node, dots, _elements(out, ctx.shape, entries.at), operands, context)
            if dot is not None:
                made.append(entries._replace(dot=_as_vector(ctx, dot, entries.at.size)))
    return made


def _as_vector(ctx: NodeContext, dot: Any, size: int) -> Any:
    if dot.shape != (size,):
        dot = lookup("broadcast_to")(dot, shape=(size,))
    return (
        dot if dot.dtype == ctx.node.spec.dtype else lookup("cast")(dot, dtype=ctx.node.spec.dtype)
    )


def _elements(x: Any, shape: tuple[int, ...], at: Numbers) -> Any:
    """The elements of an operand, broadcast to a shape, at some positions."""
    given = np.shape(x) if not hasattr(x, "shape") else x.shape
    if given == ():
        return x
    if given != shape:
        numbers = np.broadcast_to(np.arange(int(np.prod(given))).reshape(given), shape)
        at = numbers.ravel()[at]
    return lookup("reshape")(x, shape=(-1,))[at]
