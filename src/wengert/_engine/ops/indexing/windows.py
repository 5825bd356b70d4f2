"""Windows: slices with bounds that are unknown while a graph is built, as x[:k] for a counter k.

The length of such a slice is unknown, so it is not an array of the graph.  A window stores the
array with its whole axis, and the start and stop of the slice; elements outside affect no result:

    x[a:b].sum()            sum(where((a <= p) & (p < b), x, 0)),  p = arange(n)
    A[i, :j] @ A[j, :j]     sum(where(p < j, A[i] * A[j], 0))
    x[a:b] = v              x = where((a <= p) & (p < b), v, x)

    Window    such a slice, or an array computed from such slices

Operators are in window_operators.py, functions of NumPy in window_functions.py, reading and writing
in window_access.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, describe, dtype_of, is_traced, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.traced_inputs import interval
from wengert.errors import TraceError, at, user_line

from ..casts import astype
from ..creation import positions
from ..elementwise.selection import where
from .slice_ends import SliceRange, as_value, is_same, span_of

if TYPE_CHECKING:
    from wengert._engine.core.types import Axes


class Window:
    """A slice with unknown bounds, or an array computed from such slices.

    Parameters
    ----------
    whole : Tensor
        The array with the whole axes. Elements outside of the ranges are arbitrary.
    ranges : dict of int to SliceRange
        The range along each sliced axis.
    """

    __array_priority__ = 2000
    __slots__ = ("ranges", "whole")
    is_window = True
    exist = False  # whether there has been any

    def __init__(self, whole: Any, ranges: dict[int, SliceRange]) -> None:
        self.whole, self.ranges = whole, ranges
        Window.exist = True

    if TYPE_CHECKING:  # window_access.py

        def __getitem__(self, index: object) -> Any: ...
        def __setitem__(self, index: object, value: object) -> None: ...

    # ---- attributes ----------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return dtype_of(self.whole)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(shape_of(self.whole))

    @property
    def shape(self) -> tuple[Any, ...]:
        """The lengths of the axes, those of slices as traced integers."""
        return tuple(
            [self.length(k) if k in self.ranges else n for k, n in enumerate(shape_of(self.whole))]
        )

    @property
    def capacity(self) -> int | None:
        """The greatest possible length of the first axis; None if it is symbolic."""
        n = shape_of(self.whole)[0]
        return n if type(n) is int else None

    @property
    def size(self) -> Any:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> Window:
        """The transpose."""
        last = self.ndim - 1
        return Window(lookup("transpose")(self.whole, axes=None) if last else self.whole,
                      {last - k: r for k, r in self.ranges.items()})  # fmt: skip

    def length(self, axis: int) -> Any:
        """The length of a sliced axis."""
        return span_of(self.ranges[axis])

    def compacted(self) -> Window:
        """The window itself; see `Selection.compacted`."""
        return self

    def row(self, k: Any) -> Any:
        """The element or row with an index that is known to be in range."""
        if 0 not in self.ranges:
            return self[k]
        start = self.ranges[0].start
        part = self.whole[k if is_same(start, 0) else as_value(start) + k]
        rest = {axis - 1: r for axis, r in self.ranges.items() if axis}
        return Window(part, rest) if rest else part

    def mask(self, axes: Sequence[int] | None = None) -> Any:
        """A mask that is true inside the ranges and broadcasts with `whole`."""
        combined: Any = None
        for axis in self.ranges if axes is None else axes:
            r = self.ranges[axis]
            n = shape_of(self.whole)[axis]
            p = positions(n)
            axis_mask: Any = None
            if not is_same(r.start, 0):
                axis_mask = p >= as_value(r.start)
            if not is_same(r.stop, n):
                below = p < as_value(r.stop)
                axis_mask = below if axis_mask is None else lookup("logical_and")(axis_mask, below)
            if axis_mask is None:
                continue
            axis_mask = axis_mask.reshape((-1,) + (1,) * (self.ndim - axis - 1))
            combined = axis_mask if combined is None else lookup("logical_and")(combined, axis_mask)
        return combined

    def filled(self, value: float, axes: Sequence[int] | None = None) -> Any:
        """The whole array, with `value` outside of the ranges."""
        mask = self.mask(axes)
        number = np.asarray(value, self.dtype)[()]
        return self.whole if mask is None else where(mask, self.whole, number)

    # ---- element by element --------------------------------------------------------------------

    def astype(self, dtype: Any) -> Window:
        """The elements with another dtype."""
        return Window(lookup("copy")(astype(self.whole, np.dtype(dtype))), self.ranges)

    def copy(self) -> Window:
        """A copy of the elements."""
        return Window(lookup("copy")(self.whole), self.ranges)

    @property
    def real(self) -> Window:
        """The real parts."""
        return Window(self.whole.real, self.ranges)

    @property
    def imag(self) -> Window:
        """The imaginary parts."""
        return Window(self.whole.imag, self.ranges)

    # ---- reductions ----------------------------------------------------------------------------

    def reduced(self, name: str, neutral: float, axis: Axes) -> Any:
        """A reduction along axes, with `neutral` for elements outside of the ranges."""
        reduced_axes = set(self.axes(axis))
        sliced_axes = [k for k in self.ranges if k in reduced_axes]
        whole = lookup(name)(
            self.filled(neutral, sliced_axes),
            axis=None if axis is None else tuple(sorted(reduced_axes)),
        )
        kept_axes = [k for k in range(self.ndim) if k not in reduced_axes]
        ranges = {kept_axes.index(k): r for k, r in self.ranges.items() if k in kept_axes}
        return Window(whole, ranges) if ranges else whole

    def axes(self, axis: Axes) -> list[int]:
        """The axes that the argument `axis` of a reduction means."""
        if axis is None:
            return list(range(self.ndim))
        return [k % self.ndim for k in (axis if isinstance(axis, tuple) else (axis,))]

    def extreme(self, name: str, axis: Axes, may_be_empty: bool = False) -> Any:
        """The largest ("max") or smallest ("min") element."""
        for k in self.axes(axis):
            length = self.length(k) if k in self.ranges else None
            low = None if length is None else interval(length)[0]
            if length is not None and (low is None or low < 1) and not may_be_empty:
                RuntimeChecks.add(length == 0, ValueError(
                    f"zero-size array to reduction operation {name}imum which has no identity"
                    f"{at(user_line())}"
                ))  # fmt: skip
        neutral = lowest(self.dtype) if name == "max" else highest(self.dtype)
        return self.reduced(name, neutral, axis)

    # ---- operations that need the length -------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.refusal(f".{name}")

    def __len__(self) -> int:
        raise self.refusal("len()")

    def __iter__(self) -> Any:
        raise self.refusal("a loop over it")

    def __bool__(self) -> bool:
        raise self.refusal("a branch")

    def __array__(self, *args: Any, **kwargs: object) -> Any:
        raise self.refusal("an array of its elements")

    def __repr__(self) -> str:
        return f"<slice of {describe(self.whole)} with traced bounds>"

    def refusal(self, what: str) -> TraceError:
        """The error for something that needs the number of elements."""
        return TraceError(
            "the bound of a slice, or a mask, is computed from the inputs, so the number of "
            f"elements is not known while a graph is built, but {what} requires it. Select with "
            "np.where and np.arange, which keeps the shape, or take a fixed number of elements "
            f"from a position, x[i + np.arange(n)]{at(user_line())}."
        )


def lowest(dtype: np.dtype[Any]) -> Any:
    """The smallest value of a dtype."""
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """The largest value of a dtype."""
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max


def is_dynamic(part: object) -> bool:
    return type(part) is slice and any(
        isinstance(b, Handle) and is_traced(b) and "size" not in b.node.params
        for b in (part.start, part.stop, part.step)
    )


def index_parts(parts: Sequence[Any], ndim: int, used: int) -> list[Any]:
    """The parts of an index that uses some of the axes, with slices for the other axes."""
    parts = list(parts)
    missing = [slice(None)] * (ndim - used)
    ellipsis_position = next((k for k, p in enumerate(parts) if p is Ellipsis), None)
    if ellipsis_position is None:
        return [*parts, *missing]
    return [*parts[:ellipsis_position], *missing, *parts[ellipsis_position + 1 :]]
