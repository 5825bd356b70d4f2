"""The interface of all bijectors, and those of numbers and of the elements of arrays.

    Bijector   shape, unconstrained_shape, size; forward, inverse, log_det_jacobian
    as_shape   a shape or a length, checked
    require    refuse values that do not fulfill a constraint, where values are known
    tolerance  of a sum that must be 1
    Real       no constraint
    Positive   exp or softplus
    Lower      lower bound
    Upper      upper bound
    Interval   both

A bijector transforms a value of one fixed shape; `wg.vmap` transforms batches.  Subclasses define
`_forward`, `_inverse` and `_check`.

Bounds may be parameters themselves: tensors, of which derivatives are taken.

Formulas: Stan Reference Manual, "Constraint Transforms": lower bounded scalar, upper bounded
scalar, lower and upper bounded scalar.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, is_traced, shape_of
from wengert._engine.tensor.numpy_dispatch import values
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line
from wengert.scipy.special import log_expit
from wengert.scipy.stats.continuous_distribution import real

Shape = tuple[int, ...]
# Of the sum of a simplex and the length of a unit vector, as in Stan.
UNIT_TOLERANCE = 1e-8


def as_shape(shape: Any, what: str) -> Shape:
    """A shape, given as a tuple of lengths or one length."""
    try:
        given = (operator.index(shape),) if not isinstance(shape, tuple | list) else shape
        lengths = tuple(operator.index(n) for n in given)
    except TypeError:
        raise DtypeError(
            f"{what}: the shape is {shape!r}, but must be an integer or a tuple of integers"
            f"{at(user_line())}."
        ) from None
    if any(n < 0 for n in lengths):
        raise ArgumentError(
            f"{what}: the shape is {shape!r}, but lengths cannot be negative{at(user_line())}."
        )
    return lengths


def require(condition: Any, value: Any, message: str) -> None:
    """Raise an error where a condition on known values does not hold.

    Parameters
    ----------
    condition : function
        From the plain array of `value` to booleans.
    message : str
        What must hold; the first value for which it does not is named.
    """
    if is_traced(value):
        return
    plain = np.asarray(values(value), dtype=float)
    holds = np.asarray(condition(plain))
    if not np.all(holds):
        wrong = plain[~holds].flat[0] if holds.shape == plain.shape else plain.tolist()
        raise ArgumentError(f"{message}, but {wrong!r} was given{at(user_line())}.")


def tolerance(x: Any) -> float:
    """Of a sum that must be 1; single precision has no 1e-8."""
    return max(UNIT_TOLERANCE, 16.0 * float(np.finfo(dtype_of(x)).eps))


class Bijector:
    """A differentiable transformation of unconstrained to constrained values.

    Attributes
    ----------
    shape : tuple of int
        The shape of constrained values.
    unconstrained_shape : tuple of int
        The shape of unconstrained values.
    size : int
        The number of unconstrained values.
    """

    shape: Shape
    unconstrained_shape: Shape
    _is_made: bool = False

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_made:  # compiled functions have the bounds of a bijector as constants
            raise AttributeError(
                f"{self!r}.{name} cannot be assigned: bijectors are immutable. Make a new one"
                f"{at(user_line())}."
            )
        super().__setattr__(name, value)

    def _made(self) -> None:
        """Make the bijector immutable, which each constructor does at its end."""
        self._is_made = True

    @property
    def size(self) -> int:
        """The number of unconstrained values."""
        return math.prod(self.unconstrained_shape)

    def forward(self, u: Any) -> Any:
        """The constrained value for the unconstrained value `u`."""
        return self.forward_and_log_det(u)[0]

    def log_det_jacobian(self, u: Any) -> Any:
        """The logarithm of the Jacobian determinant of `forward` at `u`, in absolute value.

        It is one number, the sum over all elements.
        """
        return self.forward_and_log_det(u)[1]

    def forward_and_log_det(self, u: Any) -> tuple[Any, Any]:
        """`forward(u)` and `log_det_jacobian(u)`, computed together."""
        return self._forward(self._given(u, self.unconstrained_shape, "an unconstrained value"))

    def inverse(self, x: Any) -> Any:
        """The unconstrained value for the constrained value `x`.

        Raises
        ------
        ArgumentError
            `x` does not fulfill the constraint. In traced functions values are not known, and the
            result is then not a number or infinite.
        """
        x = self._given(x, self.shape, "a constrained value")
        self._check(x)
        with np.errstate(all="ignore"):
            return self._inverse(x)

    def _given(self, value: Any, shape: Shape, what: str) -> Any:
        value = real(value, f"{what} of {self!r}")
        if shape_of(value) != shape:
            raise ShapeError(
                f"{self!r}: {what} has the shape {shape}, but {shape_of(value)} was given. Pass "
                f"the shape to the bijector, and use vmap for batches{at(user_line())}."
            )
        return value

    def _forward(self, u: Any) -> tuple[Any, Any]:
        raise NotImplementedError(f"{type(self).__name__}._forward")

    def _inverse(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._inverse")

    def _check(self, x: Any) -> None:
        """Raise an error if `x` is known and does not fulfill the constraint."""
        require(np.isfinite, x, f"{self!r}: constrained values must be finite")


# ---- elementwise bijectors ---------------------------------------------------------------------


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
