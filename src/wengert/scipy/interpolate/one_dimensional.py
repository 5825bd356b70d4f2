"""interp1d: one-dimensional interpolation, with all of SciPy's kinds.

linear                                  piecewise linear
nearest, nearest-up, previous, next     piecewise constant: derivative 0 w.r.t. the points
zero, slinear, quadratic, cubic, int    splines (bspline.py)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate

from wengert._engine.core.handle import is_traced, possibly, value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_tensor, spread
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import floating, holds_tensors, known_length
from .bspline import make_interp_spline
from .ppoly import append_axes, move_point_axes, piece_index, take

__all__ = ["interp1d"]

STEPS = ("nearest", "nearest-up", "previous", "next")
DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}


class interp1d:
    """One-dimensional interpolation, as ``scipy.interpolate.interp1d``.

    Parameters
    ----------
    x : array_like of shape (n,)
        In any order, unless `assume_sorted`.
    y : array_like
        Values, n along `axis`.
    kind : str or int, default "linear"
        "linear", "nearest", "nearest-up", "previous", "next", or a spline: "zero", "slinear",
        "quadratic", "cubic", or its degree.
    axis : int, default -1
    copy : bool
        No effect on tensors, which are never modified.
    bounds_error : bool, optional
        Whether a point outside of the data range is an error; by default it is, unless the function
        is extrapolated. Traced points get the fill value.
    fill_value : array_like, pair of them, or "extrapolate"
        The value outside of the range, or below and above it; NaN by default.
    assume_sorted : bool, default False

    Notes
    -----
    Differentiable with respect to `y`, `x`, the points and the fill values. At a data point the
    slope is that of the interval on its right, at the last point that of the last interval.
    Piecewise constant kinds have derivative 0 with respect to the points and `x`.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        self._theirs: Any = None
        if not holds_tensors([x, y, fill_value]):
            self._theirs = scipy.interpolate.interp1d(
                x, y, kind, axis, copy, bounds_error, fill_value, assume_sorted
            )
        x, y = floating(x), floating(y)
        if x.ndim != 1 or y.ndim == 0 or x.shape[0] != y.shape[axis]:
            raise ShapeError(
                f"interp1d: x of shape {x.shape} for values of shape {y.shape} along axis {axis}. "
                f"x must be one-dimensional, with one element for each value{at(user_line())}."
            )
        degree: Any = DEGREES.get(kind, kind) if isinstance(kind, str) else kind
        if isinstance(degree, str) and degree not in ("linear", *STEPS):
            raise ArgumentError(
                f"interp1d with kind={kind!r}: the kind must be 'linear', "
                f"{', '.join(map(repr, STEPS))}, {', '.join(map(repr, DEGREES))}, or a degree"
                f"{at(user_line())}."
            )
        self.axis = axis % y.ndim
        y = np.moveaxis(y, self.axis, 0)
        if not assume_sorted:
            order = np.argsort(value_of(x), kind="stable")
            x, y = take(x, order), take(y, order)
        self.x, self._y, self._kind = x, y, degree
        known_length(x.shape[0], "interp1d")
        self._fill_values = self._fill(fill_value, bounds_error)
        self._spline = None
        if not isinstance(degree, str):
            self._spline = make_interp_spline(as_tensor(x), y, degree)

    def _fill(self, fill_value: Any, bounds_error: bool | None) -> Any:
        """The values below and above the range; None if extrapolated."""
        if not isinstance(fill_value, str):
            self._raises = True if bounds_error is None else bool(bounds_error)
            pair = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
            return [floating(v) for v in pair]
        if fill_value != "extrapolate" or bounds_error:
            raise ArgumentError(
                f"interp1d with fill_value={fill_value!r} and bounds_error={bounds_error}: "
                f"fill_value must be a value or 'extrapolate', the latter without bounds_error"
                f"{at(user_line())}."
            )
        self._raises = False
        ends: dict[Any, Any] = {"previous": (np.nan, self._y[-1]), "next": (self._y[0], np.nan)}
        return ends.get(self._kind)

    def __call__(self, x: Any) -> Any:
        """The value at points.

        Raises
        ------
        ArgumentError
            A point is outside of the range and `bounds_error` is true.
        """
        if self._theirs is not None and not holds_tensors(x):
            return self._theirs(x)
        points = floating(x)
        rest = self._y.ndim - 1
        values = self._values(points, rest)
        if self._fill_values is not None:
            known, ends = value_of(points), value_of(self.x)
            sides = known < ends[0], known > ends[-1]
            for fill, is_outside in zip(self._fill_values, sides, strict=True):
                values = self._fill_outside(values, points, is_outside, fill, rest)
        return as_tensor(move_point_axes(values, points.ndim, self.axis))

    def _fill_outside(self, values: Any, points: Any, is_outside: Any, fill: Any, rest: int) -> Any:
        if not possibly(is_outside):
            return values
        if self._raises and not is_traced(is_outside):
            raise ArgumentError(
                f"interp1d at {value_of(points)}: a point is outside of the data range, from "
                f"{value_of(self.x)[0]} to {value_of(self.x)[-1]}. Pass bounds_error=False for NaN "
                f"there, or fill_value='extrapolate'{at(user_line())}."
            )
        return choose(append_axes(is_outside, rest), spread(fill, self._y.shape[1:]), values)

    def _values(self, points: Any, rest: int) -> Any:
        """The values, extrapolated."""
        n, kind = self.x.shape[0], self._kind
        if self._spline is not None:
            return self._spline(points)
        if kind in STEPS or n == 1:
            return take(self._y, self._step(value_of(points), value_of(self.x), n))
        index = piece_index(self.x, points)
        start, value = take(self.x, index), take(self._y, index)
        length, rise = take(self.x, index + 1) - start, take(self._y, index + 1) - value
        return value + append_axes(points - start, rest) * (rise / append_axes(length, rest))

    def _step(self, points: Any, x: Any, n: int) -> Any:
        """The index of the data point whose value is used at each point."""
        if self._kind in ("nearest", "nearest-up"):
            middles = x[1:] / 2.0 + x[:-1] / 2.0
            side: Any = "left" if self._kind == "nearest" else "right"
            return np.searchsorted(middles, points, side=side)
        if self._kind == "next":
            return np.minimum(np.searchsorted(x, points, side="left"), n - 1)
        return np.maximum(np.searchsorted(x, points, side="right") - 1, 0)
