"""Values of an array between its elements, by splines.

    sampled     the values at any coordinates
    along_axis  the values at coordinates of one axis
    prefiltered the coefficients, and how many elements were added at the borders

Coordinates are mapped into the array as SciPy does for each mode.  The derivative with respect to a
coordinate is that of the spline; with order 0 it is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.ops import casts
from wengert.errors import at, user_line
from wengert.numpy import take

from .boundaries import extended, source_positions
from .splines import basis, coefficients

_PADDED = 12  # elements that SciPy adds at each border
# How indices beyond the borders are mapped.
_INDEX_MODES = {
    "constant": "mirror",
    "wrap": "mirror",
    "mirror": "mirror",
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "nearest": "nearest",
    "grid-wrap": "wrap",
    "grid-constant": "nearest",
}


def checked(order: int, mode: str) -> None:
    """Raise SciPy's errors for an order or a mode that does not exist."""
    if order < 0 or order > 5:
        raise RuntimeError("spline order not supported")
    if mode not in _INDEX_MODES:
        raise RuntimeError(f"boundary mode not supported{at(user_line())}")


def prefiltered(
    x: Any, order: int, mode: str, cval: Any, prefilter: bool, axes: Sequence[int] | None = None
) -> tuple[Any, int]:
    """The coefficients of an array, and how many elements were added at each border."""
    axes = range(x.ndim) if axes is None else axes
    if not prefilter or order < 2:
        return x, 0
    added = 0
    if mode in ("nearest", "grid-constant"):
        added = _PADDED
        for axis in axes:
            how = "nearest" if mode == "nearest" else "constant"
            x = extended(x, axis, added, added, how, cval)
    for axis in axes:
        x = coefficients(x, order, axis, mode)
    return x, added


def _mapped(cc: Any, n: int, mode: str) -> Any:
    """Coordinates mapped to [0, n - 1] or, for 'grid-wrap' and 'reflect', half a step around it."""
    if mode in ("constant", "grid-constant", "nearest"):
        return cc
    if n == 1:
        return 0.0 * cc
    if mode in ("wrap", "grid-wrap"):
        period = n - 1 if mode == "wrap" else n
        below = cc + period * (np.floor((-cc if mode == "wrap" else -1.0 - cc) / period) + 1.0)
        above = cc - period * np.floor(cc / period)
        return np.where(cc < 0, below, np.where(cc > n - 1, above, cc))
    period = 2 * n - 2 if mode == "mirror" else 2 * n
    ends = 0.0 if mode == "mirror" else 1.0
    above = cc - period * np.floor(cc / period)
    above = np.where(above >= n, period - above - ends, above)
    below = cc + period * np.floor(-cc / period)
    if mode == "mirror":
        below = np.where(below <= 1 - n, below + period, -below)
    else:
        near = np.where(below > -1e-15, 1e-15, -below) - 1.0
        below = np.where(below < -n, below + period, near)
    return np.where(cc < 0, below, np.where(cc > n - 1, above, cc))


class _Taps:
    """For coordinates along one axis: which elements are read, their weights, and the outside.

    Attributes
    ----------
    positions : list
        Of each element, inside the array.
    weights : list
    outside : boolean array or None
        Where the result is `cval` ('constant').
    beyond : list
        For each element, where it is beyond the borders ('grid-constant'); None elsewhere.
    """

    def __init__(self, cc: Any, n: int, order: int, mode: str) -> None:
        mode = "reflect" if mode == "grid-mirror" else mode
        self.outside = None
        if mode == "constant":
            self.outside = np.logical_or(cc < 0, cc > n - 1)
            cc = np.where(self.outside, 0.0, cc)
        cc = _mapped(cc, n, mode)
        shifted = cc if order % 2 else cc + 0.5
        whole = np.floor(lookup("stop_gradient")(shifted))
        start = casts.astype(whole, np.dtype(np.int64)) - order // 2
        self.weights = [1.0] if order == 0 else basis(shifted - whole, order)
        self.positions, self.beyond = [], []
        for k in range(order + 1):
            position = start + k
            is_beyond = None
            if mode == "grid-constant":
                is_beyond = np.logical_or(position < 0, position >= n)
            self.beyond.append(is_beyond)
            self.positions.append(source_positions(position, n, _INDEX_MODES[mode]))


def sampled(
    x: Any, coordinates: Sequence[Any], order: int, mode: str, cval: Any, added: int
) -> Any:
    """The values of a spline at coordinates.

    Parameters
    ----------
    x : array or Tensor
        The coefficients; axes after those of the coordinates are axes of the result.
    coordinates : sequence
        An array for each of the first axes, all of the same shape.
    order, mode, cval
        As in SciPy.
    added : int
        The number of elements that were added at each border.
    """
    count = len(coordinates)
    lengths = [int(n) for n in x.shape[:count]]
    rest = x.shape[count:]
    taps = [
        _Taps(c + float(added) if added else c, n, order, mode)
        for c, n in zip(coordinates, lengths, strict=True)
    ]
    flat = x.reshape((int(np.prod(lengths)), *rest))
    shape = np.shape(coordinates[0]) if not hasattr(coordinates[0], "shape") else None
    shape = coordinates[0].shape if shape is None else shape

    def spread(v: Any) -> Any:
        return v if not rest or not hasattr(v, "shape") else v.reshape((*shape, *[1] * len(rest)))

    def total(axis: int, position: Any, beyond: Any) -> Any:
        if axis == count:
            value = take(flat, position, axis=0)
            return value if beyond is None else np.where(spread(beyond), cval, value)
        tap = taps[axis]
        result: Any = None
        for p, w, b in zip(tap.positions, tap.weights, tap.beyond, strict=True):
            here = p if position is None else position * lengths[axis] + p
            either: Any = b if beyond is None or b is None else np.logical_or(beyond, b)
            inner = total(axis + 1, here, either)
            term = inner if isinstance(w, float) else spread(w) * inner
            result = term if result is None else result + term
        return result

    value = total(0, None, None)
    outside = [t.outside for t in taps if t.outside is not None]
    if not outside:
        return value
    mask = outside[0]
    for other in outside[1:]:
        mask = np.logical_or(mask, other)
    return np.where(spread(mask), cval, value)


def along_axis(
    x: Any, axis: int, cc: Any, order: int, mode: str, cval: Any, added: int
) -> tuple[Any, Any]:
    """The values at coordinates of one axis, and where they are outside ('constant'), or None."""
    taps = _Taps(cc + float(added) if added else cc, int(x.shape[axis]), order, mode)
    shape = [1] * x.ndim
    shape[axis] = -1
    result = None
    for p, w, b in zip(taps.positions, taps.weights, taps.beyond, strict=True):
        value = take(x, p, axis=axis)
        if b is not None:
            value = np.where(b.reshape(shape), cval, value)
        term = value if isinstance(w, float) else w.reshape(shape) * value
        result = term if result is None else result + term
    outside = taps.outside
    return result, None if outside is None else outside.reshape(shape)
