"""Operators of windows: elementwise functions, products, and functions of NumPy.

Windows are combined if they are slices of the same length.  Where they start at different
positions, their elements are moved to the first positions of the axis.

    elementwise    an operation element by element
    product        the matrix product
    applied        a function of NumPy
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
from wengert.errors import TraceError, at, user_line

from ..casts import astype
from ..creation import positions
from ..elementwise.selection import where
from .slice_ends import SliceRange, as_value, clipped, is_same, position_in, taken
from .windows import Window, index_parts

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
        if getattr(self.whole, "_link", None) is not None:
            self.whole[...] = stored(self, result)
            return self
        return result

    return run


for _word, _name in _OPERATORS.items():
    setattr(Window, f"__{_word}__", _operator(_name))
    setattr(Window, f"__r{_word}__", _operator(_name, True))
    setattr(Window, f"__i{_word}__", _in_place(_name))
for _word, _name in (_COMPARISONS | {"neg": "negative", "abs": "absolute"}).items():
    setattr(Window, f"__{_word}__", _operator(_name))
Window.__hash__ = object.__hash__  # type: ignore[method-assign]


def elementwise(op: Any, name: str, *inputs: Any) -> Window:
    """An operation element by element, on windows and on arrays that broadcast with them."""
    aligned = _aligned(inputs)
    ndim = max(x.ndim if isinstance(x, Window) else len(shape_of(x)) for x in aligned)
    ranges: dict[int, SliceRange] = {}
    for x in aligned:
        if isinstance(x, Window):
            ranges.update({k + ndim - x.ndim: r for k, r in x.ranges.items()})
    wholes = [
        x if not isinstance(x, Window) else x.whole if name in _TOTAL else x.filled(1)
        for x in aligned
    ]
    return Window(op(*wholes), ranges)


def _aligned(inputs: Sequence[Any]) -> list[Any]:
    """Windows with the same range along each axis."""
    aligned = list(inputs)
    ndim = max(x.ndim if isinstance(x, Window) else len(shape_of(x)) for x in aligned)
    for axis in range(-ndim, 0):
        windows = [x for x in aligned if isinstance(x, Window) and x.ndim + axis in x.ranges]
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
            for k, x in enumerate(aligned)
            if not isinstance(x, Window) or x.ndim + axis not in x.ranges
        ]
        plain = [
            k
            for k in plain
            if len(lengths_of(aligned[k])) >= -axis and lengths_of(aligned[k])[axis] != 1
        ]
        if same and not plain:
            continue
        length = windows[0].length(windows[0].ndim + axis)
        for k, x in enumerate(aligned):
            if k not in plain and not _has(x, axis):
                continue
            length_of_x = x.length(x.ndim + axis) if k not in plain else lengths_of(x)[axis]
            if not is_same(length_of_x, length):
                length_check(length_of_x, length)
        sizes = [whole_shape(x)[axis] for k, x in enumerate(aligned) if k in plain or _has(x, axis)]
        shortest = min(sizes, key=lambda m: m if type(m) is int else math.inf)
        for k, x in enumerate(aligned):
            if k in plain or _has(x, axis):
                aligned[k] = _from_zero(x, axis, shortest, length)
    return aligned


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


def product(a: Any, b: Any) -> Any:
    """The matrix product; elements outside of windows count as zeros."""
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


def applied(name: str, args: Sequence[Any], kwargs: Any) -> Any:
    """A function of NumPy with windows among its arguments."""
    first = next((a for a in args if isinstance(a, Window)), None)
    if first is None:
        raise TraceError(
            f"np.{name} does not support a list of slices with traced bounds{at(user_line())}."
        )
    if name in ("sum", "prod", "any", "all", "mean", "max", "min", "amax", "amin"):
        axis = args[1] if len(args) > 1 else kwargs.get("axis")
        if len(args) <= 2 and not kwargs.keys() - {"axis"}:
            return getattr(first, {"amax": "max", "amin": "min"}.get(name, name))(axis)
    if name in ("dot", "vdot", "inner") and len(args) == 2 and not kwargs:
        a, b = args
        return product(elementwise(np.conj, "conj", a) if name == "vdot" else a, b)
    if name == "outer" and len(args) == 2 and not kwargs:
        a, b = [x if isinstance(x, Window) else Window(x, {}) for x in args]
        return elementwise(lookup("multiply"), "multiply", a[:, None], b[None, :])
    if name == "where" and len(args) == 3:
        return elementwise(where, "add", *args)
    if name == "copy":
        return first.copy()
    if name == "flip" and len(args) == 1 and first.ndim == 1 and not kwargs:
        return first[::-1]
    if name == "transpose" and len(args) == 1 and not kwargs:
        return first.T
    raise first.refusal(f"np.{name}")


def stored(target: Window, v: Any) -> Any:
    """The whole array of a window after all of its elements have been assigned."""
    mask = target.mask()
    whole = target.whole
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
    if method != "__call__" or kwargs or ufunc.nout != 1:
        raise self.refusal(f"np.{ufunc.__name__}")
    if ufunc is np.matmul:
        return product(*inputs)
    return elementwise(ufunc, ufunc.__name__, *inputs)


def _array_function(self: Window, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return applied(func.__name__, args, kwargs)


def _setitem(self: Window, index: object, v: Any) -> None:
    parts = index_parts(index, self.ndim)
    if all(isinstance(p, slice) and p == slice(None) for p in parts):
        self.whole[...] = stored(self, v)
        return
    if isinstance(self[index], Window) or self.whole.node.op is not lookup("getitem"):
        raise self.refusal("a store to a part of it")
    self.whole[tuple(part_of_whole(self, k, p) for k, p in enumerate(parts))] = v


def part_of_whole(x: Window, axis: int, part: Any) -> Any:
    """A part of an index into a window as a part of an index into the whole array."""
    if isinstance(part, slice) or axis not in x.ranges:
        return part
    return position_in(part, x.ranges[axis], x.length(axis))


METHODS = {
    "__array_ufunc__": _array_ufunc,
    "__array_function__": _array_function,
    "__setitem__": _setitem,
    "__matmul__": lambda self, other: product(self, other),
    "__rmatmul__": lambda self, other: product(other, self),
    "dot": lambda self, other: product(self, other),
    "conj": lambda self: elementwise(np.conj, "add", self),
}
for _word, _method in METHODS.items():
    setattr(Window, _word, _method)
