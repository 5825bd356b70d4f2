"""Bijectors of numbers and of the elements of arrays.

    Real       no constraint
    Positive   exp or softplus
    Lower      lower bound
    Upper      upper bound
    Interval   both

Bounds may be parameters themselves: tensors, of which derivatives are taken.

Formulas: Stan Reference Manual, "Constraint Transforms": lower bounded scalar, upper bounded
scalar, lower and upper bounded scalar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, shape_of
from wengert._engine.tensor.numpy_dispatch import values
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.scipy.special import log_expit
from wengert.scipy.stats.continuous_distribution import real

from .bijector import Bijector, as_shape, require

_WAYS = ("exp", "softplus")


class _Elementwise(Bijector):
    """Constrained and unconstrained values have the same shape."""

    def __init__(self, shape: Any) -> None:
        self.shape = self.unconstrained_shape = as_shape(shape, type(self).__name__)

    def _bound(self, bound: Any, name: str) -> Any:
        """A bound, which must be finite and broadcast to the shape."""
        what = type(self).__name__
        bound = real(bound, f"{name} of {what}")
        given = shape_of(bound)
        try:
            fits = np.broadcast_shapes(given, self.shape) == self.shape
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(
                f"{what}: {name} has the shape {given}, but must broadcast to {self.shape}"
                f"{at(user_line())}."
            )
        require(np.isfinite, bound, f"{what}: {name} must be finite")
        if isinstance(bound, np.ndarray):  # a later change of the caller's array has no effect
            bound = bound.copy()
            bound.flags.writeable = False
        return bound

    def _shape_text(self) -> str:
        return f"shape={self.shape}" if self.shape else ""


def _text(bound: Any) -> str:
    """A bound in messages."""
    return "traced" if is_traced(bound) else np.array2string(np.asarray(values(bound)), threshold=6)


class Real(_Elementwise):
    """Values without a constraint.

    Examples
    --------
    >>> from wengert import bijectors
    >>> bijectors.Real(2).forward_and_log_det([1.0, 2.0])
    (array([1., 2.]), 0.0)
    """

    def __init__(self, shape: Any = ()) -> None:
        super().__init__(shape)
        self._made()

    def __repr__(self) -> str:
        return f"Real({self._shape_text()})"

    def _forward(self, u: Any) -> tuple[Any, Any]:
        return u, 0.0

    def _inverse(self, x: Any) -> Any:
        return x


class Positive(_Elementwise):
    """Positive values: x = exp(u), or x = softplus(u) = log(1 + exp(u)).

    Parameters
    ----------
    shape : int or tuple of int
        The shape of the value; by default a number.
    by : {"exp", "softplus"}
        The transformation. Large values of softplus are proportional to u.

    Notes
    -----
    The log-Jacobian is sum(u) for exp, and sum(log expit(u)) for softplus.

    Examples
    --------
    >>> from wengert import bijectors
    >>> bijectors.Positive(2).forward_and_log_det([0.0, 1.0])
    (array([1.        , 2.71828183]), np.float64(1.0))
    """

    def __init__(self, shape: Any = (), by: str = "exp") -> None:
        super().__init__(shape)
        if by not in _WAYS:
            raise ArgumentError(
                f"Positive: by={by!r} is not known. Choose 'exp' or 'softplus'{at(user_line())}."
            )
        self.by = by
        self._made()

    def __repr__(self) -> str:
        way = "by='softplus'" if self.by == "softplus" else ""
        return f"Positive({', '.join(t for t in (self._shape_text(), way) if t)})"

    def _forward(self, u: Any) -> tuple[Any, Any]:
        if self.by == "exp":
            return np.exp(u), np.sum(u)
        return -log_expit(-u), np.sum(log_expit(u))

    def _inverse(self, x: Any) -> Any:
        return np.log(x) if self.by == "exp" else x + np.log(-np.expm1(-x))

    def _check(self, x: Any) -> None:
        super()._check(x)
        require(lambda v: v > 0.0, x, f"{self!r}: constrained values must be positive")


class Lower(_Elementwise):
    """Values above a bound: x = low + exp(u), with the log-Jacobian sum(u).

    Parameters
    ----------
    low : float or array
        The bound; an array has one for each element.
    shape : int or tuple of int
        The shape of the value; by default a number.

    Examples
    --------
    >>> from wengert import bijectors
    >>> float(bijectors.Lower(2.0).forward(0.0))
    3.0
    """

    def __init__(self, low: Any, shape: Any = ()) -> None:
        super().__init__(shape)
        self.low = self._bound(low, "low")
        self._made()

    def __repr__(self) -> str:
        return f"Lower({', '.join(t for t in (_text(self.low), self._shape_text()) if t)})"

    def _forward(self, u: Any) -> tuple[Any, Any]:
        return self.low + np.exp(u), np.sum(u)

    def _inverse(self, x: Any) -> Any:
        return np.log(x - self.low)

    def _check(self, x: Any) -> None:
        super()._check(x)
        if not is_traced(self.low):
            low = np.asarray(values(self.low))
            require(lambda v: v > low, x, f"{self!r}: constrained values must be above the bound")


class Upper(_Elementwise):
    """Values below a bound: x = high - exp(u), with the log-Jacobian sum(u).

    Parameters
    ----------
    high : float or array
        The bound; an array has one for each element.
    shape : int or tuple of int
        The shape of the value; by default a number.

    Examples
    --------
    >>> from wengert import bijectors
    >>> float(bijectors.Upper(2.0).forward(0.0))
    1.0
    """

    def __init__(self, high: Any, shape: Any = ()) -> None:
        super().__init__(shape)
        self.high = self._bound(high, "high")
        self._made()

    def __repr__(self) -> str:
        return f"Upper({', '.join(t for t in (_text(self.high), self._shape_text()) if t)})"

    def _forward(self, u: Any) -> tuple[Any, Any]:
        return self.high - np.exp(u), np.sum(u)

    def _inverse(self, x: Any) -> Any:
        return np.log(self.high - x)

    def _check(self, x: Any) -> None:
        super()._check(x)
        if not is_traced(self.high):
            high = np.asarray(values(self.high))
            require(lambda v: v < high, x, f"{self!r}: constrained values must be below the bound")


class Interval(_Elementwise):
    """Values between two bounds: x = low + (high - low) expit(u).

    Parameters
    ----------
    low, high : float or array
        The bounds; arrays have one for each element.
    shape : int or tuple of int
        The shape of the value; by default a number.

    Notes
    -----
    The log-Jacobian is sum(log(high - low) + log expit(u) + log expit(-u)).

    Examples
    --------
    >>> from wengert import bijectors
    >>> float(bijectors.Interval(-1.0, 3.0).forward(0.0))
    1.0
    """

    def __init__(self, low: Any, high: Any, shape: Any = ()) -> None:
        super().__init__(shape)
        self.low, self.high = self._bound(low, "low"), self._bound(high, "high")
        self._width = self.high - self.low
        if not is_traced(self._width) and not np.all(values(self._width) > 0.0):
            raise ArgumentError(
                f"Interval: low must be below high, but low={_text(self.low)} and "
                f"high={_text(self.high)} were given{at(user_line())}."
            )
        self._made()

    def __repr__(self) -> str:
        bounds = f"{_text(self.low)}, {_text(self.high)}"
        return f"Interval({', '.join(t for t in (bounds, self._shape_text()) if t)})"

    def _forward(self, u: Any) -> tuple[Any, Any]:
        below, above = log_expit(u), log_expit(-u)
        log_width = np.broadcast_to(np.log(self._width), self.shape)
        return self.low + self._width * np.exp(below), np.sum(log_width + below + above)

    def _inverse(self, x: Any) -> Any:
        return np.log(x - self.low) - np.log(self.high - x)

    def _check(self, x: Any) -> None:
        super()._check(x)
        if not is_traced(self._width):
            low, high = np.asarray(values(self.low)), np.asarray(values(self.high))
            require(
                lambda v: (v > low) & (v < high),
                x,
                f"{self!r}: constrained values must be between the bounds",
            )
