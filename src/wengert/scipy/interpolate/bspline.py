"""B-splines: BSpline and make_interp_spline.

A value is computed by de Boor's recurrence from k + 1 coefficients and 2 k knots for each point.
For a given knot interval this is arithmetic, differentiable with respect to coefficients, knots and
points.  The recurrence divides by the lengths of intervals that contain the knot interval, so knots
may be repeated.

C. de Boor, "A Practical Guide to Splines", 1978, chapters X and XIII.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.interpolate

from wengert._engine.core.handle import is_traced, possibly, value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_tensor
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import floating, holds_tensors, known_length, zero_if_zero
from .ppoly import (
    append_axes,
    banded,
    check_data,
    move_point_axes,
    outside,
    take,
    to_double,
    wrap_periodic,
)

__all__ = ["BSpline", "make_interp_spline"]


def de_boor(d: list[Any], t: Any, interval: Any, x: Any, k: int, order: int) -> Any:
    """The value of a spline, or its derivative of a given order, by de Boor's recurrence.

    Parameters
    ----------
    d : list of k + 1 arrays
        The coefficients that apply at each point, or unit vectors for the values of the B-splines.
        They may have axes after those of `x`.
    t : array or tensor
        The knots.
    interval : array of int
        The knot interval of each point: ``t[interval] <= x < t[interval + 1]``.
    x, k, order
        The points, the degree, the order of the derivative.
    """
    rest = max(len(row.shape) for row in d) - x.ndim
    knots = [append_axes(take(t, interval - k + 1 + j), rest) for j in range(2 * k)]
    x, d = append_axes(x, rest), list(d)
    for r in range(1, k + 1):
        for j in range(k, r - 1, -1):
            left, right = knots[j - 1], knots[j + k - r]
            if r <= order:
                d[j] = _quotient((k - r + 1.0) * (d[j] - d[j - 1]), right - left)
            else:
                d[j] = d[j - 1] + _quotient(x - left, right - left) * (d[j] - d[j - 1])
    undefined = np.isnan(value_of(x))
    total = d[k] if order <= k else 0.0 * d[k]
    if order >= k and possibly(undefined):  # a constant, but NaN at NaN
        total = choose(undefined, np.nan, total)
    return total


def _quotient(x: Any, divisor: Any) -> Any:
    """A quotient that is 0 where the divisor, the length of an interval, is 0."""
    return zero_if_zero(x, divisor) if possibly(value_of(divisor) == 0) else x / divisor


def knot_intervals(t: Any, k: int, x: Any) -> Any:
    """The index of the knot interval of each point."""
    index = np.searchsorted(value_of(t), value_of(x), side="right") - 1
    return np.minimum(np.maximum(index, k), t.shape[0] - k - 2)


class BSpline:
    """A spline in terms of B-splines, as ``scipy.interpolate.BSpline``.

    Parameters
    ----------
    t : array_like of shape (n + k + 1,)
        The knots, nondecreasing.
    c : array_like
        The coefficients, at least n along `axis`.
    k : int
        The degree.
    extrapolate : bool or "periodic", default True
        Whether to extrapolate with the first and last piece outside of the base interval
        ``t[k] .. t[n]``, to return NaN there, or to continue periodically.
    axis : int, default 0

    Attributes
    ----------
    t, c, k, extrapolate, axis
        The axis of the coefficients is the first of `c`, as in SciPy.

    Notes
    -----
    Differentiable with respect to `c`, the knots `t` and the points of evaluation. At a knot the
    derivatives are those of the piece on its right.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import BSpline
    >>> bump = BSpline(np.arange(6.0), np.array([0.0, 1.0, 0.0]), 2)
    >>> float(bump(2.5)), float(wg.grad(bump)(2.5)), float(wg.grad(bump)(2.25))
    (0.75, 0.0, 0.5)
    """

    def __init__(
        self, t: Any, c: Any, k: int, extrapolate: bool | str = True, axis: int = 0
    ) -> None:
        self._theirs: Any = None
        k = operator.index(k)
        if not holds_tensors([t, c]):
            self._adopt(scipy.interpolate.BSpline(t, c, k, extrapolate, axis))
            return
        t, c = to_double(t), to_double(c)
        if not -c.ndim <= axis < c.ndim:
            raise np.exceptions.AxisError(axis, c.ndim)
        self.axis = axis % c.ndim
        c = np.moveaxis(c, self.axis, 0) if self.axis else c
        n = known_length(t.shape[0], "BSpline") - k - 1 if t.ndim == 1 else 0
        if k < 0 or n < k + 1 or c.shape[0] < n:
            raise ShapeError(
                f"BSpline of degree {k} with knots of shape {t.shape} and {c.shape[0]} "
                "coefficients: give n + k + 1 knots for n coefficients, with n > k >= 0"
                f"{at(user_line())}."
            )
        if not is_traced(t) and not np.all(np.diff(value_of(t)) >= 0):
            raise ArgumentError(f"BSpline: the knots are not sorted. Sort them{at(user_line())}.")
        self.t, self.c, self.k = t, c, k
        self.extrapolate = extrapolate if extrapolate == "periodic" else bool(extrapolate)

    def _adopt(self, theirs: Any) -> None:
        """Take the attributes of SciPy's spline of plain arrays."""
        self._theirs = theirs
        self.t, self.c, self.k = theirs.t, theirs.c, theirs.k
        self.extrapolate, self.axis = theirs.extrapolate, theirs.axis

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The value, or the derivative of order `nu`, at points.

        Parameters
        ----------
        x : array_like
        nu : int, default 0
        extrapolate : bool or "periodic", optional
            Overrides the setting of the spline.
        """
        if self._theirs is not None and not holds_tensors(x):
            return self._theirs(x, nu, extrapolate)
        nu, k = operator.index(nu), self.k
        if nu < 0:
            raise ArgumentError(
                f"BSpline with nu={nu}: the order of the derivative must not be negative"
                f"{at(user_line())}."
            )
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        points = to_double(x)
        n = self.t.shape[0] - k - 1
        base = self.t[k : n + 1]
        if extrapolate == "periodic":
            points = wrap_periodic(base, points)
        interval = knot_intervals(self.t, k, points)
        rest = self.c.ndim - 1
        rows = [take(self.c, interval - k + j) for j in range(k + 1)]
        values = de_boor(rows, self.t, interval, points, k, nu)
        if not extrapolate:
            is_outside = outside(base, points)
            if possibly(is_outside):
                values = choose(append_axes(is_outside, rest), np.nan, values)
        return as_tensor(move_point_axes(values, points.ndim, self.axis))

    def derivative(self, nu: int = 1) -> BSpline:
        """The derivative of order `nu`, a spline of lower degree."""
        if nu < 0:
            return self.antiderivative(-nu)
        if nu > self.k:
            raise ArgumentError(
                f"derivative({nu}) of a spline of degree {self.k}: the order must not exceed the "
                f"degree. Evaluate the spline with nu={nu}{at(user_line())}."
            )
        t, c, k = self.t, self.c, self.k
        for _ in range(nu):
            n = t.shape[0] - k - 1
            lengths = append_axes(t[k + 1 : n + k] - t[1:n], c.ndim - 1)
            c = zero_if_zero(k * (c[1:n] - c[: n - 1]), lengths)
            t, k = t[1:-1], k - 1
        return self._like_self(t, c, k)

    def antiderivative(self, nu: int = 1) -> BSpline:
        """The integral from the first knot, `nu` times, a spline of higher degree."""
        if nu < 0:
            return self.derivative(-nu)
        t, c, k = self.t, self.c, self.k
        for _ in range(nu):
            n = t.shape[0] - k - 1
            lengths = append_axes(t[k + 1 :] - t[:n], c.ndim - 1)
            sums = np.cumsum(c[:n] * lengths, axis=0) / (k + 1)
            c = np.concatenate([0.0 * sums[:1], sums])
            t, k = np.concatenate([t[:1], t, t[-1:]]), k + 1
        spline = self._like_self(t, c, k)
        if self.extrapolate == "periodic":
            spline.extrapolate = False  # an integral is not periodic
        return spline

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from `a` to `b`, of the extrapolated spline, or of 0 if it is not."""
        if self._theirs is not None and not holds_tensors([a, b]):
            return self._theirs.integrate(a, b, extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        integral, n = self.antiderivative(), self.t.shape[0] - self.k - 1
        first, last = self.t[self.k], self.t[n]
        a, b = as_tensor(a), as_tensor(b)
        if extrapolate == "periodic":
            period = last - first
            periods = [value_of(np.floor((v - first) / period)) for v in (a, b)]
            low, high = (
                integral(v - m * period, 0, True) for v, m in zip((a, b), periods, strict=True)
            )
            period_integral = integral(last, 0, True) - integral(first, 0, True)
            return high - low + (periods[1] - periods[0]) * period_integral
        if not extrapolate:
            a, b = np.clip(a, first, last), np.clip(b, first, last)
        return integral(b, 0, True) - integral(a, 0, True)

    def _like_self(self, t: Any, c: Any, k: int) -> BSpline:
        return _spline(t, c, k, self.extrapolate, self.axis)

    def __repr__(self) -> str:
        return f"<BSpline of degree {self.k}, {self.c.shape[0]} coefficients>"


# ---- interpolation -----------------------------------------------------------------------------


def make_interp_spline(
    x: Any,
    y: Any,
    k: int = 3,
    t: Any = None,
    bc_type: Any = None,
    axis: int = 0,
    check_finite: bool = True,
) -> BSpline:
    """The interpolating spline, as ``scipy.interpolate.make_interp_spline``.

    Parameters
    ----------
    x : array_like of shape (n,)
        Data points, strictly increasing.
    y : array_like
        Values, of length n along `axis`.
    k : int, default 3
        The degree.
    t : array_like, optional
        The knots; by default they are functions of `x`, as in SciPy.
    bc_type : str or pair, optional
        "not-a-knot", "natural", "clamped", "periodic", or for each end None or a list of pairs
        (order, value) of derivatives.
    axis : int, default 0
    check_finite : bool
        Ignored; known values are always checked.

    Returns
    -------
    BSpline

    Notes
    -----
    Differentiable with respect to `y`, `x`, `t` and boundary values. *Cost.* O(n k^2) for a banded
    system and for its derivative; O(n^3) for a periodic spline.
    """
    if not holds_tensors([x, y, t, bc_type]):
        spline = BSpline.__new__(BSpline)
        spline._adopt(scipy.interpolate.make_interp_spline(x, y, k, t, bc_type, axis, check_finite))
        return spline
    k = operator.index(k)
    x, y = check_data("make_interp_spline", x, y, axis)
    axis = axis % y.ndim
    n = known_length(x.shape[0], "make_interp_spline")
    periodic = isinstance(bc_type, str) and bc_type == "periodic"
    left, right = _boundary_conditions(bc_type, y)
    if k < 0 or (k < 2 and (left or right) and t is None) or (periodic and t is not None):
        raise ArgumentError(
            f"make_interp_spline of degree {k} with bc_type={bc_type!r}"
            f"{'' if t is None else ' and knots'}: derivatives at the ends require k >= 2, and a "
            f"periodic spline does not accept knots{at(user_line())}."
        )
    if k < 2 and t is None:
        return _spline(np.concatenate([*[x[:1]] * k, x, x[-1:]]), y + 0.0, k, True, axis)
    flat = y.reshape((n, -1)) if y.size else y
    if periodic:
        t = _periodic_knots(x, k)
        c = _solve_periodic(x, flat, t, k).reshape((n + k - 1, *y.shape[1:])) if y.size else y
        return _spline(t, c, k, "periodic", axis)
    t = _default_knots(x, k, bool(left or right)) if t is None else to_double(t)
    count = t.shape[0] - k - 1
    if count - n != len(left) + len(right) or t.ndim != 1:
        raise ShapeError(
            f"make_interp_spline: {count} coefficients for knots of shape {t.shape} and degree "
            f"{k}, but {n} values and {len(left)} + {len(right)} derivatives at the ends. Their "
            f"numbers must be equal{at(user_line())}."
        )
    if not y.size:
        return _spline(t, np.zeros((count, *y.shape[1:])), k, True, axis)
    c = _solve_coefficients(x, flat, t, k, left, right)
    return _spline(t, c.reshape((count, *y.shape[1:])), k, True, axis)


def _spline(t: Any, c: Any, k: int, extrapolate: Any, axis: int) -> BSpline:
    """A BSpline from coefficients whose axis is the first."""
    return BSpline(t, c if axis == 0 else np.moveaxis(c, 0, axis), k, extrapolate, axis)


def _boundary_conditions(bc_type: Any, y: Any) -> tuple[list[Any], list[Any]]:
    """For each end a list of orders and flattened values of derivatives."""
    if bc_type is None or bc_type in ("not-a-knot", "periodic"):
        return [], []
    pair = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    named = {"clamped": [(1, np.zeros(1))], "natural": [(2, np.zeros(1))]}
    conditions = []
    for end in pair:
        if isinstance(end, str) and end not in named:
            raise ArgumentError(
                f"make_interp_spline with bc_type={bc_type!r}: a condition must be 'clamped', "
                f"'natural', None, or a list of (order, value){at(user_line())}."
            )
        given = named[end] if isinstance(end, str) else [] if end is None else end
        conditions.append(
            [(operator.index(order), floating(v).reshape((-1,))) for order, v in given]
        )
    return conditions[0], conditions[1]


def _default_knots(x: Any, k: int, ends_given: bool) -> Any:
    """The default knots: data points (or midpoints, for even k), with the ends repeated."""
    first, last = [x[:1]] * k, [x[-1:]] * k
    if ends_given:
        return np.concatenate([*first, x, *last])
    inner = x if k % 2 else (x[1:] + x[:-1]) / 2.0
    skip = (k + 1) // 2
    return np.concatenate([*first, x[:1], inner[skip : inner.shape[0] - skip], x[-1:], *last])


def _periodic_knots(x: Any, k: int) -> Any:
    """The data points (or midpoints, for even k), continued periodically at both ends."""
    if k % 2 == 0:
        x = np.concatenate([x[:1], (x[1:-1] + x[:-2]) / 2.0, x[-1:]])
    n, period = x.shape[0] - 1, x[-1] - x[0]
    before = [x[(-1 - i) % n] + period * ((-1 - i) // n) for i in range(k)][::-1]
    after = [x[(1 + i) % n] + period * ((1 + i) // n + 1) for i in range(k)]
    return np.concatenate([np.stack(before), x, np.stack(after)])


def basis_values(t: Any, x: Any, k: int, order: int = 0) -> Any:
    """The values of the k + 1 B-splines that are nonzero at each point, in an additional axis."""
    ones = np.eye(k + 1)
    rows = [ones[j] + 0.0 * append_axes(x, 1) for j in range(k + 1)]
    return de_boor(rows, t, knot_intervals(t, k, x), x, k, order)


def _solve_coefficients(x: Any, y: Any, t: Any, k: int, left: list[Any], right: list[Any]) -> Any:
    """The coefficients of the spline with given values, and derivatives at the ends."""
    count = t.shape[0] - k - 1
    ab = as_tensor(np.zeros((2 * k + 1, count)))
    blocks: list[tuple[Any, int, Any]] = [
        (x[:1], order, row) for row, (order, _) in enumerate(left)
    ]
    blocks += [(x, 0, np.arange(x.shape[0]) + len(left))]
    blocks += [(x[-1:], order, count - len(right) + r) for r, (order, _) in enumerate(right)]
    for points, order, row in blocks:
        interval, values = knot_intervals(t, k, points), basis_values(t, points, k, order)
        for j in range(k + 1):
            column = interval - k + j
            ab[k + row - column, column] = values[:, j]
    sides = [[value + np.zeros(y.shape[1]) for _, value in end] for end in (left, right)]
    rows = [np.stack(side) for side in sides if side]
    parts = ([rows[0]] if left else []) + [y] + ([rows[-1]] if right else [])
    return banded(ab, np.concatenate(parts), lower=k, upper=k)


def _solve_periodic(x: Any, y: Any, t: Any, k: int) -> Any:
    """The coefficients of a periodic spline; the last k repeat the first."""
    n = x.shape[0] - 1
    interval, values = knot_intervals(t, k, x[:-1]), basis_values(t, x[:-1], k)
    matrix: Any = 0.0
    for j in range(k + 1):
        column = (interval - k + j) % n
        matrix = matrix + values[:, j][:, None] * (column[:, None] == np.arange(n))
    return np.linalg.solve(matrix, y[:-1])[np.arange(n + k) % n]
