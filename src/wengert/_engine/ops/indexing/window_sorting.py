"""Scans, sorting, quantiles and positions of the elements of windows.

Elements outside of a window get values that sort last, and that a scan has not yet reached.  The
functions are registered by NumPy's names (window_functions.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert.errors import at, user_line

from ..elementwise.selection import where
from .slice_ends import as_value, clipped, taken
from .window_functions import (
    Function,
    as_window,
    first_window,
    flat,
    from_start,
    function,
    line,
    of_axis,
)
from .window_operators import elementwise
from .windows import Window, highest, lowest

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

# ---- scans and sorting -------------------------------------------------------------------------


def _scan(name: str, neutral: float) -> Function:
    def run(a: Window, axis: int | None = None, dtype: object = None, out: None = None) -> Any:
        a, axis = line(a if dtype is None else a.astype(dtype), axis)
        return Window(lookup(name)(a.filled(neutral, of_axis(a, axis)), axis=axis), a.ranges)

    return run


def _running_extreme(largest: bool) -> Function:
    def run(a: Window, axis: int = 0) -> Any:
        a, axis = line(a, axis)
        fill = lowest(a.dtype) if largest else highest(a.dtype)
        ufunc = np.maximum if largest else np.minimum
        return Window(ufunc.accumulate(a.filled(fill, of_axis(a, axis)), axis=axis), a.ranges)

    return run


function("cummax")(_running_extreme(True))
function("cummin")(_running_extreme(False))


function("cumsum")(_scan("cumsum", 0))
function("cumprod")(_scan("cumprod", 1))


@function("diff")
def _diff(a: Window, n: int = 1, axis: int = -1) -> Any:
    a, axis = line(a, axis)
    before: list[Any] = [slice(None)] * a.ndim
    after = list(before)
    before[axis], after[axis] = slice(None, -1), slice(1, None)
    for _ in range(n):
        a = a[tuple(after)] - a[tuple(before)]
    return a


@function("ediff1d")
def _ediff1d(a: Window) -> Any:
    return _diff(flat(a))


@function("trapezoid", "trapz")
def _trapezoid(y: Window, x: Array | None = None, dx: Operand = 1.0, axis: int = -1) -> Any:
    y, axis = line(y, axis)
    before: list[Any] = [slice(None)] * y.ndim
    after = list(before)
    before[axis], after[axis] = slice(None, -1), slice(1, None)
    means = (y[tuple(after)] + y[tuple(before)]) / 2.0
    return ((means * dx) if x is None else _diff(as_window(x)) * means).sum(axis)


def _sorted_last(a: Window, axis: int) -> Any:
    """The whole array, with values outside of the window that sort last."""
    return a.filled(np.nan if a.dtype.kind in "fc" else highest(a.dtype), of_axis(a, axis))


@function("sort")
def sorted_window(
    a: Window, axis: int | None = -1, kind: object = None, *, stable: object = None
) -> Window:
    """The elements in order along an axis."""
    a, axis = line(a, axis)
    return Window(np.sort(_sorted_last(a, axis), axis=axis, kind="stable"), a.ranges)


@function("argsort")
def _argsort(
    a: Window, axis: int | None = -1, kind: object = None, *, stable: object = None
) -> Any:
    a, axis = line(a, axis)
    return Window(np.argsort(_sorted_last(a, axis), axis=axis, kind="stable"), a.ranges)


def _position_of(name: str) -> Function:
    def run(a: Window, axis: int | None = None) -> Any:
        a, axis = line(a, axis)
        if axis in a.ranges:
            RuntimeChecks.add(a.length(axis) == 0, ValueError(
                f"attempt to get {name} of an empty sequence{at(user_line())}"
            ))  # fmt: skip
        fill = lowest(a.dtype) if name == "argmax" else highest(a.dtype)
        whole = lookup(name)(a.filled(fill, of_axis(a, axis)), axis=axis)
        rest = {k - (k > axis): r for k, r in a.ranges.items() if k != axis}
        return Window(whole, rest) if rest else whole

    return run


function("argmax")(_position_of("argmax"))
function("argmin")(_position_of("argmin"))


@function("median")
def _median(a: Window, axis: int | None = None) -> Any:
    return _quantile(a, 0.5, axis)


@function("percentile")
def _percentile(a: Window, q: Operand, axis: int | None = None) -> Any:
    return _quantile(a, np.asarray(q) / 100.0, axis)


@function("quantile")
def _quantile(a: Window, q: Operand, axis: int | None = None) -> Any:
    """Quantiles by linear interpolation, NaN if an element is NaN."""
    a, axis = line(a, axis)
    ordered = np.moveaxis(sorted_window(a, axis).whole, axis, 0)
    n, last = a.shape[axis], as_value(shape_of(ordered)[0]) - 1
    q = q if isinstance(q, Handle) else np.asarray(q)
    place = q * (n - 1)
    below = clipped(np.floor(place).astype(np.int64), 0, last)
    above = clipped(below + 1, 0, lookup("maximum")(n - 1, 0))
    weight = (place - below).reshape((*shape_of(q), *(1,) * (a.ndim - 1)))
    low, high = taken(ordered, below, axis=0), taken(ordered, above, axis=0)
    value = np.where(weight < 0.5, low + (high - low) * weight, high - (high - low) * (1 - weight))
    if a.dtype.kind == "f":
        greatest = taken(ordered, lookup("maximum")(n - 1, 0), axis=0)
        value = where(np.isnan(greatest), greatest, value)
        value = where(n == 0, np.nan, value)
    shift = len(shape_of(q))
    rest = {k - (k > axis) + shift: r for k, r in a.ranges.items() if k != axis}
    return Window(value, rest) if rest else value


@function("searchsorted")
def _searchsorted(a: Window, v: Any, side: Literal["left", "right"] = "left") -> Any:
    ordered = _sorted_last(from_start(a), 0)

    def search(x: Array) -> Any:
        return np.searchsorted(ordered, x, side=side)

    found = elementwise(search, "add", v) if isinstance(v, Window) else search(v)
    return np.minimum(found, as_value(a.shape[0]))


@function("digitize")
def _digitize(x: Window, bins: Array, right: bool = False) -> Any:
    return elementwise(lambda v: np.digitize(v, bins, right=right), "add", x)


@function("interp")
def _interp(x: Window, xp: Array, fp: Array) -> Any:
    if isinstance(xp, Window) or isinstance(fp, Window):
        raise first_window((xp, fp), "interp").refusal("np.interp of such points")
    return elementwise(lambda v: np.interp(v, xp, fp), "add", x)
