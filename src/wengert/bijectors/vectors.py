"""Bijectors of vectors, which are the last axis of the value.

    Ordered      increasing elements
    Simplex      positive elements with the sum 1, by stick breaking
    UnitVector   elements whose squares have the sum 1

Formulas: Stan Reference Manual, "Constraint Transforms": ordered vector, unit simplex (by stick
breaking), unit vector.  M. Betancourt, "Cruising the simplex" (2010), for stick breaking;
G. Marsaglia, "Choosing a point from the surface of a sphere" (1972), for unit vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of
from wengert.errors import ArgumentError, at, user_line
from wengert.scipy.special import log_expit

from .bijector import Bijector, Shape, as_shape, require, tolerance


def _vectors(shape: Any, what: str) -> Shape:
    lengths = as_shape(shape, what)
    if not lengths or lengths[-1] < 1:
        raise ArgumentError(
            f"{what}: the shape is {shape!r}, but the last axis must have at least one element"
            f"{at(user_line())}."
        )
    return lengths


class _Vectors(Bijector):
    """Values whose last axis is transformed."""

    def __repr__(self) -> str:
        shape = self.shape[0] if len(self.shape) == 1 else self.shape
        return f"{type(self).__name__}({shape})"


class Ordered(_Vectors):
    """Increasing vectors: x[0] = u[0], x[k] = x[k - 1] + exp(u[k]).

    Parameters
    ----------
    shape : int or tuple of int
        The length, or the shape of an array whose last axis is ordered.

    Notes
    -----
    The log-Jacobian is the sum of u[1:].

    Examples
    --------
    >>> from wengert import bijectors
    >>> bijectors.Ordered(3).forward([1.0, 0.0, 0.0])
    array([1., 2., 3.])
    """

    def __init__(self, shape: Any) -> None:
        self.shape = self.unconstrained_shape = _vectors(shape, "Ordered")
        self._made()

    def _forward(self, u: Any) -> tuple[Any, Any]:
        steps = np.concatenate([u[..., :1], np.exp(u[..., 1:])], axis=-1)
        return np.cumsum(steps, axis=-1), np.sum(u[..., 1:])

    def _inverse(self, x: Any) -> Any:
        return np.concatenate([x[..., :1], np.log(x[..., 1:] - x[..., :-1])], axis=-1)

    def _check(self, x: Any) -> None:
        super()._check(x)
        require(
            lambda v: np.all(np.diff(v, axis=-1) > 0.0),
            x,
            f"{self!r}: constrained values must increase",
        )


class Simplex(_Vectors):
    """Vectors of K positive elements with the sum 1, from K - 1 numbers, by stick breaking.

    Parameters
    ----------
    shape : int or tuple of int
        The length K, or the shape of an array whose last axis is a simplex.

    Notes
    -----
    z[k] = expit(u[k] - log(K - 1 - k)) is the part of what is left that element k takes, k from 0.
    The log-Jacobian, of x[:-1], is the sum of log z[k] + log(1 - z[k]) + log(1 - x[0] - ...
    - x[k - 1]). All are computed by logarithms, so that small elements are exact. Zeros are the
    simplex of equal elements.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import bijectors
    >>> bijectors.Simplex(4).forward(np.zeros(3))
    array([0.25, 0.25, 0.25, 0.25])
    """

    def __init__(self, shape: Any) -> None:
        self.shape = _vectors(shape, "Simplex")
        self.unconstrained_shape = (*self.shape[:-1], self.shape[-1] - 1)
        self._made()

    def _offsets(self, u: Any) -> Any:
        """log(K - 1 - k), for which zeros give equal elements."""
        return np.log(np.arange(self.shape[-1] - 1, 0, -1)).astype(dtype_of(u))

    def _forward(self, u: Any) -> tuple[Any, Any]:
        shifted = u - self._offsets(u)
        part, rest = log_expit(shifted), log_expit(-shifted)
        left = np.cumsum(rest, axis=-1)  # logarithms of what is left behind each element
        zero = np.zeros((*self.shape[:-1], 1), dtype_of(u))
        before = np.concatenate([zero, left], axis=-1)
        logs = before + np.concatenate([part, zero], axis=-1)
        return np.exp(logs), np.sum(part + rest + before[..., :-1])

    def _inverse(self, x: Any) -> Any:
        behind = np.flip(np.cumsum(np.flip(x[..., 1:], -1), axis=-1), -1)
        return np.log(x[..., :-1]) - np.log(behind) + self._offsets(x)

    def _check(self, x: Any) -> None:
        super()._check(x)
        require(lambda v: v > 0.0, x, f"{self!r}: elements must be positive")
        require(
            lambda v: np.all(np.abs(np.sum(v, axis=-1) - 1.0) <= tolerance(x)),
            x,
            f"{self!r}: the sum of the elements must be 1",
        )


class UnitVector(_Vectors):
    """Vectors of length 1: x = u / |u|.

    Parameters
    ----------
    shape : int or tuple of int
        The number of elements, or the shape of an array whose last axis is a unit vector.

    Notes
    -----
    There is one more number than the sphere has dimensions, so this is not a bijection: all
    multiples of u have the same x, and `inverse` gives x itself. `log_det_jacobian` is
    -sum(u**2) / 2, the log-density of the length, by which the direction of u has the density that
    is given for x. At u = 0 the value is not a number.

    Examples
    --------
    >>> from wengert import bijectors
    >>> bijectors.UnitVector(2).forward([3.0, 4.0])
    array([0.6, 0.8])
    """

    def __init__(self, shape: Any) -> None:
        self.shape = self.unconstrained_shape = _vectors(shape, "UnitVector")
        self._made()

    @np.errstate(invalid="ignore")
    def _forward(self, u: Any) -> tuple[Any, Any]:
        squares = np.sum(u * u, axis=-1, keepdims=True)
        return u / np.sqrt(squares), -0.5 * np.sum(squares)

    def _inverse(self, x: Any) -> Any:
        return x

    def _check(self, x: Any) -> None:
        super()._check(x)
        require(
            lambda v: np.all(np.abs(np.sum(v * v, axis=-1) - 1.0) <= tolerance(x)),
            x,
            f"{self!r}: the length must be 1",
        )
