"""Functions of several variables: RegularGridInterpolator and interpn, RBFInterpolator.

The cell of a point is piecewise constant; the interpolation within a cell is arithmetic, so it can
be differentiated with respect to the values, the points and the grid.

    linear              multilinear
    nearest             piecewise constant: derivative 0 with respect to points and grid
    slinear, cubic,     tensor-product splines of degree 1, 3, 5 (bspline.py); their coefficients
    quintic             are computed axis by axis

The weights solve one dense linear system, whose matrix has the radial functions of all pairwise
distances, and polynomials.  The interpolant does not depend on the scaling of the polynomials, so
the scale is a constant for differentiation.

Radial functions are functions of squared distances, so that they are differentiable at coincident
points: "linear" has a kink with derivative 0 there, and the infinite second derivative of
"thin_plate_spline" is given as 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import scipy.interpolate

from wengert._engine.core.handle import is_traced, possibly, value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import counterpart, floating, holds_tensors, known_length
from .bspline import basis_values, knot_intervals, make_interp_spline
from .ppoly import append_axes, piece_index, take, to_double

__all__ = ["RBFInterpolator", "RegularGridInterpolator", "interpn"]

DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}


class RegularGridInterpolator:
    """Interpolation on a grid, as ``scipy.interpolate.RegularGridInterpolator``.

    Parameters
    ----------
    points : sequence of array_like
        The coordinates along each axis of the grid, strictly increasing or decreasing.
    values : array_like
        Of the shape of the grid, followed by further axes.
    method : {"linear", "nearest", "slinear", "cubic", "quintic"}, default "linear"
        "pchip" is not supported for tensors.
    bounds_error : bool, default True
        Whether a point outside of the grid is an error; traced points get the fill value.
    fill_value : float or None, default NaN
        The value outside of the grid; None extrapolates.

    Notes
    -----
    Differentiable with respect to `values`, `points` and `xi`. On a face between two cells the
    derivative is that of the upper cell. The spline methods solve for their coefficients directly,
    SciPy iteratively: values agree to SciPy's tolerance.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import RegularGridInterpolator
    >>> grid, z = (np.array([0.0, 1.0]), np.array([0.0, 2.0])), np.array([[0.0, 1.0], [2.0, 7.0]])
    >>> height = lambda p: RegularGridInterpolator(grid, z)(p)[0]
    >>> wg.grad(height)(np.array([0.5, 1.0]))
    array([4. , 1.5])
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = np.nan,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ) -> None:
        self._theirs: Any = None
        points = tuple(points)
        if not holds_tensors([points, values, fill_value]):
            self._theirs = scipy.interpolate.RegularGridInterpolator(
                points,
                values,
                method,
                bounds_error,
                fill_value,
                solver=solver,
                solver_args=solver_args,
            )
        values = floating(values)
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        grid = []
        if len(points) > values.ndim:
            raise ShapeError(
                f"a grid of {len(points)} axes with values of shape {values.shape}: the first axes "
                f"of the values must be those of the grid{at(user_line())}."
            )
        for k, p in enumerate(points):
            p, values = _sort_axis(to_double(p), values, k)
            grid.append(p)
        self.grid, self.values = tuple(grid), values
        self._coefficients: dict[str, Any] = {}

    def __call__(self, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
        """The value at points.

        Parameters
        ----------
        xi : array_like of shape (..., ndim), or tuple of arrays that broadcast
        method : str, optional
            Overrides the method of the interpolator.
        nu : sequence of int, optional
            Orders of derivatives along the axes, for the spline methods.

        Raises
        ------
        ArgumentError
            A point is outside and `bounds_error` is true; an unknown method.
        """
        if self._theirs is not None and not holds_tensors(xi):
            return self._theirs(xi, method, nu=nu)
        method = self.method if method is None else method
        if method not in ("linear", "nearest", *DEGREES) or (
            nu is not None and method not in DEGREES
        ):
            raise ArgumentError(
                f"a grid with method={method!r}{'' if nu is None else ' and nu'}: for tensors the "
                f"method must be 'linear', 'nearest', 'slinear', 'cubic' or 'quintic', and one of "
                f"the last three with nu{at(user_line())}."
            )
        ndim = len(self.grid)
        xi = _coordinates(xi, ndim)
        batch = xi.shape[:-1]
        columns = [xi[..., k].reshape((-1,)) for k in range(ndim)]
        is_outside = self._outside(columns)
        if method == "linear":
            values = self._linear(columns)
        elif method == "nearest":
            values = self._nearest(columns)
        else:
            values = self._splines(columns, method, nu)
        rest = self.values.ndim - ndim
        has_fill = self.fill_value is not None and (is_traced(is_outside) or not self.bounds_error)
        if has_fill and possibly(is_outside):
            values = choose(append_axes(is_outside, rest), self.fill_value, values)
        undefined = _any([np.isnan(value_of(c)) for c in columns])
        if possibly(undefined):
            values = choose(append_axes(undefined, rest), np.nan, values)
        return as_tensor(values.reshape((*batch, *self.values.shape[ndim:])))

    def _outside(self, columns: list[Any]) -> Any:
        """Whether each point is outside.

        Raises
        ------
        ArgumentError
            A point is outside and `bounds_error` is true.
        """
        masks = []
        for k, (p, c) in enumerate(zip(map(value_of, self.grid), columns, strict=True)):
            known = value_of(c)
            is_outside = (known < p[0]) | (known > p[-1])
            if (
                self.bounds_error
                and not is_traced(is_outside)
                and np.any(is_outside | np.isnan(known))
            ):
                raise ArgumentError(
                    f"a point is outside of the grid along axis {k}, which goes from {p[0]} to "
                    f"{p[-1]}. Pass bounds_error=False for the fill value there, and "
                    f"fill_value=None to extrapolate{at(user_line())}."
                )
            masks.append(is_outside)
        return _any(masks)

    def _cells(self, columns: list[Any]) -> Any:
        """For each axis, the cell of each point and its relative position in the cell."""
        for p, c in zip(self.grid, columns, strict=True):
            if p.shape[0] == 1:
                yield np.zeros(c.shape, int), None
                continue
            i = piece_index(p, c)
            start = take(p, i)
            yield i, (c - start) / (take(p, i + 1) - start)

    def _linear(self, columns: list[Any]) -> Any:
        sides = []
        for i, fraction in self._cells(columns):
            sides.append(
                [(i, None)] if fraction is None else [(i, 1.0 - fraction), (i + 1, fraction)]
            )
        rest = self.values.ndim - len(sides)
        total: Any = None
        for corner in itertools.product(*sides):
            term = self._at([i for i, _ in corner])
            for _, weight in corner:
                term = term if weight is None else term * append_axes(weight, rest)
            total = term if total is None else total + term
        return total

    def _nearest(self, columns: list[Any]) -> Any:
        chosen = []
        for i, fraction in self._cells(columns):
            chosen.append(i if fraction is None else np.where(value_of(fraction) <= 0.5, i, i + 1))
        return self._at(chosen)

    def _at(self, indices: list[Any]) -> Any:
        values = as_tensor(self.values) if any(map(is_traced, indices)) else self.values
        return values[tuple(indices)]

    def _splines(self, columns: list[Any], method: str, nu: Any) -> Any:
        k, ndim = DEGREES[method], len(self.grid)
        orders = [0] * ndim if nu is None else [int(order) for order in nu]
        if method not in self._coefficients:
            c, knots = self.values, []
            for axis, p in enumerate(self.grid):
                spline = make_interp_spline(as_tensor(p), c, k, axis=axis)
                knots.append(spline.t)
                c = np.moveaxis(spline.c, 0, axis)
            self._coefficients[method] = c, knots
        c, knots = self._coefficients[method]
        index, weights = [], []
        for axis, (t, x, order) in enumerate(zip(knots, columns, orders, strict=True)):
            first = knot_intervals(t, k, x) - k
            shape = tuple(-1 if d == axis else 1 for d in range(ndim))
            index.append(append_axes(first, ndim) + np.arange(k + 1).reshape(shape))
            weights.append(basis_values(t, x, k, order))
        block = (as_tensor(c) if any(map(is_traced, index)) else c)[tuple(index)]
        for w in weights:  # sum over the axes of the block
            block = np.sum(block * append_axes(w, block.ndim - 2), axis=1)
        return block


def _any(conditions: list[Any]) -> Any:
    total = conditions[0]
    for one in conditions[1:]:
        total = total | one
    return total


def _sort_axis(p: Any, values: Any, axis: int) -> tuple[Any, Any]:
    """The coordinates along an axis in increasing order, and the values in that order."""
    if p.ndim != 1 or p.shape[0] != values.shape[axis]:
        raise ShapeError(
            f"a grid with points of shape {p.shape} along axis {axis} and values of shape "
            f"{values.shape}: give one point for each value{at(user_line())}."
        )
    steps = np.diff(value_of(p)) if not is_traced(p) else np.ones(1)
    if np.all(steps > 0):
        return p, values
    if np.all(steps < 0):
        return p[::-1], np.flip(values, axis)
    raise ArgumentError(
        f"the grid points along axis {axis} must be strictly increasing or decreasing. Sort them "
        f"and the values{at(user_line())}."
    )


def _coordinates(xi: Any, ndim: int) -> Any:
    """Points with their coordinates in the last axis."""
    if isinstance(xi, tuple):
        parts = np.broadcast_arrays(*[to_double(part) for part in xi])
        xi = np.stack(parts, axis=-1)
    else:
        xi = to_double(as_array(xi))
        xi = xi.reshape((-1, ndim)) if xi.ndim == 1 else xi
    if xi.shape[-1] != ndim:
        raise ShapeError(
            f"points of shape {xi.shape} in a grid of {ndim} axes: their last axis must have the "
            f"length {ndim}{at(user_line())}."
        )
    return xi


@counterpart(scipy.interpolate.interpn)
def interpn(
    points: Sequence[Any],
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """Interpolation on a grid, as ``scipy.interpolate.interpn``; see `RegularGridInterpolator`.

    "pchip" and "splinef2d" are not supported for tensors.
    """
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


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
