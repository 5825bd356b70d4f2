"""Selection: the index of an element decides which operand it comes from.

concatenate, stack, roll, shift.  Each element evaluates a condition for every operand, so many
operands are copied one after the other instead (kernels/concatenate.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.node import Node

from ..ir.affine import ZERO, Affine, Length, is_one
from ..ir.index_analysis import moves_of
from ..tuning import thresholds
from .loop_ir import Condition, Expr, SelectExpr, scalar_constant
from .registry import Lowering, lowers
from .views import flattened, reshaped


@lowers("concatenate")
def _concatenate(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    axis = node.params["axis"] % len(node.spec.shape)
    parts = [x for x in operands if not (type(x.shape[axis]) is int and x.shape[axis] == 0)]
    if not 2 <= len(parts) <= thresholds.selection_operands:
        return NotImplemented
    starts: list[Length] = [0]
    for x in parts:
        starts.append(starts[-1] + x.shape[axis])

    def choices(index: tuple[Affine, ...]) -> Any:
        found = []
        for k, x in enumerate(parts):
            form = ZERO if is_one(x.shape[axis]) else index[axis].plus(-starts[k])
            place = (*index[:axis], form, *index[axis + 1 :])
            last = k == len(parts) - 1
            # The first bound above the index: earlier operands have been selected already.
            conditions = () if last else (Condition(index[axis], 0, starts[k + 1]),)
            found.append((place, conditions))
        return _bounded(found, index[axis], starts)

    return Expr(SelectExpr("concatenate", choices), parts, node.spec.shape, node.spec.dtype, node)


def _bounded(found: list[Any], form: Affine, starts: Sequence[Length]) -> Any:
    """Each index with its own conditions, so that nothing is read out of bounds."""
    return [
        (place, (Condition(form, starts[k], starts[k + 1]),)) for k, (place, _) in enumerate(found)
    ]


@lowers("stack")
def _stack(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    axis = node.params["axis"] % len(node.spec.shape)
    if not 2 <= len(operands) <= thresholds.selection_operands:
        return NotImplemented

    def choices(index: tuple[Affine, ...]) -> Any:
        place = (*index[:axis], *index[axis + 1 :])
        return [(place, (Condition(index[axis], k, k + 1),)) for k in range(len(operands))]

    return Expr(SelectExpr("stack", choices), operands, node.spec.shape, node.spec.dtype, node)


@lowers("roll")
def _roll(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    (x,) = operands
    shift, axis = node.params["shift"], node.params.get("axis")
    if axis is None:
        x = flattened(x)
    moves = moves_of(shift, axis)
    if moves is None:
        return NotImplemented
    for a, by in moves:
        n = x.shape[a % len(x.shape)]
        if type(n) is not int:
            return NotImplemented
        x = x if n == 0 else _rolled(x, a % len(x.shape), by % n, n, node)
    return x if x.shape == node.spec.shape else reshaped(x, node.spec.shape, node)


def _rolled(x: Expr, axis: int, by: int, n: int, node: Node) -> Expr:
    if by == 0:
        return x

    def choices(index: tuple[Affine, ...]) -> Any:
        form = index[axis]
        return [
            ((*index[:axis], form.plus(moved), *index[axis + 1 :]), (Condition(form, low, high),))
            for moved, low, high in ((-by, by, n), (n - by, 0, by))
        ]

    return Expr(SelectExpr("roll", choices), (x, x), x.shape, x.dtype, node)


@lowers("shift")
def _shift(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    (x,) = operands
    axis, by = node.params["axis"] % len(x.shape), node.params["by"]
    n = x.shape[axis]

    def choices(index: tuple[Affine, ...]) -> Any:
        form = index[axis].plus(-by)
        place = (*index[:axis], ZERO if is_one(n) else form, *index[axis + 1 :])
        return [(place, (Condition(form, 0, n),)), ((), ())]

    return Expr(
        SelectExpr("shift", choices), (x, scalar_constant(0, x.dtype)), x.shape, x.dtype, node
    )
