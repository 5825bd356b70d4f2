"""Leaves, views and selections: inputs, constants, and operands at other indices.

Leaves: inputs, constants, sizes, and arrays such as `full`, `arange` and `eye`.  The layout of an
input is a letter:

    C    C order
    F    Fortran order: the transpose of an array in C order
    S    strided: its strides are symbolic sizes

Views, without a copy: reshape, transpose, expand_dims, squeeze, flip, broadcast_to, diagonal,
slices.  A reshape that splits axes is an affine expression of the loop counters; one that joins
axes reads by the position in C order.

Selections: concatenate, stack, roll, shift.  The index of an element decides which operand it comes
from.  Each element evaluates a condition for every operand, so many operands are copied one after
the other instead (kernels/joined_arrays.py).

Strong zeros, which backward passes use where 0 * inf must be 0: `strong_zero(t, g)` is g, and 0
where t is exactly 0 and g is not finite.  If the graph shows that g is a multiple of t, g is 0 or
not finite wherever t is 0, so one comparison of t decides, and does not wait for g: this matters
inside loops with loop-carried dependences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node, is_variable
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.types import Scalar, ScalarLanguage

from ..ir.index_analysis import (
    STRIDE,
    ZERO,
    Affine,
    FlatIndex,
    Length,
    is_one,
    moves_of,
    offset_of,
    size_of,
    strides_of,
)
from ..ir.llvm_types import is_supported
from ..tuning import thresholds
from .elementwise import elementwise
from .loop_ir import (
    Condition,
    Expr,
    IndexValue,
    Map,
    ScalarConstant,
    SelectExpr,
    Stored,
    View,
    aligned,
    scalar_constant,
)
from .registry import Lowering, lowers


@lowers("leaf input", "leaf constant")
def _leaf(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    if node.is_traced or is_variable(node):
        return _input(lowering, node)
    value = np.asarray(node.value)
    if value.ndim == 0 and is_supported(value.dtype):
        return Expr(ScalarConstant(value[()]), (), (), value.dtype, node)
    return _array(value, node)


def _input(lowering: Lowering, node: Node) -> Expr:
    shape, dtype = node.spec.shape, node.spec.dtype
    layout = lowering.layouts.get(node, "C")
    if layout == "F":
        stored = Expr(Stored("input"), (), shape[::-1], dtype, node)
        expr = Expr(View("transpose", lambda index: index[::-1]), (stored,), shape, dtype, node)
    elif layout == "S":
        number = list(lowering.layouts).index(node)  # as in Program
        strides = tuple(Dim({((n, 1),): 1}) for n in stride_names(number, len(shape)))
        stored = Expr(Stored("input", strides=strides), (), shape, dtype, node)
        expr = Expr(View("strided", lambda index: index), (stored,), shape, dtype, node)
    else:
        expr = stored = Expr(Stored("input"), (), shape, dtype, node)
    lowering.held[node] = stored
    return expr


def stride_names(number: int, ndim: int) -> list[str]:
    """The names of the strides of an input, which are not valid names of sizes."""
    return [f"{STRIDE}{number}.{k}" for k in range(ndim)]


def _array(value: np.ndarray[Any, Any], node: Node) -> Expr:
    """A constant array; elements repeated along an axis are stored once."""
    repeated = [k for k, n in enumerate(value.shape) if n > 1 and _is_repeated(value, k)]
    distinct = value[tuple(slice(0, 1 if k in repeated else None) for k in range(value.ndim))]
    if distinct.size == 1 and is_supported(value.dtype):
        return Expr(ScalarConstant(distinct.reshape(())[()]), (), value.shape, value.dtype, node)
    stored = Expr(Stored("constant", distinct), (), distinct.shape, value.dtype, node)
    if not repeated:
        return stored
    place = lambda index: aligned(index, distinct.shape, value.shape)  # noqa: E731
    return Expr(View("repeated", place), (stored,), value.shape, value.dtype, node)


def _is_repeated(value: np.ndarray[Any, Any], axis: int) -> bool:
    """Whether the elements along an axis are equal bit by bit."""
    if value.strides[axis] == 0:
        return True
    if value.size == 0:
        return False
    if value.dtype.kind not in "fc":
        first = value.take([0], axis)
        return bool((value == first).all())
    bits = np.ascontiguousarray(value).view(np.uint8).reshape(*value.shape, -1)
    return bool((bits == bits.take([0], axis)).all())


@lowers("leaf size")
def _size(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    length = node.params["size"]
    rule = IndexValue(str(length), lambda index: Affine(length, ()))
    return Expr(rule, (), (), node.spec.dtype, node)


@lowers("full")
def _full(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    spec = node.spec
    value = np.asarray(node.params["value"]).astype(spec.dtype)[()]
    return Expr(ScalarConstant(value), (), spec.shape, spec.dtype, node)


@lowers("arange")
def _arange(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    start, step = node.params["start"], node.params["step"]
    if node.spec.dtype.kind not in "iu" or not isinstance(step, int):
        return NotImplemented
    rule = IndexValue("arange", lambda index: index[0].times(step).plus(start))
    return Expr(rule, (), node.spec.shape, node.spec.dtype, node)


@lowers("eye")
def _eye(_: Any, node: Node, operands: Sequence[Expr]) -> Any:
    offset = node.params.get("offset", 0)

    def diagonal(index: Any) -> Condition:
        distance = index[1].plus(index[0].times(-1)).plus(-offset)
        return Condition(distance, 0, 1)

    return Expr(IndexValue("eye", diagonal), (), node.spec.shape, node.spec.dtype, node)


# ---- views ---------------------------------------------------------------------------------------


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


# ---- selection -----------------------------------------------------------------------------------


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
    >>> from wengert._engine.backends.llvm.lowering.leaves_and_views import is_multiple
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
