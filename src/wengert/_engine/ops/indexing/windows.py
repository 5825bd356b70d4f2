"""Windows: slices with bounds that are unknown while a graph is built, as x[:k] for a counter k.

The length of such a slice is unknown, so it is not an array of the graph.  A window stores the
array with its whole axis, and the start and stop of the slice; elements outside affect no result:

    x[a:b].sum()            sum(where((a <= p) & (p < b), x, 0)),  p = arange(n)
    A[i, :j] @ A[j, :j]     sum(where(p < j, A[i] * A[j], 0))
    x[a:b] = v              x = where((a <= p) & (p < b), v, x)

    Window    such a slice, or an array computed from such slices

Operators are in window_operators.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, describe, dtype_of, is_traced, shape_of
from wengert._engine.core.intervals import interval
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert.errors import TraceError, at, user_line

from ..casts import astype
from ..creation import positions
from ..elementwise.selection import where
from .slice_ends import (
    SliceRange,
    as_value,
    is_number,
    is_same,
    position_in,
    range_within,
    reversed_range,
    span_of,
)

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

    def __init__(self, whole: Any, ranges: dict[int, SliceRange]) -> None:
        self.whole, self.ranges = whole, ranges

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
        return Window(astype(self.whole, np.dtype(dtype)), self.ranges)

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

    def _reduced(self, name: str, neutral: float, axis: Axes) -> Any:
        axes = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        reduced_axes = {k % self.ndim for k in axes}
        sliced_axes = [k for k in self.ranges if k in reduced_axes]
        whole = lookup(name)(
            self.filled(neutral, sliced_axes),
            axis=None if axis is None else tuple(sorted(reduced_axes)),
        )
        kept_axes = [k for k in range(self.ndim) if k not in reduced_axes]
        ranges = {kept_axes.index(k): r for k, r in self.ranges.items() if k in kept_axes}
        return Window(whole, ranges) if ranges else whole

    def sum(self, axis: Axes = None) -> Any:
        """The sum of the elements."""
        return self._reduced("sum", 0, axis)

    def prod(self, axis: Axes = None) -> Any:
        """The product of the elements."""
        return self._reduced("prod", 1, axis)

    def any(self, axis: Axes = None) -> Any:
        """Whether any element is true."""
        return Window(self.whole != 0, self.ranges)._reduced("any", False, axis)

    def all(self, axis: Axes = None) -> Any:
        """Whether all elements are true."""
        return Window(self.whole != 0, self.ranges)._reduced("all", True, axis)

    def mean(self, axis: Axes = None) -> Any:
        """The mean of the elements; NaN if there are none."""
        lengths = self.shape
        axes = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        return self.sum(axis) / math.prod([lengths[k] for k in axes])

    def max(self, axis: Axes = None) -> Any:
        """The largest element."""
        return self._extreme("max", _lowest(self.dtype), axis)

    def min(self, axis: Axes = None) -> Any:
        """The smallest element."""
        return self._extreme("min", _highest(self.dtype), axis)

    def _extreme(self, name: str, neutral: float, axis: Axes) -> Any:
        axes = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        for k in axes:
            length = self.length(k % self.ndim) if k % self.ndim in self.ranges else None
            low = None if length is None else interval(length)[0]
            if length is not None and (low is None or low < 1):
                RuntimeChecks.add(length == 0, ValueError(
                    f"zero-size array to reduction operation {name}imum which has no identity"
                ))  # fmt: skip
        return self._reduced(name, neutral, axis)

    # ---- indexing ------------------------------------------------------------------------------

    def __getitem__(self, index: object) -> Any:
        parts = index_parts(index, self.ndim)
        static_index: list[Any] = []
        ranges: dict[int, SliceRange] = {}
        whole, axis, out = self.whole, 0, 0
        for part in parts:
            if part is None:
                static_index.append(None)
                out += 1
                continue
            r = self.ranges.get(axis)
            if isinstance(part, slice):
                if r is None:
                    if is_dynamic(part):
                        raise self.refusal("a slice of another axis")
                    static_index.append(part)
                elif part == slice(None):
                    static_index.append(part)
                    ranges[out] = r
                elif part.step in (None, 1):
                    static_index.append(slice(None))
                    ranges[out] = range_within(r, part, self.length(axis))
                elif is_number(part.step, -1) and part.start is None and part.stop is None:
                    whole, ranges[out] = (
                        reversed_range(whole, axis, r),
                        SliceRange(0, self.length(axis)),
                    )
                    static_index.append(slice(None))
                else:
                    raise self.refusal(f"a slice with step {part.step}")
                out += 1
            else:
                if r is not None:
                    if shape_of(part) != ():
                        raise self.refusal("an index array")
                    part = position_in(part, r, self.length(axis))
                elif shape_of(part) != ():
                    raise self.refusal("an index array")
                static_index.append(part)
            axis += 1
        result = whole[tuple(static_index)]
        return Window(result, ranges) if ranges else result

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
            "the bound of a slice is computed from the inputs, so the number of elements is not "
            f"known while a graph is built, but {what} requires it. Select with np.where and "
            "np.arange, which keeps the shape, or take a fixed number of elements from a position, "
            f"x[i + np.arange(n)]{at(user_line())}."
        )


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max


def is_dynamic(part: object) -> bool:
    return type(part) is slice and any(
        isinstance(b, Handle) and is_traced(b) and "size" not in b.node.params
        for b in (part.start, part.stop, part.step)
    )


def index_parts(index: object, ndim: int) -> list[Any]:
    """The parts of an index, one for each axis and each new axis."""
    parts = list(index) if type(index) is tuple else [index]
    used = sum(p is not None and p is not Ellipsis for p in parts)
    missing = [slice(None)] * (ndim - used)
    ellipsis_position = next((k for k, p in enumerate(parts) if p is Ellipsis), None)
    if ellipsis_position is None:
        return [*parts, *missing]
    return [*parts[:ellipsis_position], *missing, *parts[ellipsis_position + 1 :]]
