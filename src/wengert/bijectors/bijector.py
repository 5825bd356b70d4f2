"""The interface of all bijectors.

    Bijector    shape, unconstrained_shape, size; forward, inverse, log_det_jacobian
    as_shape    a shape or a length, checked
    require     refuse values that do not fulfill a constraint, where values are known
    tolerance   of a sum that must be 1

A bijector transforms a value of one fixed shape; `wg.vmap` transforms batches.  Subclasses define
`_forward`, `_inverse` and `_check`.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, is_traced, shape_of
from wengert._engine.tensor.numpy_dispatch import values
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line
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
