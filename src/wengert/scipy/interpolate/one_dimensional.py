"""Interpolation of functions of one variable: interp1d, polynomials, pchip_interpolate.

    linear                                piecewise linear
    nearest, nearest-up, previous, next
                                          piecewise constant: derivative 0 w.r.t. the points
    zero, slinear, quadratic, cubic, int
                                          splines (bspline.py)
    BarycentricInterpolator barycentric_interpolate
    KroghInterpolator krogh_interpolate
    pchip_interpolate

The polynomial is evaluated in Lagrange form (NIST DLMF 3.3.1), which divides only by differences of
nodes, so it is also differentiable where a point of evaluation is a node.  It is numerically stable
(N. J. Higham, The numerical stability of barycentric Lagrange interpolation, 2004).  Cost: the
number of points times n^2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate

from wengert._engine.core.handle import is_traced, possibly, shape_of, value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor, spread
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import floating, holds_tensors, known_length
from .bspline import make_interp_spline
from .cubic_splines import PchipInterpolator
from .ppoly import append_axes, check_data, move_point_axes, piece_index, take, to_double

__all__ = """
    interp1d BarycentricInterpolator KroghInterpolator barycentric_interpolate krogh_interpolate
    pchip_interpolate
""".split()


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


class BarycentricInterpolator:
    """The interpolating polynomial, as ``scipy.interpolate.BarycentricInterpolator``.

    Parameters
    ----------
    xi : array or Tensor of shape (n,)
        Distinct nodes, in any order.
    yi : array or Tensor
        Values, of length n along `axis`.
    axis : int, default 0

    Raises
    ------
    ShapeError, ArgumentError
        The shapes do not match; nodes coincide.

    Notes
    -----
    Differentiable with respect to `xi`, `yi` and the points of evaluation. NIST DLMF 3.3(i).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import BarycentricInterpolator
    >>> parabola = BarycentricInterpolator(np.array([0.0, 1.0, 3.0]), np.array([0.0, 1.0, 9.0]))
    >>> float(wg.grad(parabola)(2.0).round(12))
    4.0
    """

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        xi = as_array(xi)
        name = type(self).__name__
        known = to_double(xi)
        order = np.argsort(known) if len(shape_of(known)) == 1 else slice(None)
        values = np.moveaxis(as_array(yi), axis, 0)
        if len(shape_of(known)) == 1 and shape_of(values)[:1] == shape_of(known):
            values = values[order]
        self.xi, self.yi = check_data(name, known[order], values, 0)
        self.axis = axis

    def __call__(self, x: Any) -> Any:
        """The polynomial at points; their axes replace the axis of the data in the result."""
        x = to_double(as_array(x))
        nodes = self.xi
        differences = nodes[:, None] - nodes[None, :]
        diagonal = np.eye(shape_of(nodes)[0], dtype=bool)
        factors = np.where(diagonal, 1.0, x[..., None, None] - nodes[None, :])
        basis = np.prod(factors / np.where(diagonal, 1.0, differences), axis=-1)
        values = np.tensordot(basis, self.yi, axes=1)
        return move_point_axes(values, len(shape_of(x)), self.axis % len(shape_of(self.yi)))


class KroghInterpolator(BarycentricInterpolator):
    """The interpolating polynomial, as ``scipy.interpolate.KroghInterpolator``.

    Parameters
    ----------
    xi, yi, axis
        As for `BarycentricInterpolator`. Repeated nodes, at which SciPy interpolates derivatives,
        are not supported; see CubicHermiteSpline.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.interpolate import KroghInterpolator
    >>> float(KroghInterpolator(np.array([0.0, 1.0]), np.array([1.0, 3.0]))(0.5))
    2.0
    """


def barycentric_interpolate(xi: Any, yi: Any, x: Any, axis: int = 0) -> Any:
    """Evaluate the interpolating polynomial, as ``scipy.interpolate.barycentric_interpolate``.

    Parameters
    ----------
    xi, yi, axis
        As for `BarycentricInterpolator`.
    x : array or Tensor
        Points of evaluation.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import barycentric_interpolate
    >>> line = lambda y: barycentric_interpolate(np.array([0.0, 2.0]), y, 0.5)
    >>> wg.grad(line)(np.array([1.0, 5.0]))
    array([0.75, 0.25])
    """
    return BarycentricInterpolator(xi, yi, axis)(x)


def krogh_interpolate(xi: Any, yi: Any, x: Any, der: int = 0, axis: int = 0) -> Any:
    """Evaluate the interpolating polynomial, as ``scipy.interpolate.krogh_interpolate``.

    Parameters
    ----------
    xi, yi, axis
        As for `BarycentricInterpolator`.
    x : array or Tensor
        Points of evaluation.
    der : int
        Must be 0.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        `der` is not 0.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.interpolate import krogh_interpolate
    >>> float(krogh_interpolate(np.array([0.0, 2.0]), np.array([1.0, 5.0]), 0.5))
    2.0
    """
    if der != 0:
        raise ArgumentError(
            f"krogh_interpolate of tensors with der={der!r}: der must be 0. Differentiate with "
            f"wengert.grad or wengert.jvp{at(user_line())}."
        )
    return KroghInterpolator(xi, yi, axis)(x)


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: int = 0, axis: int = 0) -> Any:
    """Monotone cubic interpolation, as ``scipy.interpolate.pchip_interpolate``.

    Parameters
    ----------
    xi, yi, axis
        As for `PchipInterpolator`.
    x : array or Tensor
        Points of evaluation.
    der : int
        The order of the derivative.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import pchip_interpolate
    >>> f = lambda x: pchip_interpolate(np.arange(3.0), np.array([0.0, 1.0, 4.0]), x)
    >>> bool(np.isclose(wg.grad(f)(1.0), 1.5))
    True
    """
    return PchipInterpolator(xi, yi, axis=axis)(x, nu=der)
