"""FITPACK's interface: splines as tuples of knots, coefficients and degree, and surfaces.

    splrep splev splint splder splantider    interpolating splines (s=0), as SciPy's tuples
    InterpolatedUnivariateSpline             interpolating spline
    RectBivariateSpline                      interpolating surface on a grid (s=0)

The interpolating spline is unique, so make_interp_spline computes it.  Smoothing splines, whose
knots are found by a search, are not supported.  P. Dierckx, Curve and Surface Fitting with Splines
(1993).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of, value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_array

from ...errors import ArgumentError, at, user_line
from .bspline import BSpline, make_interp_spline

__all__ = [
    "InterpolatedUnivariateSpline",
    "RectBivariateSpline",
    "splantider",
    "splder",
    "splev",
    "splint",
    "splrep",
]


def _to_tck(spline: BSpline, last: bool = False) -> tuple[Any, Any, int]:
    """Knots, coefficients padded with zeros (or the last one) as in FITPACK, and degree."""
    t, c, k = spline.tck
    missing = shape_of(t)[0] - shape_of(c)[0]
    padding = c[-1:] * np.ones(missing) if last else np.zeros(missing)
    return t, np.concatenate([c, padding]), k


def _from_tck(tck: Any) -> BSpline:
    t, c, k = as_array(tck[0]), tck[1], tck[2]
    return BSpline(t, as_array(c)[: shape_of(t)[0] - k - 1], k)


def splrep(x: Any, y: Any, w: Any = None, k: int = 3, s: Any = None, **others: Any) -> Any:
    """The interpolating spline as a tuple, as ``scipy.interpolate.splrep`` with s=0.

    Parameters
    ----------
    x : array or Tensor of shape (n,)
        Data points, strictly increasing.
    y : array or Tensor of shape (n,)
    w
        Ignored by interpolating splines.
    k : int, default 3
    s : 0 or None
    **others
        SciPy's arguments; not supported.

    Returns
    -------
    tuple
        Knots, coefficients and degree.

    Raises
    ------
    ArgumentError
        Smoothing, or an option that is not supported.

    Notes
    -----
    Differentiable with respect to `x` and `y`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import splev, splrep
    >>> x = np.arange(5.0)
    >>> float(wg.grad(lambda t: splev(t, splrep(x, x**2)))(1.5).round(12))
    3.0
    """
    if s not in (None, 0) or (s is None and w is not None) or any(others.values()):
        raise ArgumentError(
            f"splrep of tensors with s={s!r} and {sorted(others) or 'no other options'}: only "
            f"interpolating splines (s=0, without options) are supported{at(user_line())}."
        )
    return _to_tck(make_interp_spline(x, y, k))


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Evaluate a spline or its derivative, as ``scipy.interpolate.splev``.

    Parameters
    ----------
    x : array or Tensor
    tck : tuple
        Knots, coefficients and degree.
    der : int
        The order of the derivative.
    ext : int
        Outside of the interval: 0 extrapolates, 1 returns 0, 3 returns the boundary value.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        `ext` has another value.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.interpolate import splev, splrep
    >>> float(splev(1.5, splrep(np.arange(5.0), np.arange(5.0) ** 2), der=1).round(12))
    3.0
    """
    if ext not in (0, 1, 3):
        raise ArgumentError(
            f"splev of tensors with ext={ext!r}: ext must be 0, 1 or 3{at(user_line())}."
        )
    x, (t, _, k) = as_array(x), tck
    low, high = value_of(t)[k], value_of(t)[-k - 1]
    inside = np.logical_and(value_of(x) >= low, value_of(x) <= high)
    if ext == 3:
        x = np.clip(x, low, high)
    values = _from_tck(tck)(x, nu=der)
    return choose(inside, values, 0.0) if ext == 1 else values


def splint(a: Any, b: Any, tck: Any) -> Any:
    """The integral of a spline, as ``scipy.interpolate.splint``.

    Parameters
    ----------
    a, b : float or Tensor
        The limits; the spline is 0 outside of its interval.
    tck : tuple

    Returns
    -------
    float or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import splint, splrep
    >>> tck = splrep(np.arange(5.0), np.arange(5.0) ** 2)
    >>> float(wg.grad(lambda b: splint(0.0, b, tck))(1.5).round(12))
    2.25
    """
    t, _, k = tck
    low, high = value_of(t)[k], value_of(t)[-k - 1]
    return _from_tck(tck).integrate(np.clip(a, low, high), np.clip(b, low, high))


def splder(tck: Any, n: int = 1) -> Any:
    """The derivative of a spline as a tuple, as ``scipy.interpolate.splder``.

    Parameters
    ----------
    tck : tuple
    n : int

    Returns
    -------
    tuple

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.interpolate import splder, splev, splrep
    >>> tck = splrep(np.arange(5.0), np.arange(5.0) ** 2)
    >>> float(splev(1.5, splder(tck)).round(12))
    3.0
    """
    return _to_tck(_from_tck(tck).derivative(n))


def splantider(tck: Any, n: int = 1) -> Any:
    """The antiderivative of a spline as a tuple, as ``scipy.interpolate.splantider``.

    Parameters
    ----------
    tck : tuple
    n : int

    Returns
    -------
    tuple

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.interpolate import splantider, splev, splrep
    >>> tck = splrep(np.arange(5.0), np.arange(5.0) ** 2)
    >>> float(splev(3.0, splantider(tck)).round(12))
    9.0
    """
    return _to_tck(_from_tck(tck).antiderivative(n), last=True)


class InterpolatedUnivariateSpline:
    """The interpolating spline, as ``scipy.interpolate.InterpolatedUnivariateSpline``.

    Parameters
    ----------
    x, y : array or Tensor of shape (n,)
        Data points, strictly increasing, and values.
    w
        Ignored by interpolating splines.
    bbox : sequence
        (None, None).
    k : int, default 3
    ext : int
        As for `splev`.

    Notes
    -----
    Differentiable with respect to `x`, `y` and the points of evaluation.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import InterpolatedUnivariateSpline
    >>> spline = InterpolatedUnivariateSpline(np.arange(5.0), np.arange(5.0) ** 3)
    >>> float(wg.grad(spline)(2.0).round(10))
    12.0
    """

    def __init__(
        self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: int = 0
    ) -> None:
        if any(end is not None for end in bbox):
            raise ArgumentError(
                f"InterpolatedUnivariateSpline of tensors with bbox={bbox!r}: only (None, None) is "
                f"supported{at(user_line())}."
            )
        self._tck, self._ext = splrep(x, y, k=k), ext

    def __call__(self, x: Any, nu: int = 0, ext: int | None = None) -> Any:
        """The spline, or a derivative, at points."""
        return splev(x, self._tck, nu, self._ext if ext is None else ext)

    def integral(self, a: Any, b: Any) -> Any:
        """The integral from a to b."""
        return splint(a, b, self._tck)


class RectBivariateSpline:
    """The interpolating surface on a grid, as ``scipy.interpolate.RectBivariateSpline``.

    Parameters
    ----------
    x, y : array or Tensor of shape (m,) and (n,)
        Data points, strictly increasing.
    z : array or Tensor of shape (m, n)
    bbox : sequence
        (None, None, None, None).
    kx, ky : int, default 3
    s : 0

    Raises
    ------
    ArgumentError
        Smoothing, or a bounding box, which are not supported.

    Notes
    -----
    Differentiable with respect to `x`, `y`, `z` and the points of evaluation; outside of the grid
    the surface has the value of the nearest point, as in FITPACK.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import RectBivariateSpline
    >>> x = np.arange(5.0)
    >>> surface = RectBivariateSpline(x, x, x[:, None] ** 2 * x)
    >>> float(wg.grad(lambda p: surface.ev(p, 3.0))(2.0).round(10))
    12.0
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        z: Any,
        bbox: Any = (None,) * 4,
        kx: int = 3,
        ky: int = 3,
        s: float = 0,
    ) -> None:
        if s != 0 or any(end is not None for end in bbox):
            raise ArgumentError(
                f"RectBivariateSpline of tensors with s={s!r} and bbox={bbox!r}: only s=0 without "
                f"bbox is supported{at(user_line())}."
            )
        self._x, self._y = as_array(x), as_array(y)
        self._x_spline = make_interp_spline(self._x, as_array(z), kx)
        y_spline = make_interp_spline(self._y, np.swapaxes(self._x_spline.c, 0, 1), ky)
        self._t, self._c, self._k = y_spline.t, y_spline.c, ky  # c has shape (n, m)

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        """The surface, or a derivative, on a grid of shape (p, q) or at pairs of points."""
        x, y = as_array(x), as_array(y)
        if not grid:
            return self.ev(x, y, dx, dy)
        x, y = np.reshape(x, (-1,)), np.reshape(y, (-1,))
        first, second = self._bases(x, y, dx, dy)
        return first @ np.swapaxes(self._c, 0, 1) @ np.swapaxes(second, 0, 1)

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """The surface, or a derivative, at pairs of points."""
        xi, yi = as_array(xi), as_array(yi)
        first, second = self._bases(xi, yi, dx, dy)
        return np.sum((first @ np.swapaxes(self._c, 0, 1)) * second, axis=-1)

    def _bases(self, x: Any, y: Any, dx: int, dy: int) -> tuple[Any, Any]:
        """The values of all B-splines at points, along both axes."""
        x = np.clip(x, value_of(self._x)[0], value_of(self._x)[-1])
        y = np.clip(y, value_of(self._y)[0], value_of(self._y)[-1])
        n, m = shape_of(self._c)
        first = BSpline(self._x_spline.t, np.eye(m), self._x_spline.k)(x, nu=dx)
        return first, BSpline(self._t, np.eye(n), self._k)(y, nu=dy)
