"""Piecewise polynomials: PPoly, the base of cubic splines; the banded linear systems of splines.

    banded    x with A x = b, A in banded form: ab[upper + i - j, j] = A[i, j]

The solution takes O(n (lower + upper)^2) time, by LAPACK, and the memory of the diagonals.  Its
derivative is a system with the conjugate transpose in the same form (`transposed`), and products of
diagonals.  The gradient is zero in the corners of `ab` that are outside of the matrix.

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
import scipy.linalg

from wengert._engine.core.handle import is_traced, possibly, value_of
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import fronted, ndim_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.ops.linalg.linear_solve import matrices
from wengert._engine.ops.shapes import reshape, transpose
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import floating, holds_tensors

__all__ = ["PPoly"]


def _dense(ab, b, *, lower, upper, transposed=False):
    n = ab.shape[1]
    a = np.zeros((n, n), ab.dtype)
    for i in range(n):
        for j in range(max(0, i - lower), min(n, i + upper + 1)):
            a[i, j] = ab[upper + i - j, j]
    return np.linalg.solve(a.conj().T if transposed else a, b)


@matrices("Remove coinciding data points", name="interpolate.banded", oracle=_dense)
def banded(ab, b, *, lower, upper, transposed=False):
    """The columns x with A x = b, or with the conjugate transpose of A; `b` has two axes."""
    if transposed:
        adjoint = np.zeros_like(ab)
        n = ab.shape[1]
        for r, diagonal in enumerate(ab):  # `shift` below the main diagonal
            shift = r - upper
            source, target = slice(max(0, -shift), n - max(0, shift)), slice(max(0, shift), None)
            adjoint[lower - shift, target][: max(0, n - abs(shift))] = diagonal[source].conj()
        ab, lower, upper = adjoint, upper, lower
    if not b.size:
        return np.zeros(b.shape, np.result_type(ab, b))
    return scipy.linalg.solve_banded((lower, upper), ab, b, check_finite=False)


@banded.spec
def _(ab: Spec, b: Spec, **_: Any) -> Spec:
    return Spec(b.shape, np.result_type(ab.dtype, b.dtype, np.float32))


def _pad_rows(x: Any, before: int, after: int) -> Any:
    return np.pad(x, ((before, after), (0, 0)))


def _diagonals_of_product(left: Any, right: Any, lower: int, upper: int) -> Any:
    """The diagonals of left @ adjoint(right)."""
    n = right.shape[0]
    padded = _pad_rows(left, upper, lower)
    conjugate = np.conjugate(right)
    rows = [np.sum(padded[r : r + n] * conjugate, axis=1) for r in range(lower + upper + 1)]
    return np.stack(rows)


def _product(ab: Any, x: Any, lower: int, upper: int, transposed: bool) -> Any:
    """A @ x, or adjoint(A) @ x if `transposed`."""
    n, width = x.shape[0], lower + upper
    total: Any = 0.0
    if transposed:
        padded, ab = _pad_rows(x, upper, lower), np.conjugate(ab)
        for r in range(width + 1):
            total = total + ab[r][:, None] * padded[r : r + n]
        return total
    for r in range(width + 1):
        total = total + _pad_rows(ab[r][:, None] * x, r, width - r)
    return total[upper : upper + n]


@banded.define_vjp
def _banded_vjp(t, out, ab, b, *, lower, upper, transposed=False):
    b_bar = banded(ab, t, lower=lower, upper=upper, transposed=not transposed)
    left, right = (out, b_bar) if transposed else (b_bar, out)
    return -_diagonals_of_product(left, right, lower, upper), b_bar


@banded.define_jvp
def _banded_jvp(dots, out, ab, b, *, lower, upper, transposed=False):
    ab_dot, b_dot = dots
    if ab_dot is not None:
        product = _product(ab_dot, out, lower, upper, transposed)
        b_dot = -product if b_dot is None else b_dot - product
    return banded(ab, b_dot, lower=lower, upper=upper, transposed=transposed)


@banded.batch
def _banded_batch(args, batched, size, **params):
    ab, b = args
    if batched[0] or ndim_of(b) != 3:
        return NotImplemented
    _, n, columns = fronted(b, batched[1], size).shape
    padded = reshape(transpose(b, axes=(1, 0, 2)), shape=(n, size * columns))
    out = reshape(banded(ab, padded, **params), shape=(n, size, columns))
    return transpose(out, axes=(1, 0, 2))


@banded.examples
def _(rng):
    ab = rng.normal(size=(3, 4))
    ab[1] += 4.0
    yield (ab, rng.normal(size=(4, 1))), {"lower": 1, "upper": 1}
    ab = rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2))
    ab[0] += 5.0
    yield (ab, rng.normal(size=(2, 1))), {"lower": 1, "upper": 0, "transposed": True}


Extrapolate = bool | str | None


def to_double(x: Any) -> Any:
    """`x` in double precision, real or complex."""
    x = floating(x)
    wanted = np.dtype(complex if x.dtype.kind == "c" else float)
    return x if x.dtype == wanted else x.astype(wanted)


def piece_index(x: Any, points: Any) -> Any:
    """For each point, the index of the piece between breakpoints `x` that contains it."""
    if is_decreasing(x):
        return piece_index(-value_of(x), -value_of(points))
    index = np.searchsorted(value_of(x), value_of(points), side="right") - 1
    return np.minimum(np.maximum(index, 0), x.shape[0] - 2)


def take(x: Any, index: Any) -> Any:
    """`x[index]` along the first axis; the index may be traced."""
    return (as_tensor(x) if is_traced(index) else x)[index]


def outside(x: Any, points: Any) -> Any:
    """Whether points are below the first or above the last breakpoint."""
    ends, known = value_of(x), value_of(points)
    if is_decreasing(x):
        return (known > ends[0]) | (known < ends[-1])
    return (known < ends[0]) | (known > ends[-1])


def is_decreasing(x: Any) -> bool:
    """Whether breakpoints decrease, which is not supported for tensors."""
    return not is_traced(x) and bool(value_of(x)[-1] < value_of(x)[0])


def wrap_periodic(x: Any, points: Any) -> Any:
    """Points reduced by multiples of the period to the interval of the breakpoints."""
    return x[0] + np.remainder(points - x[0], x[-1] - x[0])


def move_point_axes(values: Any, ndim: int, axis: int) -> Any:
    """Move the first `ndim` axes, those of the points, to position `axis`."""
    if axis == 0 or values.ndim == ndim:
        return values
    order = list(range(values.ndim))
    return np.transpose(values, order[ndim : ndim + axis] + order[:ndim] + order[ndim + axis :])


def append_axes(x: Any, ndim: int) -> Any:
    """`x` with `ndim` axes of length 1 appended."""
    return x.reshape((*x.shape, *((1,) * ndim)))


def evaluate_polynomial(c: Any, t: Any, order: int) -> Any:
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
        The breakpoints, strictly increasing.
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
        c, x = to_double(c), to_double(x)
        if x.ndim != 1 or x.shape[0] < 2 or c.ndim < 2 or c.shape[1] != x.shape[0] - 1:
            raise ShapeError(
                f"PPoly: coefficients of shape {c.shape} for breakpoints of shape {x.shape}. Give "
                f"an array (k, m, ...) for m + 1 breakpoints{at(user_line())}."
            )
        if not -c.ndim + 1 < axis < c.ndim - 1:
            raise ShapeError(
                f"PPoly: axis {axis} is out of range for {c.ndim - 1} axes{at(user_line())}."
            )
        if not is_traced(x) and np.any(np.diff(value_of(x)) <= 0):
            raise ArgumentError(
                f"PPoly: breakpoints must be strictly increasing. Sort them{at(user_line())}."
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
                f"PPoly with nu={nu}: the order of the derivative must not be negative. Integrate "
                f"with antiderivative(){at(user_line())}."
            )
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        points = to_double(x)
        if points.dtype.kind == "c":
            raise ArgumentError(
                f"PPoly at complex points: the points must be real. Pass their real parts"
                f"{at(user_line())}."
            )
        if extrapolate == "periodic":
            points = wrap_periodic(self.x, points)
        index = piece_index(self.x, points)
        rest = self.c.ndim - 2
        t = append_axes(points - take(self.x, index), rest)
        coefficients = [take(row, index) for row in self.c]
        values = evaluate_polynomial(_CoefficientRows(coefficients), t, nu)
        if not extrapolate:
            is_outside = outside(self.x, points)
            if possibly(is_outside):
                values = choose(append_axes(is_outside, rest), np.nan, values)
        return as_tensor(move_point_axes(values, points.ndim, self.axis))

    def derivative(self, nu: int = 1) -> PPoly:
        """The derivative of order `nu`, a piecewise polynomial."""
        if nu < 0:
            return self.antiderivative(-nu)
        degree = self.c.shape[0] - 1
        if degree < nu:
            return _new_ppoly(0.0 * self.c[:1], self)
        powers = np.arange(degree, nu - 1, -1.0)
        factors = np.ones(len(powers))
        for j in range(nu):
            factors = factors * (powers - j)
        return _new_ppoly(append_axes(factors, self.c.ndim - 1) * self.c[: degree + 1 - nu], self)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The integral from the first breakpoint, `nu` times, a piecewise polynomial."""
        if nu < 0:
            return self.derivative(-nu)
        c = self.c
        lengths = append_axes(self.x[1:] - self.x[:-1], c.ndim - 2)
        for _ in range(nu):
            powers = np.arange(c.shape[0], 0, -1.0)
            raised = np.concatenate([c / append_axes(powers, c.ndim - 1), 0.0 * c[:1]])
            integrals = evaluate_polynomial(raised, lengths, 0)
            start = np.concatenate([0.0 * integrals[:1], np.cumsum(integrals[:-1], axis=0)])
            c = np.concatenate([raised[:-1], start[None]])
        new = _new_ppoly(c, self)
        if self.extrapolate == "periodic":
            new.extrapolate = False  # an integral is not periodic
        return new

    def integrate(self, a: Any, b: Any, extrapolate: Extrapolate = None) -> Any:
        """The integral from `a` to `b`, differentiable with respect to both."""
        if self._theirs is not None and not holds_tensors([a, b]):
            return self._theirs.integrate(a, b, extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        integral = _new_ppoly(self.antiderivative().c, self)
        a, b = as_tensor(a), as_tensor(b)
        if extrapolate != "periodic":
            return integral(b, 0, extrapolate) - integral(a, 0, extrapolate)
        x0, period = self.x[0], self.x[-1] - self.x[0]
        periods = [value_of(np.floor((v - x0) / period)) for v in (a, b)]
        inside = [integral(v - n * period, 0, True) for v, n in zip((a, b), periods, strict=True)]
        return inside[1] - inside[0] + (periods[1] - periods[0]) * integral(self.x[-1], 0, True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.c.shape[1]} pieces, degree {self.c.shape[0] - 1}>"


class _CoefficientRows:
    """Coefficients as a list of arrays, one for each power."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows
        self.shape = (len(rows),)

    def __getitem__(self, k: int) -> Any:
        return self.rows[k]


def _new_ppoly(c: Any, like: PPoly) -> PPoly:
    new = PPoly.__new__(PPoly)
    if not holds_tensors([c, like.x]):
        new._adopt(scipy.interpolate.PPoly(c, like.x, like.extrapolate, like.axis))
        return new
    new._theirs = None
    new.c, new.x, new.axis, new.extrapolate = c, like.x, like.axis, like.extrapolate
    return new


def check_data(name: str, x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """The data points and values in double precision, with the axis moved to the front.

    Raises
    ------
    ShapeError, ArgumentError
        The shapes do not match; `x` is not strictly increasing; a value is not finite.
    """
    x, y = to_double(as_array(x)), to_double(as_array(y))
    if not -y.ndim <= axis < y.ndim:
        raise np.exceptions.AxisError(axis, y.ndim)
    if x.ndim != 1 or x.shape[0] < 2 or x.dtype.kind == "c" or x.shape[0] != y.shape[axis]:
        raise ShapeError(
            f"{name}: x of shape {x.shape} ({x.dtype}) for values of shape {y.shape} along axis "
            f"{axis}. x must be real and one-dimensional, with one element for each value, and at "
            f"least two{at(user_line())}."
        )
    for what, array in (("x", x), ("the values", y)):
        if not is_traced(array) and not np.all(np.isfinite(value_of(array))):
            raise ArgumentError(
                f"{name}: NaN or infinity in {what}. Remove these points{at(user_line())}."
            )
    if not is_traced(x) and np.any(np.diff(value_of(x)) <= 0):
        raise ArgumentError(
            f"{name}: x must be strictly increasing. Sort x and the values{at(user_line())}."
        )
    return x, np.moveaxis(y, axis, 0) if axis % y.ndim else y
