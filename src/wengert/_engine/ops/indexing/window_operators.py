"""Operators of windows: elementwise functions, products, and functions of NumPy.

Windows are combined if they are slices of the same length.  Where they start at different
positions, their elements are moved to the first positions of the axis.

    elementwise    an operation element by element
    product        the matrix product
    aligned        windows with the same ranges
    moved_to_start a window from the first position of an axis
    stored         the whole array of a window after its elements have been assigned
    length_check   raises an error when the graph runs if two lengths differ
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert.errors import at, user_line

from ..casts import astype
from ..creation import positions
from ..elementwise.selection import where
from .slice_ends import SliceRange, as_value, clipped, is_same, taken
from .windows import Window

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand, Size

_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
    "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor",
}  # fmt: skip
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal",
}  # fmt: skip
# Operations without poles: elements outside of a window cannot produce NaN.
_TOTAL = frozenset(("add", "subtract", "negative", "multiply", "conjugate", "conj", "positive"))


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    def run(self: Window, *others: Any) -> Any:
        inputs = (*others, self) if reflected else (self, *others)
        return elementwise(lookup(name), name, *inputs)

    return run


def _in_place(name: str) -> Callable[..., Any]:
    def run(self: Window, other: Operand | Window) -> Any:
        result = elementwise(lookup(name), name, self, other)
        check_stored_dtype(name, result.dtype, self.dtype)
        self.whole[...] = stored(self, result)
        return self

    return run


def check_stored_dtype(name: str, result: np.dtype[Any], target: np.dtype[Any]) -> None:
    """Raise NumPy's error for an operator in place whose results do not fit an array."""
    if not np.can_cast(result, target, "same_kind"):
        raise TypeError(
            f"Cannot cast ufunc '{name}' output from {result} to {target} with casting rule "
            f"'same_kind'{at(user_line())}"
        )


for _word, _name in _OPERATORS.items():
    setattr(Window, f"__{_word}__", _operator(_name))
    setattr(Window, f"__r{_word}__", _operator(_name, True))
    setattr(Window, f"__i{_word}__", _in_place(_name))
for _word, _name in (_COMPARISONS | {"neg": "negative", "abs": "absolute"}).items():
    setattr(Window, f"__{_word}__", _operator(_name))
Window.__hash__ = object.__hash__  # type: ignore[method-assign]


def elementwise(op: Any, name: str, *inputs: Any) -> Window:
    """An operation element by element, on windows and on arrays that broadcast with them."""
    operands = aligned([without_selection(x) for x in inputs])
    ndim = max(x.ndim if isinstance(x, Window) else len(shape_of(x)) for x in operands)
    ranges: dict[int, SliceRange] = {}
    for x in operands:
        if isinstance(x, Window):
            ranges.update({k + ndim - x.ndim: r for k, r in x.ranges.items()})
    wholes = [
        x if not isinstance(x, Window) else x.whole if name in _TOTAL else x.filled(1)
        for x in operands
    ]
    return Window(op(*wholes), ranges)


def aligned(inputs: Sequence[Any]) -> list[Any]:
    """Windows with the same range along each axis."""
    operands = list(inputs)
    ndim = max(x.ndim if isinstance(x, Window) else len(shape_of(x)) for x in operands)
    for axis in range(-ndim, 0):
        windows = [x for x in operands if isinstance(x, Window) and x.ndim + axis in x.ranges]
        if not windows:
            continue
        first = windows[0].ranges[windows[0].ndim + axis]
        n = shape_of(windows[0].whole)[axis]
        same = all(
            is_same(x.ranges[x.ndim + axis].start, first.start)
            and is_same(x.ranges[x.ndim + axis].stop, first.stop)
            and shape_of(x.whole)[axis] == n
            for x in windows
        )
        plain = [
            k
            for k, x in enumerate(operands)
            if not isinstance(x, Window) or x.ndim + axis not in x.ranges
        ]
        plain = [
            k
            for k in plain
            if len(lengths_of(operands[k])) >= -axis and lengths_of(operands[k])[axis] != 1
        ]
        if same and not plain:
            continue
        length = windows[0].length(windows[0].ndim + axis)
        for k, x in enumerate(operands):
            if k not in plain and not _has(x, axis):
                continue
            length_of_x = x.length(x.ndim + axis) if k not in plain else lengths_of(x)[axis]
            if not is_same(length_of_x, length):
                length_check(length_of_x, length)
        sizes = [
            whole_shape(x)[axis] for k, x in enumerate(operands) if k in plain or _has(x, axis)
        ]
        shortest = min(sizes, key=lambda m: m if type(m) is int else math.inf)
        for k, x in enumerate(operands):
            if k in plain or _has(x, axis):
                operands[k] = _from_zero(x, axis, shortest, length)
    return operands


def _has(x: object, axis: int) -> bool:
    """Whether a value is a window along an axis, counted from the last."""
    return isinstance(x, Window) and x.ndim + axis in x.ranges


def lengths_of(x: object) -> tuple[Any, ...]:
    return x.shape if isinstance(x, Window) else shape_of(x)


def whole_shape(x: object) -> tuple[Any, ...]:
    return shape_of(x.whole) if isinstance(x, Window) else shape_of(x)


def length_check(a: object, b: object) -> None:
    """Raise an error when the graph runs if two lengths differ."""
    RuntimeChecks.add(as_value(a) != as_value(b), ValueError(
        f"operands could not be broadcast together: two slices differ in length{at(user_line())}"
    ))  # fmt: skip


def _from_zero(x: Any, axis: int, n: Size, length: Any) -> Window:
    """A window whose elements begin at the first position of an axis of length `n`."""
    whole, ranges = (x.whole, dict(x.ranges)) if isinstance(x, Window) else (x, {})
    ndim = len(shape_of(whole))
    r = ranges.get(ndim + axis)
    if r is not None and not is_same(r.start, 0):
        last = as_value(shape_of(whole)[axis]) - 1
        indices = lookup("minimum")(positions(n) + as_value(r.start), last)
        whole = taken(whole, indices, axis=ndim + axis)
    elif shape_of(whole)[axis] != n:
        whole = whole[(Ellipsis, slice(0, n), *(slice(None),) * (-axis - 1))]
    ranges[ndim + axis] = SliceRange(0, length)
    return Window(whole, ranges)


def without_selection(x: Any) -> Any:
    """A value with windows instead of selections (selection.py), also in lists."""
    if type(x) in (list, tuple):
        return type(x)([without_selection(y) for y in x])
    return x.compacted() if getattr(type(x), "is_window", False) else x


def moved_to_start(x: Window, axis: int) -> Window:
    """A window whose elements begin at the first position of an axis."""
    return _from_zero(x, axis - x.ndim, shape_of(x.whole)[axis], x.length(axis))


def product(a: Any, b: Any) -> Any:
    """The matrix product; elements outside of windows count as zeros."""
    a, b = without_selection(a), without_selection(b)
    if _ndim(a) == 0 or _ndim(b) == 0:
        return elementwise(lookup("multiply"), "multiply", a, b)
    inner = _ndim(a) - 1, 0 if _ndim(b) == 1 else _ndim(b) - 2
    a, b = _contracted(a, b, *inner)
    left = {k: r for k, r in a.ranges.items() if k != inner[0]}
    right = {k: r for k, r in b.ranges.items() if k != inner[1]}
    whole = lookup("matmul")(
        a.filled(0, [inner[0]] if inner[0] in a.ranges else []),
        b.filled(0, [inner[1]] if inner[1] in b.ranges else []),
    )
    ndim = len(shape_of(whole))
    ranges = {}
    for k, r in left.items():
        ranges[ndim - (1 if _ndim(b) == 1 else 2) - (_ndim(a) - 2 - k)] = r
    for k, r in right.items():
        is_column = k == _ndim(b) - 1 or _ndim(a) > 1
        ranges[ndim - (_ndim(b) - k) + (0 if is_column else 1)] = r
    return Window(whole, ranges) if ranges else whole


def _ndim(x: object) -> int:
    return x.ndim if isinstance(x, Window) else len(shape_of(x))


def _contracted(a: Any, b: Any, i: int, j: int) -> tuple[Window, Window]:
    """Operands whose contracted axes have the same range."""
    a = a if isinstance(a, Window) else Window(a, {})
    b = b if isinstance(b, Window) else Window(b, {})
    p, q = a.ranges.get(i), b.ranges.get(j)
    n, m = shape_of(a.whole)[i], shape_of(b.whole)[j]
    if (
        p is not None
        and q is not None
        and n == m
        and is_same(p.start, q.start)
        and is_same(p.stop, q.stop)
    ):
        return a, b
    if p is None and q is None:
        return a, b
    length = a.length(i) if p is not None else n
    other = b.length(j) if q is not None else m
    if not is_same(length, other):
        length_check(length, other)
    shortest = min((n, m), key=lambda k: k if type(k) is int else math.inf)
    return (
        _from_zero(a, i - a.ndim, shortest, length),
        _from_zero(b, j - b.ndim, shortest, length),
    )


def stored(target: Window, v: Any) -> Any:
    """The whole array of a window after all of its elements have been assigned."""
    mask = target.mask()
    whole, v = target.whole, without_selection(v)
    if isinstance(v, Window) or shape_of(v) != ():
        v = _aligned_with(target, v)
    v = astype(v, target.dtype) if dtype_of(v) != target.dtype else v
    return where(mask, v, whole) if mask is not None else v


def _aligned_with(target: Window, v: Any) -> Any:
    """A value with its elements at the positions of the target."""
    for axis, r in target.ranges.items():
        axis_from_end = axis - target.ndim
        if len(lengths_of(v)) < -axis_from_end or (
            type(lengths_of(v)[axis_from_end]) is int and lengths_of(v)[axis_from_end] == 1
        ):
            continue
        range_of_v = v.ranges.get(v.ndim + axis_from_end) if isinstance(v, Window) else None
        n = shape_of(target.whole)[axis]
        same = (
            range_of_v is not None
            and is_same(range_of_v.start, r.start)
            and is_same(range_of_v.stop, r.stop)
        )
        if same and whole_shape(v)[axis_from_end] == n:
            continue
        length = (
            v.length(v.ndim + axis_from_end)
            if range_of_v is not None
            else shape_of(v)[axis_from_end]
        )
        if not is_same(length, target.length(axis)):
            length_check(length, target.length(axis))
        offset = as_value(0 if range_of_v is None else range_of_v.start) - as_value(r.start)
        whole, ranges = (v.whole, dict(v.ranges)) if isinstance(v, Window) else (v, {})
        last = as_value(shape_of(whole)[axis_from_end]) - 1
        indices = clipped(positions(n) + offset, 0, last)
        whole = taken(whole, indices, axis=len(shape_of(whole)) + axis_from_end)
        ranges[len(shape_of(whole)) + axis_from_end] = r
        v = Window(whole, ranges)
    return v.whole if isinstance(v, Window) else v


def _array_ufunc(self: Window, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if method in ("reduce", "accumulate"):
        return self.ufunc_method(ufunc, method, *inputs, **kwargs)
    if method != "__call__" or kwargs or ufunc.nout != 1:
        raise self.refusal(f"np.{ufunc.__name__}")
    if ufunc is np.matmul:
        return product(*inputs)
    return elementwise(ufunc, ufunc.__name__, *inputs)


METHODS = {
    "__array_ufunc__": _array_ufunc,
    "__matmul__": lambda self, other: product(self, other),
    "__rmatmul__": lambda self, other: product(other, self),
    "dot": lambda self, other: product(self, other),
    "conj": lambda self: elementwise(np.conj, "add", self),
}
for _word, _method in METHODS.items():
    setattr(Window, _word, _method)
