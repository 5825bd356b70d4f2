"""Cubic interpolation: Hermite, splines, and the shape-preserving PCHIP and Akima.

    CubicHermiteSpline    given derivatives
    CubicSpline           continuous second derivative: a tridiagonal system
    PchipInterpolator     preserves monotonicity (harmonic means of chord slopes)
    Akima1DInterpolator   derivatives from the nearest chords only, in two versions

Each computes the derivatives at the data points, and from them a piecewise polynomial (ppoly.py).
They are functions of the values and the points, and differentiable with respect to both;
docs/conventions.md states the derivatives of the last two where they branch (local extrema, equal
differences).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import floating, holds_tensors, known_length
from .ppoly import Extrapolate, PPoly, append_axes, banded, check_data, to_double

__all__ = ["Akima1DInterpolator", "CubicHermiteSpline", "CubicSpline", "PchipInterpolator"]


def _require_real(name: str, y: Any) -> Any:
    if y.dtype.kind == "c":
        raise ArgumentError(
            f"{name} of complex values: the values must be real. Interpolate y.real and y.imag"
            f"{at(user_line())}."
        )
    return y


class _Cubic(PPoly):
    """Base class: a piecewise cubic from the slopes at the data points."""

    def _set_from_slopes(self, x: Any, y: Any, slopes: Any, axis: int, extrapolate: Any) -> None:
        self._theirs = None
        h = append_axes(x[1:] - x[:-1], y.ndim - 1)
        low, high = slopes[:-1], slopes[1:]
        chord = (y[1:] - y[:-1]) / h
        bend = (low + high - 2.0 * chord) / h
        self.c = np.stack([bend / h, (chord - low) / h - bend, low + 0.0 * chord, y[:-1]])
        self.x, self.axis, self.extrapolate = x, axis % y.ndim, extrapolate


class CubicHermiteSpline(_Cubic):
    """Cubic Hermite interpolation, as ``scipy.interpolate.CubicHermiteSpline``.

    Parameters
    ----------
    x : array_like of shape (n,)
        Data points, strictly increasing.
    y, dydx : array_like
        Values and derivatives, of length n along `axis`.
    axis : int, default 0
    extrapolate : bool or "periodic", optional
        See `PPoly`.
    """

    def __init__(
        self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Extrapolate = None
    ) -> None:
        if not holds_tensors([x, y, dydx]):
            self._adopt(scipy.interpolate.CubicHermiteSpline(x, y, dydx, axis, extrapolate))
            return
        dydx = to_double(dydx)
        x, y = check_data("CubicHermiteSpline", x, y, axis)
        slopes = np.moveaxis(dydx, axis, 0)
        if slopes.shape != y.shape:
            raise ShapeError(
                f"CubicHermiteSpline: dydx of shape {slopes.shape} for values of shape {y.shape}. "
                f"The shapes must be equal{at(user_line())}."
            )
        self._set_from_slopes(x, y, slopes, axis, True if extrapolate is None else extrapolate)


# ---- splines -----------------------------------------------------------------------------------


class CubicSpline(_Cubic):
    """Cubic spline interpolation, as ``scipy.interpolate.CubicSpline``.

    Parameters
    ----------
    x : array_like of shape (n,)
        Data points, strictly increasing; n >= 2.
    y : array_like
        Values, of length n along `axis`; real or complex.
    axis : int, default 0
    bc_type : str or pair, default "not-a-knot"
        At the ends: "not-a-knot", "natural", "clamped", "periodic", or a pair of these, or of
        (order, value) for the first or second derivative there; the value may be a tensor.
    extrapolate : bool or "periodic", optional
        See `PPoly`.

    Raises
    ------
    ArgumentError, ShapeError
        Unknown condition; `x` is not strictly increasing; the end values of a periodic spline
        differ.

    Notes
    -----
    Differentiable with respect to `y`, `x`, boundary values and the points of evaluation; the last
    value of a periodic spline is a separate variable. *Cost.* O(n), and O(n) for a derivative.

    C. de Boor, "A Practical Guide to Splines", 1978, chapter IV.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import CubicSpline
    >>> x = np.linspace(0.0, 3.0, 7)
    >>> slope = wg.grad(lambda t: CubicSpline(x, np.sin(x))(t))(1.1)
    >>> bool(abs(slope - np.cos(1.1)) < 1e-2)
    True
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        axis: int = 0,
        bc_type: Any = "not-a-knot",
        extrapolate: Extrapolate = None,
    ) -> None:
        if not holds_tensors([x, y, bc_type]):
            self._adopt(scipy.interpolate.CubicSpline(x, y, axis, bc_type, extrapolate))
            return
        x, y = check_data("CubicSpline", x, y, axis)
        known_length(x.shape[0], "CubicSpline")
        ends = _boundary_conditions(bc_type, y)
        if extrapolate is None:
            extrapolate = "periodic" if ends[0] == "periodic" else True
        flat = y.reshape((y.shape[0], -1)) if y.size else y
        slopes = _slopes(x, flat, ends).reshape(y.shape) if y.size else y
        self._set_from_slopes(x, y, slopes, axis, extrapolate)


def _boundary_conditions(bc_type: Any, y: Any) -> list[Any]:
    """For each end a name, or the order and the flattened values of a derivative."""
    kinds = "'not-a-knot', 'natural', 'clamped', 'periodic', or a pair (order, value)"
    pair = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    if len(pair) != 2 or ("periodic" in [b for b in pair if isinstance(b, str)]) != (
        bc_type == "periodic" if isinstance(bc_type, str) else False
    ):
        raise ArgumentError(
            f"CubicSpline with bc_type={bc_type!r}: it must be one of {kinds}, or two of them "
            f"without 'periodic'{at(user_line())}."
        )
    known = not is_traced(y)
    if (
        bc_type == "periodic"
        and known
        and not np.allclose(value_of(y)[0], value_of(y)[-1], rtol=1e-15, atol=1e-15)
    ):
        raise ArgumentError(
            "CubicSpline with bc_type='periodic': the first and the last value differ. They must "
            f"be equal{at(user_line())}."
        )
    zero = np.zeros(1)
    named = {"natural": (2, zero), "clamped": (1, zero)}
    conditions: list[Any] = []
    for end in pair:
        if isinstance(end, str) and end in ("not-a-knot", "periodic", *named):
            conditions.append(named.get(end, end))
            continue
        if isinstance(end, str) or len(end) != 2 or end[0] not in (1, 2):
            raise ArgumentError(
                f"CubicSpline with bc_type={bc_type!r}: a condition must be one of {kinds}, of "
                f"order 1 or 2{at(user_line())}."
            )
        value = floating(end[1])
        if value.shape != y.shape[1:]:
            raise ShapeError(
                f"CubicSpline: a derivative of shape {value.shape} at an end, for values of shape "
                f"{y.shape[1:]} at each data point. The shapes must be equal{at(user_line())}."
            )
        conditions.append((end[0], value.reshape((-1,))))
    return conditions


def _slopes(x: Any, y: Any, ends: list[Any]) -> Any:
    """The slopes for which second derivatives are continuous, for the columns of y."""
    h = x[1:] - x[:-1]
    step = h[:, None]
    chord = (y[1:] - y[:-1]) / step
    n = y.shape[0]
    if n == 2:
        ends = [(1, chord[0]) if isinstance(end, str) else end for end in ends]
    if ends[0] == "periodic":
        return _periodic_slopes(h, step, chord, n)
    if n == 3 and ends == ["not-a-knot", "not-a-knot"]:
        return _parabola(step, chord)
    inner = 3.0 * (step[1:] * chord[:-1] + step[:-1] * chord[1:])
    first = _end_row(ends[0], h[:2], chord[:2], -1.0)
    last = _end_row(ends[1], h[::-1][:2], chord[::-1][:2], 1.0)
    one = np.zeros(1)
    upper = np.concatenate([one, first[1], h[:-1]])
    diagonal = np.concatenate([first[0], 2.0 * (h[:-1] + h[1:]), last[0]])
    lower = np.concatenate([h[1:], last[1], one])
    right = np.concatenate([first[2], inner, last[2]])
    return banded(np.stack([upper, diagonal, lower]), right, lower=1, upper=1)


def _end_row(end: Any, h: Any, chord: Any, sign: float) -> tuple[Any, Any, Any]:
    """The equation at an end: coefficients of the first two slopes, and the right-hand side.

    `h` and `chord` are in order from the end; `sign` is the direction out of the interval.
    """
    step = h[:1]
    if end == "not-a-knot":
        total = h[:1] + h[1:]
        right = (step + 2.0 * total) * h[1:] * chord[0] + step**2 * chord[1]
        return h[1:], total, (right / total)[None]
    order, value = end
    if order == 1:
        return np.ones(1), np.zeros(1), (value + 0.0 * chord[0])[None]
    right = 0.5 * sign * value * step**2 + 3.0 * (chord[0] * step)
    return 2.0 * step, step, right[None]


def _parabola(step: Any, chord: Any) -> Any:
    """The slopes of the parabola through three points."""
    curvature = (chord[1] - chord[0]) / (step[0] + step[1])
    middle = chord[0] + curvature * step[0]
    return np.stack([chord[0] - curvature * step[0], middle, chord[1] + curvature * step[1]])


def _periodic_slopes(h: Any, step: Any, chord: Any, n: int) -> Any:
    """The slopes of a periodic spline, from a cyclic tridiagonal system.

    The last unknown is eliminated, which leaves a tridiagonal system with two right-hand sides.
    """
    if n == 3:
        slope = np.sum(chord / step, axis=0) / np.sum(1.0 / step, axis=0)
        return np.stack([slope, slope, slope])
    before, after = (
        np.concatenate([step[-1:], step[:-1]]),
        step,
    )  # around all data points but the last
    earlier = np.concatenate([chord[-1:], chord[:-1]])
    right = 3.0 * (after * earlier + before * chord)
    diagonal = 2.0 * (before + after)[:, 0]
    # Row i: after_i s_{i-1} + diagonal_i s_i + before_i s_{i+1}, indices modulo n - 1.
    m = n - 2  # the number of other unknowns
    below, above = after[:, 0], before[:, 0]
    one = np.zeros(1)
    ab = np.stack(
        [
            np.concatenate([one, above[: m - 1]]),
            diagonal[:m],
            np.concatenate([below[1:m], one]),
        ]
    )
    of_last = np.concatenate([-below[:1], np.zeros(m - 2), -above[m - 1 : m]])
    if m == 1:
        of_last = -(below[:1] + above[:1])
    solutions = banded(ab, np.concatenate([right[:m], of_last[:, None]], axis=1), lower=1, upper=1)
    particular, homogeneous = solutions[:, :-1], solutions[:, -1:]
    last = right[m] - above[m] * particular[0] - below[m] * particular[-1]
    last = last / (diagonal[m] + above[m] * homogeneous[0] + below[m] * homogeneous[-1])
    slopes = particular + homogeneous * last
    return np.concatenate([slopes, last[None], slopes[:1]])


# ---- shape-preserving slopes -------------------------------------------------------------------


class PchipInterpolator(_Cubic):
    """Monotone cubic interpolation (PCHIP), as ``scipy.interpolate.PchipInterpolator``.

    Parameters
    ----------
    x : array_like of shape (n,)
        Data points, strictly increasing.
    y : array_like
        Real values, of length n along `axis`.
    axis : int, default 0
    extrapolate : bool or "periodic", optional

    Notes
    -----
    Where the slopes of neighboring chords change sign or are 0, the slope and its derivative are 0.
    F. N. Fritsch and J. Butland, SIAM J. Sci. Stat. Comput. 5 (1984), 300-304.
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Extrapolate = None) -> None:
        if not holds_tensors([x, y]):
            self._adopt(scipy.interpolate.PchipInterpolator(x, y, axis, extrapolate))
            return
        x, y = check_data(
            "PchipInterpolator", x, _require_real("PchipInterpolator", floating(y)), axis
        )
        slopes = _pchip_slopes(append_axes(x[1:] - x[:-1], y.ndim - 1), y)
        self._set_from_slopes(x, y, slopes, axis, True if extrapolate is None else extrapolate)


def _pchip_slopes(h: Any, y: Any) -> Any:
    chord = (y[1:] - y[:-1]) / h
    if known_length(y.shape[0], "PchipInterpolator") == 2:
        return np.concatenate([chord, chord])
    sign = np.sign(value_of(chord))
    is_extremum = (sign[1:] != sign[:-1]) | (sign[1:] == 0)
    left, right = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    safe = [choose(is_extremum, 1.0, part) for part in (chord[:-1], chord[1:])]
    mean = (left / safe[0] + right / safe[1]) / (left + right)
    inner = choose(is_extremum, 0.0, 1.0 / choose(is_extremum, 1.0, mean))
    ends = [_pchip_end_slope(h[a], h[b], chord[a], chord[b]) for a, b in ((0, 1), (-1, -2))]
    return np.concatenate([ends[0][None], inner, ends[1][None]])


def _pchip_end_slope(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The slope at an end: that of the parabola, if it preserves the shape."""
    slope = ((2.0 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    d, first, second = value_of(slope), value_of(m0), value_of(m1)
    wrong_sign = np.sign(d) != np.sign(first)
    steep = (np.sign(first) != np.sign(second)) & (np.abs(d) > 3.0 * np.abs(first))
    return choose(wrong_sign, 0.0, choose(steep, 3.0 * m0, slope))


class Akima1DInterpolator(_Cubic):
    """Akima interpolation, as ``scipy.interpolate.Akima1DInterpolator``.

    Parameters
    ----------
    x : array_like of shape (n,)
        Data points, strictly increasing.
    y : array_like
        Real values, of length n along `axis`.
    axis : int, default 0
    method : {"akima", "makima"}
    extrapolate : bool or "periodic", optional
        By default False: NaN outside of the data range.

    Notes
    -----
    Where both chords on the left are equal, and both on the right, the slope is the mean of left
    and right. Kinks at equal chords have derivative 0 (docs/conventions.md). H. Akima, J. ACM 17
    (1970), 589-602.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        axis: int = 0,
        *,
        method: Any = "akima",
        extrapolate: bool | None = None,
    ) -> None:
        if not holds_tensors([x, y]):
            theirs = scipy.interpolate.Akima1DInterpolator(
                x, y, axis, method=method, extrapolate=extrapolate
            )
            self._adopt(theirs)
            return
        if method not in ("akima", "makima"):
            raise ArgumentError(
                f"Akima1DInterpolator with method={method!r}: the method must be 'akima' or "
                f"'makima'{at(user_line())}."
            )
        name = "Akima1DInterpolator"
        x, y = check_data(name, x, _require_real(name, floating(y)), axis)
        h = append_axes(x[1:] - x[:-1], y.ndim - 1)
        chord = (y[1:] - y[:-1]) / h
        if known_length(y.shape[0], name) == 2:
            slopes = np.concatenate([chord, chord])
        else:
            slopes = _akima_slopes(chord, method == "makima")
        self._set_from_slopes(x, y, slopes, axis, False if extrapolate is None else extrapolate)


_NEGLIGIBLE = 1e-9  # weights below this fraction of the largest are treated as 0, as in SciPy


def _akima_slopes(chord: Any, modified: bool) -> Any:
    """Akima's slopes, from chord slopes with two more extrapolated on each side by a parabola."""
    before = 2.0 * chord[0] - chord[1]
    after = 2.0 * chord[-1] - chord[-2]
    ends = [2.0 * before - chord[0], before], [after, 2.0 * after - chord[-1]]
    left, right = (np.stack(pair) for pair in ends)
    m = np.concatenate([left, chord, right])
    change = np.abs(m[1:] - m[:-1])
    if modified:
        change = change + 0.5 * np.abs(m[1:] + m[:-1])
    far, near = change[2:], change[:-2]
    total = far + near
    size = value_of(total)
    is_negligible = ~(size > _NEGLIGIBLE * np.max(size, initial=-np.inf))
    weight = near / choose(is_negligible, 1.0, total)
    return choose(is_negligible, 0.5 * (m[3:] + m[:-3]), m[1:-2] + weight * (m[2:-1] - m[1:-2]))
