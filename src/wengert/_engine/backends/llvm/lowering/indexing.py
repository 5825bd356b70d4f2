"""Indexing: x[index], x[index] = v, and zeros with t added at an index.

Reading a slice is a view; writing one is a selection, by the index, between the old and the new
elements.  Index arrays are gathers (gathers.py).  Writes through index arrays, or with steps other
than 1, loop over the written values: those are kernels (kernels/scatter.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from wengert._engine.core.node import Node
from wengert._engine.ops.indexing.traced_slices import has_local

from ..ir.index_analysis import ZERO, Affine, AxisIndex, IndexPlan, Length, chosen, is_one
from .elementwise import elementwise
from .gathers import Gather, Place, RowGather, gathered, known, one_hot
from .loop_ir import Condition, Expr, SelectExpr, View, aligned, scalar_constant
from .registry import ACCEPT_DEFERRED, Lowering, lowers, opaque_call, settled
from .scatter_chains import (
    ScatterChain,
    SliceSelection,
    position_of,
    read_back,
    spread,
    squeezed,
    updated,
)


def _fits(found: IndexPlan | None, shape: Sequence[Length]) -> bool:
    """Whether the lengths are those of the shape rule."""
    if found is None or len(found.shape) != len(shape):
        return False
    return all(p.axis is None or p.length == shape[p.axis] for p in found.parts)


def _is_empty(shape: Sequence[Length]) -> bool:
    return any(type(n) is int and n == 0 for n in shape)


@lowers("getitem")
def _getitem(_: Lowering, node: Node, operands: Sequence[Any]) -> Any:
    if isinstance(operands[0], ScatterChain):
        element = _read_back(node, *operands)
        if element is not None:
            return element
    x, *arrays = operands = [settled(x) for x in operands]
    if any(a.dtype.kind not in "iu" for a in arrays):
        return NotImplemented
    found = chosen(node.params["index"], x.shape, [a.shape for a in arrays])
    if found is None or not _fits(found, node.spec.shape):
        return NotImplemented
    shape = node.spec.shape
    if not arrays:
        place = lambda index: tuple(_sliced(p, index) for p in found.parts)  # noqa: E731
        return Expr(View("getitem", place), (x,), shape, x.dtype, node)
    inside = shape[found.place : found.place + found.depth]
    if _is_empty(shape) and not _is_empty(inside):
        return NotImplemented  # NumPy checks the positions nevertheless

    def places(index: tuple[Affine, ...]) -> list[Place]:
        own = index[found.place : found.place + found.depth]
        return [
            _sliced(p, index)
            if p.operand is None
            else known(
                RowGather(arrays[p.operand], aligned(own, arrays[p.operand].shape, inside), n)
            )
            for p, n in zip(found.parts, x.shape, strict=True)
        ]

    return gathered("getitem", x, arrays, places, shape, node)


def _sliced(part: AxisIndex, index: tuple[Affine, ...]) -> Affine:
    if part.axis is None or is_one(part.length):
        return Affine(part.start, ())
    form: Affine = index[part.axis].times(part.step).plus(part.start)
    return form


@lowers("gather_along")
def _gather_along(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    x, array = operands
    shape = node.spec.shape
    if array.dtype.kind not in "iu" or len(x.shape) != len(array.shape) or _is_empty(shape):
        return NotImplemented
    axis = node.params["axis"] % len(shape)
    own_shape = tuple(shape[k] if k == axis else n for k, n in enumerate(x.shape))

    def places(index: tuple[Affine, ...]) -> list[Place]:
        found: list[Place] = list(aligned(index, own_shape, shape))
        found[axis] = known(RowGather(array, aligned(index, array.shape, shape), x.shape[axis]))
        return found

    return Expr(Gather("gather_along", places), operands, shape, x.dtype, node)


# ---- writes --------------------------------------------------------------------------------------


ACCEPT_DEFERRED.update(("getitem", "setitem", "add"))


def _read_back(node: Node, x: ScatterChain, *arrays: Any) -> Expr | None:
    """The element at a position of a deferred array, if that is known."""
    found = chosen(node.params["index"], node.inputs[0].spec.shape) if not arrays else None
    position = None if found is None else position_of(found)
    return None if position is None else read_back(x, position, node)


@lowers("scatter")
def _scatter(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    t = operands[0]
    shape = node.spec.shape
    arrays = [settled(x) for x in operands[1:]]
    if any(a.dtype.kind not in "iu" for a in arrays):
        return NotImplemented
    found = chosen(node.params["index"], shape, [a.shape for a in arrays])
    if found is None or not _fits(found, t.shape):
        return NotImplemented
    if arrays:
        return one_hot(settled(t), arrays, found, shape, node)

    def alone(_: Expr | None, t: Expr) -> Expr:
        return _written(node, scalar_constant(0, node.spec.dtype), t, found, (t,))

    if _is_known(shape):
        return ScatterChain(node, None, t, node.params["index"], found, True, alone)
    return alone(None, t)


@lowers("setitem")
def _setitem(_: Lowering, node: Node, operands: Sequence[Any]) -> Any:
    x, v, *arrays = operands
    v = settled(v)
    index = node.params["index"]
    found = None if arrays else chosen(index, node.spec.shape)
    if found is not None and has_local(index):
        # Of a slice whose length differs between the steps of a loop only the elements are written.
        parts = found.parts
        place = lambda index: tuple([_sliced(p, index) for p in parts])  # noqa: E731
        return updated(node, settled(x), v, found.shape, place)
    if found is None:
        return opaque_call(node, [settled(x), v, *map(settled, arrays)])

    def alone(x: Expr | None, v: Expr) -> Expr:
        assert x is not None
        return _written(node, x, v, found, (x, v))

    if _is_known(node.spec.shape):
        return ScatterChain(node, x, v, node.params["index"], found, False, alone)
    return alone(settled(x), v)


@lowers("add")
def _add(lowering: Lowering, node: Node, operands: Sequence[Any]) -> Any:
    """A scatter that is added to an array accumulates into that array."""
    for x, t in (operands, operands[::-1]):
        if _is_scatter(t) and all(a.spec == node.spec for a in node.inputs):
            adding = functools.partial(_added, node, t)
            return ScatterChain(node, x, t.value, t.index, t.found, True, adding)
    return elementwise(lowering, node, [settled(x) for x in operands])


def _added(node: Node, t: ScatterChain, x: Expr | None, _: Expr) -> Expr:
    expr: Expr = elementwise(None, node, [x, settled(t)])
    return expr


def _is_scatter(x: Any) -> bool:
    """Whether it is a single scatter that is still deferred."""
    return isinstance(x, ScatterChain) and x.before is None and x.expr is None


def _is_known(shape: Sequence[Length]) -> bool:
    return all(type(n) is int for n in shape)


def _written(node: Node, x: Expr, v: Expr, found: IndexPlan, operands: Sequence[Expr]) -> Expr:
    """x with v stored at an index; an opaque call if that is not a selection."""
    if any(p.axis is not None and p.step not in (1, -1) for p in found.parts):
        expr: Expr = opaque_call(node, operands)
        return expr
    v = squeezed(v, len(found.shape))

    def choices(index: tuple[Affine, ...]) -> Any:
        place, conditions = _inverse(found, index)
        inside = aligned(place, v.shape, found.shape)
        return [(inside, conditions), (aligned(index, x.shape, node.spec.shape), ())]

    rule = SelectExpr(node.op.name, choices)
    if x.shape == node.spec.shape and x.dtype == node.spec.dtype:
        parts, new = found.parts, spread(v, tuple(found.shape))
        place = lambda index: tuple([_sliced(p, index) for p in parts])  # noqa: E731
        rule = SliceSelection(node.op.name, choices, new, place)
    return Expr(rule, (v, x), node.spec.shape, node.spec.dtype, node)


def _inverse(
    found: IndexPlan, index: tuple[Affine, ...]
) -> tuple[tuple[Affine, ...], tuple[Condition, ...]]:
    """The position of an element in the selection, and the conditions that it is selected."""
    place: list[Affine] = [ZERO] * len(found.shape)
    conditions = []
    for p, form in zip(found.parts, index, strict=True):
        if p.axis is None:
            conditions.append(Condition(form, p.start, p.start + 1))
            continue
        moved = form.plus(-p.start) if p.step == 1 else form.times(-1).plus(p.start)
        place[p.axis] = ZERO if is_one(p.length) else moved
        conditions.append(Condition(moved, 0, p.length))
    return tuple(place), tuple(conditions)
