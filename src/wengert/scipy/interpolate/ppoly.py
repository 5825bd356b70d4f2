"""Piecewise polynomials: PPoly, the base of cubic splines, and their evaluation.

A piece between two breakpoints is a polynomial in the distance from the left one.  The index of the
piece is piecewise constant: at a breakpoint it is the piece on the right, and outside of the
interval the first or the last.  Everything else is arithmetic, so the value can be differentiated
with respect to the point, the coefficients and the breakpoints.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.interpolate

from wengert._engine.core.handle import is_traced, possibly, value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import floating, holds_tensors

__all__ = ["PPoly"]

Extrapolate = bool | str | None


def double(x: Any) -> Any:
    """`x` in double precision, complex if it is."""
    x = floating(x)
    wanted = np.dtype(complex if x.dtype.kind == "c" else float)
    return x if x.dtype == wanted else x.astype(wanted)


def pieces(x: Any, points: Any) -> Any:
    """The index of the piece between breakpoints `x`, increasing, of each point."""
    if falls(x):
        return pieces(-value_of(x), -value_of(points))
    found = np.searchsorted(value_of(x), value_of(points), side="right") - 1
    return np.minimum(np.maximum(found, 0), x.shape[0] - 2)


def taken(x: Any, index: Any) -> Any:
    """`x[index]` along the first axis; the index may be traced."""
    return (as_tensor(x) if is_traced(index) else x)[index]


def outside(x: Any, points: Any) -> Any:
    """Whether points are below the first or above the last breakpoint."""
    ends, where = value_of(x), value_of(points)
    if falls(x):
        return (where > ends[0]) | (where < ends[-1])
    return (where < ends[0]) | (where > ends[-1])


def falls(x: Any) -> bool:
    """Whether breakpoints decrease, which is not supported for tensors."""
    return not is_traced(x) and bool(value_of(x)[-1] < value_of(x)[0])


def wrapped(x: Any, points: Any) -> Any:
    """Points reduced by multiples of the period to the interval of the breakpoints."""
    return x[0] + np.remainder(points - x[0], x[-1] - x[0])


def placed(values: Any, ndim: int, axis: int) -> Any:
    """Move the first `ndim` axes, those of the points, to position `axis`."""
    if axis == 0 or values.ndim == ndim:
        return values
    order = list(range(values.ndim))
    return np.transpose(values, order[ndim : ndim + axis] + order[:ndim] + order[ndim + axis :])


def deep(x: Any, ndim: int) -> Any:
    """`x` with `ndim` axes of length 1 appended."""
    return x.reshape((*x.shape, *((1,) * ndim)))


def polynomial(c: Any, t: Any, order: int) -> Any:
    """A derivative of a polynomial of t, with the coefficient of the highest power first."""
    degree = c.shape[0] - 1
    if degree < order:
        return 0.0 * c[0] + 0.0 * t
    total = None
    for k in range(degree - order + 1):
        power = degree - k
        factor = 1.0
        for j in range(order):
            factor *= power - j
        term = c[k] if factor == 1.0 else factor * c[k]
        total = term if total is None else total * t + term
    return total if degree > order else total + choose(np.isnan(value_of(t)), t, 0.0)


class PPoly:
    """A piecewise polynomial, as ``scipy.interpolate.PPoly``, of arrays or tensors.

    Parameters
    ----------
    c : array_like of shape (k, m, ...)
        Coefficients of the m pieces, highest power first.
    x : array_like of shape (m + 1,)
        The breakpoints, increasing.
    extrapolate : bool or "periodic", optional
        Whether to extrapolate with the first and last piece (the default), to return NaN outside
        of the interval, or to continue periodically.
    axis : int, default 0
        The position of the axes of the points in the result.

    Attributes
    ----------
    c, x, extrapolate, axis

    Notes
    -----
    Differentiable with respect to `c`, the breakpoints `x` and the points of evaluation. At a
    breakpoint the derivatives are those of the piece on its right, at the last breakpoint those of
    the last piece.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import PPoly
    >>> p = PPoly(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 1.0, 2.0]))
    >>> float(p(0.25)), float(wg.grad(p)(0.25)), float(wg.grad(p)(1.25))
    (0.25, 1.0, 0.0)
    """

    def __init__(self, c: Any, x: Any, extrapolate: Extrapolate = None, axis: int = 0) -> None:
        self._theirs: Any = None
        if not holds_tensors([c, x]):
            theirs = scipy.interpolate.PPoly(c, x, extrapolate, axis)
            self._adopt(theirs)
            return
        c, x = double(c), double(x)
        if x.ndim != 1 or x.shape[0] < 2 or c.ndim < 2 or c.shape[1] != x.shape[0] - 1:
            raise ShapeError(
                f"PPoly: coefficients of shape {c.shape} for breakpoints of shape {x.shape}. Give "
                f"an array (k, m, ...) for m + 1 breakpoints{at(user_line())}."
            )
        if not -c.ndim + 1 < axis < c.ndim - 1:
            raise ShapeError(f"PPoly: axis {axis} of {c.ndim - 1}{at(user_line())}.")
        if not is_traced(x) and np.any(np.diff(value_of(x)) <= 0):
            raise ArgumentError(
                f"PPoly: the breakpoints of a tensor have to rise. Sort them{at(user_line())}."
            )
        self.c, self.x = c, x
        self.axis = axis % (c.ndim - 1)
        self.extrapolate: Any = True if extrapolate is None else extrapolate

    def _adopt(self, theirs: Any) -> None:
        """Convert SciPy's piecewise polynomial of plain arrays."""
        self._theirs = theirs
        self.c, self.x, self.axis, self.extrapolate = (
            theirs.c,
            theirs.x,
            theirs.axis,
            theirs.extrapolate,
        )

    def __call__(self, x: Any, nu: int = 0, extrapolate: Extrapolate = None) -> Any:
        """The value, or the derivative of order `nu`, at points.

        Parameters
        ----------
        x : array_like
            Any shape; its axes replace the axis of the data in the result.
        nu : int, default 0
        extrapolate : bool or "periodic", optional
            Overrides the setting of the polynomial.
        """
        if self._theirs is not None and not holds_tensors(x):
            return self._theirs(x, nu, extrapolate)
        nu = operator.index(nu)
        if nu < 0:
            raise ArgumentError(
                f"a derivative of order {nu}: orders begin at 0. Integrate with antiderivative()"
                f"{at(user_line())}."
            )
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        points = double(x)
        if points.dtype.kind == "c":
            raise ArgumentError(
                f"a spline at complex points: its pieces are chosen by order, which complex "
                f"numbers have none of. Pass their real parts{at(user_line())}."
            )
        if extrapolate == "periodic":
            points = wrapped(self.x, points)
        index = pieces(self.x, points)
        rest = self.c.ndim - 2
        t = deep(points - taken(self.x, index), rest)
        coefficients = [taken(row, index) for row in self.c]
        values = polynomial(_Rows(coefficients), t, nu)
        if not extrapolate:
            beyond = outside(self.x, points)
            if possibly(beyond):
                values = choose(deep(beyond, rest), np.nan, values)
        return as_tensor(placed(values, points.ndim, self.axis))

    def derivative(self, nu: int = 1) -> PPoly:
        """The derivative of order `nu`, a piecewise polynomial."""
        if nu < 0:
            return self.antiderivative(-nu)
        degree = self.c.shape[0] - 1
        if degree < nu:
            return _made(0.0 * self.c[:1], self)
        powers = np.arange(degree, nu - 1, -1.0)
        factors = np.ones(len(powers))
        for j in range(nu):
            factors = factors * (powers - j)
        return _made(deep(factors, self.c.ndim - 1) * self.c[: degree + 1 - nu], self)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The integral from the first breakpoint, `nu` times, a piecewise polynomial."""
        if nu < 0:
            return self.derivative(-nu)
        c = self.c
        lengths = deep(self.x[1:] - self.x[:-1], c.ndim - 2)
        for _ in range(nu):
            powers = np.arange(c.shape[0], 0, -1.0)
            raised = np.concatenate([c / deep(powers, c.ndim - 1), 0.0 * c[:1]])
            over = polynomial(raised, lengths, 0)
            start = np.concatenate([0.0 * over[:1], np.cumsum(over[:-1], axis=0)])
            c = np.concatenate([raised[:-1], start[None]])
        made = _made(c, self)
        if self.extrapolate == "periodic":
            made.extrapolate = False  # an integral is not periodic
        return made

    def integrate(self, a: Any, b: Any, extrapolate: Extrapolate = None) -> Any:
        """The integral from `a` to `b`, differentiable with respect to both."""
        if self._theirs is not None and not holds_tensors([a, b]):
            return self._theirs.integrate(a, b, extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        whole = _made(self.antiderivative().c, self)
        a, b = as_tensor(a), as_tensor(b)
        if extrapolate != "periodic":
            return whole(b, 0, extrapolate) - whole(a, 0, extrapolate)
        x0, period = self.x[0], self.x[-1] - self.x[0]
        turns = [value_of(np.floor((v - x0) / period)) for v in (a, b)]
        inside = [whole(v - n * period, 0, True) for v, n in zip((a, b), turns, strict=True)]
        return inside[1] - inside[0] + (turns[1] - turns[0]) * whole(self.x[-1], 0, True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.c.shape[1]} pieces, degree {self.c.shape[0] - 1}>"


class _Rows:
    """Coefficients as a list of arrays, one for each power."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows
        self.shape = (len(rows),)

    def __getitem__(self, k: int) -> Any:
        return self.rows[k]


def _made(c: Any, like: PPoly) -> PPoly:
    made = PPoly.__new__(PPoly)
    if not holds_tensors([c, like.x]):
        made._adopt(scipy.interpolate.PPoly(c, like.x, like.extrapolate, like.axis))
        return made
    made._theirs = None
    made.c, made.x, made.axis, made.extrapolate = c, like.x, like.axis, like.extrapolate
    return made


def checked(name: str, x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """The data points and values in double precision, with the axis moved to the front.

    Raises
    ------
    ShapeError, ArgumentError
        The shapes do not match; `x` is not increasing; a value is not finite.
    """
    x, y = double(as_array(x)), double(as_array(y))
    if not -y.ndim <= axis < y.ndim:
        raise np.exceptions.AxisError(axis, y.ndim)
    if x.ndim != 1 or x.shape[0] < 2 or x.dtype.kind == "c" or x.shape[0] != y.shape[axis]:
        raise ShapeError(
            f"{name}: places of shape {x.shape} ({x.dtype}) for values of shape {y.shape} along "
            f"axis {axis}. Give a line of real numbers, two at least, one for each value"
            f"{at(user_line())}."
        )
    for what, array in (("places", x), ("values", y)):
        if not is_traced(array) and not np.all(np.isfinite(value_of(array))):
            raise ArgumentError(
                f"{name}: NaN or infinity among the {what}. Leave them out{at(user_line())}."
            )
    if not is_traced(x) and np.any(np.diff(value_of(x)) <= 0):
        raise ArgumentError(
            f"{name}: the places have to rise. Sort them, and the values with them"
            f"{at(user_line())}."
        )
    return x, np.moveaxis(y, axis, 0) if axis % y.ndim else y
