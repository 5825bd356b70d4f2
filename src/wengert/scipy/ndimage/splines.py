"""Interpolating splines: coefficients, basis functions, and values between the elements.

    spline_filter1d spline_filter  the coefficients
    decaying_sum, basis            s_i = x_i + factor s_{i-1}; basis functions at a point
    sampled                        the values at any coordinates
    along_axis                     the values at coordinates of one axis
    prefiltered                    the coefficients, and how many elements were added at the borders

SciPy's recursive filter: for each pole a sum of the elements before, with weights that decrease by
a constant factor, and then one of those after; the sums beyond the borders, which continue the
array, are sums of few elements.  Along short axes it is the product with the matrix of SciPy's
filter, whose boundary is approximate there.

Coordinates are mapped into the array as SciPy does for each mode.  The derivative with respect to a
coordinate is that of the spline; with order 0 it is zero.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.signal
from numpy.lib.array_utils import normalize_axis_index

from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import along
from wengert._engine.kinds.linear_map import linear
from wengert._engine.ops import casts
from wengert.errors import DtypeError, at, user_line
from wengert.numpy import take

from ..dispatch import counterpart, known_length
from .windows import extended, operand, result, source_positions

__all__ = ["spline_filter", "spline_filter1d"]

_NEGLIGIBLE = 1e-18
_LONGEST_WITH_MATRIX = 32  # elements of axes with a matrix

# The poles of the filter of each order (M. Unser, A. Aldroubi and M. Eden, 1993).
_POLES: dict[int, tuple[float, ...]] = {
    2: (sqrt(8.0) - 3.0,),
    3: (sqrt(3.0) - 2.0,),
    4: (
        sqrt(664.0 - sqrt(438976.0)) + sqrt(304.0) - 19.0,
        sqrt(664.0 + sqrt(438976.0)) - sqrt(304.0) - 19.0,
    ),
    5: (
        sqrt(67.5 - sqrt(4436.25)) + sqrt(26.25) - 6.5,
        sqrt(67.5 + sqrt(4436.25)) - sqrt(26.25) - 6.5,
    ),
}

# The boundary of the recursive filter for each mode.
_BOUNDARIES = {
    "mirror": "mirror",
    "constant": "mirror",
    "grid-constant": "mirror",
    "wrap": "mirror",
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "nearest": "reflect",
    "grid-wrap": "wrap",
}


@functools.cache
def _matrix(n: int, order: int, mode: str) -> Any:
    """The coefficients of the unit vectors."""
    matrix = scipy.ndimage.spline_filter1d(np.eye(n), order, 0, mode=mode)
    matrix.flags.writeable = False
    return matrix


def _decaying_oracle(x: Any, *, axis: int, factor: float, reverse: bool = False) -> Any:
    distance = np.subtract.outer(np.arange(x.shape[axis]), np.arange(x.shape[axis]))
    powers = np.where(distance >= 0, factor ** np.maximum(distance, 0.0), 0.0)
    return np.moveaxis(np.moveaxis(x, axis, -1) @ (powers if reverse else powers.T), -1, axis)


@linear(name="ndimage.decaying_sum", oracle=_decaying_oracle)
def decaying_sum(x: Any, *, axis: int, factor: float, reverse: bool = False) -> Any:
    """s_i = x_i + factor s_{i-1} along an axis (s_{i+1} if `reverse`), from s = 0."""
    _refuse_integers(x)
    order = [slice(None)] * x.ndim
    order[axis] = slice(None, None, -1 if reverse else 1)
    if not x.size:
        return np.zeros_like(x)
    found = scipy.signal.lfilter([1.0], [1.0, -factor], x[tuple(order)], axis)
    return np.ascontiguousarray(found[tuple(order)], x.dtype)


@decaying_sum.transpose
def _(t: Any, x: Any, *, axis: int, factor: float, reverse: bool = False) -> Any:
    return decaying_sum(t, axis=axis, factor=factor, reverse=not reverse)


@decaying_sum.spec
def _(x: Spec, *, axis: int, factor: float, reverse: bool = False) -> Spec:
    _refuse_integers(x)
    return Spec(x.shape, x.dtype)


def _refuse_integers(x: Any) -> None:
    if x.dtype.kind not in "fc":
        raise DtypeError(f"ndimage.decaying_sum of {x.dtype}: convert it, x.astype(float).")


along(decaying_sum)


@decaying_sum.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 6)),), {"axis": 1, "factor": -0.4}
    yield (rng.normal(size=(5, 3)),), {"axis": 0, "factor": 0.3, "reverse": True}
    yield (rng.normal(size=4) + 1j * rng.normal(size=4),), {"axis": 0, "factor": 0.3}


# ---- the recursive filter -----------------------------------------------------------------------


def _first(n: int, pole: float, boundary: str) -> Any:
    """The weights of the sum over all elements before the second, beyond the border too."""
    k = np.arange(float(n))
    if boundary == "wrap":
        return pole ** ((n - k) % n) / (1.0 - pole**n)
    if boundary == "mirror":
        inside = (k > 0) & (k < n - 1)
        return (pole**k + inside * pole ** (2 * n - 2 - k)) / (1.0 - pole ** (2 * n - 2))
    beyond = pole ** (k + 1) + np.where(k > 0, pole ** (2 * n - k), 1.0)
    return beyond / (1.0 - pole ** (2 * n))


def _last(n: int, pole: float, boundary: str) -> Any:
    """The weights of the sum over the last element and those beyond the border."""
    weights = np.zeros(n)
    weights[-1] = 1.0
    if boundary == "wrap":
        weights[:-1] = pole ** np.arange(1.0, n)
        return weights / (1.0 - pole**n)
    if boundary == "mirror":
        weights[-2] = pole
        return weights / (1.0 - pole**2)
    return weights / (1.0 - pole)


def _sum_along(x: Any, weights: Any, axis: int) -> Any:
    """The weighted sum, of elements whose weights are not negligible; the axis has length one."""
    used = np.flatnonzero(np.abs(weights) > _NEGLIGIBLE)
    gaps = np.flatnonzero(np.diff(used) > 1)
    starts, ends = [used[0], *used[gaps + 1]], [*used[gaps], used[-1]]
    shape = [1] * x.ndim
    total: Any = None
    for start, end in zip(starts, ends, strict=True):
        shape[axis] = int(end - start) + 1
        part = weights[start : end + 1].reshape(shape) * _part(x, axis, int(start), int(end) + 1)
        term = np.sum(part, axis=axis, keepdims=True)
        total = term if total is None else total + term
    return total


def _part(x: Any, axis: int, start: int, stop: int) -> Any:
    index = [slice(None)] * x.ndim
    index[axis] = slice(start, stop)
    return x[tuple(index)]


def coefficients(x: Any, order: int, axis: int, mode: str) -> Any:
    """The coefficients along one axis, in double precision."""
    if order < 2 or x.shape[axis] == 1:
        return x
    n = known_length(x.shape[axis], "a spline")
    if n <= _LONGEST_WITH_MATRIX:
        product = np.tensordot(_matrix(n, order, mode), x, ((1,), (axis,)))
        return product if axis == 0 else np.moveaxis(product, 0, axis)
    boundary = _BOUNDARIES[mode]
    poles = _POLES[order]
    x = x * np.prod([(1.0 - z) ** 2 for z in poles])
    for z in poles:
        first = _sum_along(x, _first(n, z, boundary), axis)
        x = np.concatenate([first, _part(x, axis, 1, n)], axis)
        x = decaying_sum(x, axis=axis, factor=z)
        last = _sum_along(x, _last(n, z, boundary), axis)
        x = np.concatenate([_part(x, axis, 0, n - 1), last], axis)
        x = decaying_sum(x, axis=axis, factor=z, reverse=True)
    return x


def _check(order: int, mode: str) -> None:
    if order < 0 or order > 5:
        raise RuntimeError("spline order not supported")
    if mode not in _BOUNDARIES:
        raise RuntimeError(f"boundary mode not supported{at(user_line())}")


@counterpart(scipy.ndimage.spline_filter1d)
def spline_filter1d(
    input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror"
) -> Any:
    """The coefficients of splines along one axis, as ``scipy.ndimage.spline_filter1d``.

    Parameters
    ----------
    input : array or Tensor
    order : int
        0 to 5.
    axis : int
    output : dtype
    mode : str

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import spline_filter1d
    >>> wg.grad(lambda x: spline_filter1d(x)[1])(np.zeros(4)).round(4)
    array([-0.4667,  1.8667, -0.5333,  0.1333])
    """
    _check(order, mode)
    x, _ = operand(input)
    y = coefficients(x, order, normalize_axis_index(axis, x.ndim), mode)
    return result(y, np.dtype(float), output, "spline_filter1d")


@counterpart(scipy.ndimage.spline_filter)
def spline_filter(
    input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror"
) -> Any:
    """The coefficients of splines along all axes, as ``scipy.ndimage.spline_filter``.

    Parameters
    ----------
    input, order, output, mode
        As for `spline_filter1d`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import spline_filter
    >>> wg.grad(lambda x: spline_filter(x)[1, 1])(np.zeros((3, 3)))[1].round(4)
    array([-1.,  4., -1.])
    """
    _check(order, mode)
    if order < 2:
        raise RuntimeError("spline order not supported")
    x, _ = operand(input)
    for axis in range(x.ndim):
        x = coefficients(x, order, axis, mode)
    return result(x, np.dtype(float), output, "spline_filter")


def basis(u: Any, order: int) -> list[Any]:
    """The values of the basis functions that are not zero, at distance `u` from a knot.

    By the recurrence of C. de Boor (1972) for knots at distance 1.
    """
    values: list[Any] = [1.0]
    for k in range(1, order + 1):
        carried: Any = 0.0
        following = []
        for r, value in enumerate(values):
            part = value * (1.0 / k)
            following.append(carried + (r + 1 - u) * part)
            carried = (u + (k - r - 1)) * part
        values = [*following, carried]
    return values


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
