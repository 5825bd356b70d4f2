"""Selection: the index of an element decides which operand it comes from.

concatenate, stack, roll, shift.  Each element evaluates a condition for every operand, so many
operands are copied one after the other instead (kernels/concatenate.py).

Strong zeros, which backward passes use where 0 * inf must be 0.

`strong_zero(t, g)` is g, and 0 where t is exactly 0 and g is not finite.  If the graph shows that g
is a multiple of t, g is 0 or not finite wherever t is 0, so one comparison of t decides, and does
not wait for g: this matters inside loops with loop-carried dependences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.node import Node
from wengert._engine.core.types import Scalar, ScalarLanguage

from ..ir.index_analysis import ZERO, Affine, Length, is_one, moves_of
from ..tuning import thresholds
from .elementwise import elementwise
from .loop_ir import Condition, Expr, Map, SelectExpr, scalar_constant
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


_SIGNS = ("negative", "positive")


@lowers("strong_zero")
def _strong_zero(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    t, g = node.inputs
    same = all(x.dtype == node.spec.dtype and x.dtype.kind == "f" for x in operands)
    if same and is_multiple(g, t, thresholds.strong_zero_depth):
        return Expr(_SELECTED, operands, node.spec.shape, node.spec.dtype, node)
    return elementwise(lowering, node, operands)


def _selected(s: ScalarLanguage, t: Scalar, g: Scalar) -> Any:
    return s.where(s.not_equal(t, 0), g, 0)


_SELECTED = Map("strong_zero", _selected)


def is_multiple(g: Node, t: Node, depth: int) -> bool:
    """Whether g is t times something, or a sum of such products.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert._engine.backends.llvm.lowering.selection import is_multiple
    >>> graph = wg.trace(lambda t, x: (-t * x / 2.0, x + t))(1.0, 2.0)
    >>> [is_multiple(g, graph.inputs[0], 6) for g in graph.outputs]
    [True, False]
    """
    t, g = _without_sign(t), _without_sign(g)
    if g is t:
        return True
    if depth == 0:
        return False
    depth -= 1
    name = g.op.name
    if name == "multiply":
        return any(is_multiple(a, t, depth) for a in g.inputs)
    if name in ("divide", "cast", "broadcast_to"):
        return is_multiple(g.inputs[0], t, depth)
    if name == "strong_zero":
        return is_multiple(g.inputs[1], t, depth)
    return name in ("add", "subtract") and all(is_multiple(a, t, depth) for a in g.inputs)


def _without_sign(x: Node) -> Node:
    while x.op.name in _SIGNS:
        (x,) = x.inputs
    return x
