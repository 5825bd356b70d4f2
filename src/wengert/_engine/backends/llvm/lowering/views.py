"""Views: the same elements at other indices, without a copy.

reshape, transpose, expand_dims, squeeze, flip, broadcast_to, diagonal, slices.  A reshape that
splits axes is an affine expression of the loop counters; one that joins axes reads by the position
in C order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert._engine.core.node import Node

from ..ir.index_analysis import (
    ZERO,
    Affine,
    FlatIndex,
    Length,
    is_one,
    offset_of,
    size_of,
    strides_of,
)
from .loop_ir import Expr, View, aligned
from .registry import Lowering, lowers


def _view(node: Node, x: Expr, place: Callable[..., Any], keeps_order: bool = False) -> Expr:
    return Expr(View(node.op.name, place, keeps_order), (x,), node.spec.shape, x.dtype, node)


@lowers("transpose")
def _transpose(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    (x,) = operands
    ndim = len(x.shape)
    axes = node.params.get("axes")
    axes = range(ndim - 1, -1, -1) if axes is None else [a % ndim for a in axes]
    return transposed(x, axes, node)


def transposed(x: Expr, axes: Sequence[int], node: Node) -> Expr:
    """An expression with its axes in another order, as the value of a node."""
    order = [0] * len(axes)
    for k, a in enumerate(axes):
        order[a] = k
    return _view(node, x, lambda index: tuple(index[k] for k in order))


@lowers("broadcast_to")
def _broadcast_to(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    (x,) = operands
    if x.shape == node.spec.shape:
        return x
    return _view(node, x, lambda index: aligned(index, x.shape, node.spec.shape))


@lowers("flip")
def _flip(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    (x,) = operands
    ndim = len(x.shape)
    axis = node.params.get("axis")
    chosen = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    flipped = {a % ndim for a in chosen}
    return _view(
        node,
        x,
        lambda index: tuple(
            form.times(-1).plus(x.shape[k] - 1) if k in flipped and not is_one(x.shape[k]) else form
            for k, form in enumerate(index)
        ),
    )


@lowers("diagonal")
def _diagonal(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    (x,) = operands
    ndim = len(x.shape)
    offset = node.params.get("offset", 0)
    one, two = (node.params.get(k, d) % ndim for k, d in (("axis1", 0), ("axis2", 1)))
    rest = [k for k in range(ndim) if k not in (one, two)]

    def place(index: tuple[Affine, ...]) -> Any:
        forms: list[Any] = [None] * ndim
        for k, form in zip(rest, index[:-1], strict=True):
            forms[k] = form
        forms[one] = index[-1].plus(max(-offset, 0))
        forms[two] = index[-1].plus(max(offset, 0))
        return tuple(forms)

    return _view(node, x, place)


# ---- the same elements in the same order ---------------------------------------------------------


@lowers("reshape", "expand_dims", "squeeze")
def _reshape(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    (x,) = operands
    shape = node.spec.shape
    order = node.params.get("order", "C")
    if order == "F" and max(len(x.shape), len(shape)) > 1:  # columns are rows of the transpose
        return _reversed(reshaped(_reversed(x, node), tuple(shape[::-1]), node), node)
    if order not in ("C", "F", None) and max(len(x.shape), len(shape)) > 1:
        return NotImplemented
    return x if x.shape == shape else reshaped(x, shape, node)


def _reversed(x: Expr, node: Node) -> Expr:
    """An expression with its axes in reverse order."""
    view = View("transpose", lambda index: tuple(index[::-1]))
    return Expr(view, (x,), x.shape[::-1], x.dtype, node)


def reshaped(x: Expr, shape: Sequence[Length], node: Node | None = None) -> Expr:
    """An expression of another shape, with the same elements in C order."""
    groups = _groups(x.shape, tuple(shape))
    if groups is not None:
        place = _splitting(groups, len(x.shape))
    else:
        strides = strides_of(tuple(shape))
        place = lambda index: FlatIndex(offset_of(index, strides))  # noqa: E731
    view = View("reshape", place, keeps_order=True)
    view.joins = groups is None
    return Expr(view, (x,), shape, x.dtype, node)


def _groups(old: tuple[Length, ...], new: tuple[Length, ...]) -> list[Any] | None:
    """The axes of the new shape into which each axis of the old shape is split.

    None if axes are joined.
    """
    found: list[Any] = []
    k = 0
    for n in old:
        if is_one(n):
            found.append([])
            continue
        parts: list[int] = []
        product: Length = 1
        while product != n or not parts:
            while k < len(new) and is_one(new[k]):
                k += 1
            if k == len(new):
                return None
            product = product * new[k]
            parts.append(k)
            k += 1
            if type(product) is int and type(n) is int and (product > n or n == 0) and product != n:
                return None
        found.append(parts)
    if any(not is_one(n) for n in new[k:]):
        return None
    lengths = new
    return [(axes, [lengths[a] for a in axes]) for axes in found]


def _splitting(groups: Sequence[Any], ndim: int) -> Any:
    def place(index: tuple[Affine, ...]) -> Any:
        forms = []
        for axes, lengths in groups:
            total: Affine = ZERO
            for a, stride in zip(axes, strides_of(lengths), strict=True):
                total = total.plus(index[a].times(stride))
            forms.append(total)
        return tuple(forms)

    return place


def flattened(x: Expr) -> Expr:
    """All elements in one axis."""
    return x if len(x.shape) == 1 else reshaped(x, (size_of(x.shape),), x.node)
