"""RBFInterpolator: interpolation of scattered data by radial basis functions.

The weights solve one dense linear system, whose matrix has the radial functions of all pairwise
distances, and polynomials.  The interpolant does not depend on the scaling of the polynomials, so
the scale is a constant for differentiation.

Radial functions are functions of squared distances, so that they are differentiable at coincident
points: "linear" has a kink with derivative 0 there, and the infinite second derivative of
"thin_plate_spline" is given as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import scipy.interpolate

from wengert._engine.core.handle import value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import floating, holds_tensors, known_length
from .ppoly import to_double

__all__ = ["RBFInterpolator"]


def _zero_at_zero(f: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A function of the squared distance from one of it and the distance; 0 at distance 0."""

    def g(square: Any) -> Any:
        zero = value_of(square) == 0
        safe = choose(zero, 1.0, square)
        return choose(zero, 0.0, f(safe, np.sqrt(safe)))

    return g


KERNELS: dict[str, tuple[int, bool, Callable[[Any], Any]]] = {
    # minimum degree of the polynomials, whether epsilon is optional, function of squared distance
    "linear": (0, True, _zero_at_zero(lambda s, r: -r)),
    "thin_plate_spline": (1, True, _zero_at_zero(lambda s, r: 0.5 * s * np.log(s))),
    "cubic": (1, True, _zero_at_zero(lambda s, r: s * r)),
    "quintic": (2, True, _zero_at_zero(lambda s, r: -s * s * r)),
    "multiquadric": (0, False, lambda s: -np.sqrt(s + 1.0)),
    "inverse_multiquadric": (-1, False, lambda s: 1.0 / np.sqrt(s + 1.0)),
    "inverse_quadratic": (-1, False, lambda s: 1.0 / (s + 1.0)),
    "gaussian": (-1, False, lambda s: np.exp(-s)),
}


class RBFInterpolator:
    """Interpolation of scattered data, as ``scipy.interpolate.RBFInterpolator``.

    Parameters
    ----------
    y : array_like of shape (n, m)
        Data points.
    d : array_like of shape (n, ...)
        Data values, real or complex.
    neighbors : None
        Other values are not supported for tensors.
    smoothing : float or array_like of shape (n,), default 0.0
    kernel : str, default "thin_plate_spline"
        Also "linear", "cubic", "quintic", "multiquadric", "inverse_multiquadric",
        "inverse_quadratic", "gaussian".
    epsilon : float or Tensor, optional
        Multiplies distances; required by the last four kernels.
    degree : int, optional
        Of the polynomials; -1 for none.

    Notes
    -----
    Differentiable with respect to `d`, `y`, `smoothing`, `epsilon` and the points of evaluation.
    *Cost.* O(n^3) once, O(n) for a point.
    """

    def __init__(
        self,
        y: Any,
        d: Any,
        neighbors: int | None = None,
        smoothing: Any = 0.0,
        kernel: str = "thin_plate_spline",
        epsilon: Any = None,
        degree: int | None = None,
    ) -> None:
        self._theirs: Any = None
        if not holds_tensors([y, d, smoothing, epsilon]):
            self._theirs = scipy.interpolate.RBFInterpolator(
                y, d, neighbors, smoothing, kernel, epsilon, degree
            )
            if neighbors is not None:
                return
        kernel = kernel.lower()
        if neighbors is not None or kernel not in KERNELS:
            raise ArgumentError(
                f"RBFInterpolator of tensors with neighbors={neighbors} and kernel={kernel!r}: "
                f"neighbors must be None, the kernel one of {', '.join(KERNELS)}{at(user_line())}."
            )
        min_degree, scale_free, self._kernel = KERNELS[kernel]
        if epsilon is None and not scale_free:
            raise ArgumentError(
                f"RBFInterpolator with kernel={kernel!r}: pass epsilon=, the inverse of a length"
                f"{at(user_line())}."
            )
        self.epsilon = 1.0 if epsilon is None else epsilon
        self.y, d = to_double(y), to_double(d)
        if self.y.ndim != 2 or d.ndim < 1 or d.shape[0] != self.y.shape[0]:
            raise ShapeError(
                f"RBFInterpolator: y of shape {self.y.shape} for values of shape {d.shape}. y must "
                f"have the shape (n, m), for n values{at(user_line())}."
            )
        n = known_length(self.y.shape[0], "RBFInterpolator")
        self.d, self._shape = d.reshape((n, -1)), d.shape[1:]
        self.powers = _powers(
            self.y.shape[1], max(min_degree, 0) if degree is None else int(degree)
        )
        if len(self.powers) > n:
            raise ShapeError(
                f"RBFInterpolator of {n} points with {len(self.powers)} polynomials: give more "
                f"points, or a lower degree{at(user_line())}."
            )
        self._solve(smoothing, n)

    def _solve(self, smoothing: Any, n: int) -> None:
        low, high = (f(value_of(self.y), axis=0) for f in (np.min, np.max))
        self._shift, half = (high + low) / 2.0, (high - low) / 2.0
        self._scale = np.where(half == 0, 1.0, half)
        functions = self._functions(self.y)
        m = functions.shape[1] - n
        square = functions[:, :n] + np.eye(n) * (floating(smoothing) + np.zeros(n))
        below = np.concatenate([functions[:, n:].T, np.zeros((m, m))], axis=1)
        matrix = np.concatenate([np.concatenate([square, functions[:, n:]], axis=1), below], axis=0)
        right = np.concatenate([self.d, np.zeros((m, self.d.shape[1]))], axis=0)
        self._weights = np.linalg.solve(matrix, right)

    def _functions(self, x: Any) -> Any:
        """Radial functions and polynomials at points."""
        differences = (x[:, None, :] - self.y[None, :, :]) * self.epsilon
        radial = self._kernel(np.sum(differences * differences, axis=-1))
        scaled = (x - self._shift) / self._scale
        columns = []
        for powers in self.powers:
            column = np.ones(x.shape[:1])
            for k, power in enumerate(powers):
                column = column * scaled[:, k] ** power if power else column
            columns.append(column[:, None])
        return np.concatenate([radial, *columns], axis=1)

    def __call__(self, x: Any) -> Any:
        """The value at points, an array of shape (q, m)."""
        if self._theirs is not None and not holds_tensors(x):
            return self._theirs(x)
        x = to_double(as_array(x))
        if x.ndim != 2 or x.shape[1] != self.y.shape[1]:
            raise ShapeError(
                f"RBFInterpolator at points of shape {x.shape}: give an array (q, "
                f"{self.y.shape[1]}){at(user_line())}."
            )
        return (self._functions(x) @ self._weights).reshape((x.shape[0], *self._shape))


def _powers(ndim: int, degree: int) -> list[list[int]]:
    """The exponents of all monomials up to a degree."""
    exponents = []
    for total in range(degree + 1):
        for axes in combinations_with_replacement(range(ndim), total):
            exponents.append([axes.count(k) for k in range(ndim)])
    return exponents
