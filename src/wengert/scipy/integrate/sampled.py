"""Integrals of samples: trapezoidal, Simpson's and Newton-Cotes rules, Romberg's; fixed_quad.

    trapezoid, cumulative_trapezoid    the trapezoidal rule
    simpson, cumulative_simpson        Simpson's rule
    romb                               Romberg's method: 2^k + 1 equally spaced samples

Each is linear in the samples `y` and rational in the steps, and differentiable with respect to
both.  Where two sample points coincide, quotients by their distance and their derivatives are 0, as
in SciPy.

Gauss-Legendre points and weights are constants, so the integral is a sum of function values and can
be differentiated with respect to the limits and everything the function depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate
import scipy.special
from scipy import integrate as scipy_integrate

from wengert._engine.core.handle import is_traced, shape_of, value_of
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array, spread
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.numpy import cumulative as numpy_cumulative

from ..dispatch import counterpart, floating, known_length, zero_if_zero

__all__ = ["cumulative_simpson", "cumulative_trapezoid", "romb", "simpson", "trapezoid"]


def _move_axis_last(y: Any, axis: int) -> Any:
    """`y` with the sample axis moved to the end."""
    y = as_array(y)
    if not -y.ndim <= axis < y.ndim:
        raise np.exceptions.AxisError(axis, y.ndim)
    return y if axis in (-1, y.ndim - 1) else np.moveaxis(y, axis, -1)


def _restore_axis(samples: Any, axis: int, ndim: int) -> Any:
    return samples if axis in (-1, ndim - 1) else np.moveaxis(samples, -1, axis)


def _steps(x: Any, y: Any, axis: int, name: str) -> Any:
    """The steps between the sample points `x`, which are 1-D or have the shape of `y`."""
    x = floating(x)
    if x.ndim != 1 and x.ndim != y.ndim:
        raise ShapeError(
            f"{name}: x of shape {x.shape} for samples of shape {y.shape}. x must be "
            f"one-dimensional, or have the shape of the samples{at(user_line())}."
        )
    x = x if x.ndim == 1 else _move_axis_last(x, axis)
    if x.shape[-1] != shape_of(y)[axis]:
        raise ShapeError(
            f"{name}: x of length {x.shape[-1]} for {shape_of(y)[axis]} samples along axis {axis}. "
            f"Give one element for each sample{at(user_line())}."
        )
    return x[..., 1:] - x[..., :-1]


@counterpart(scipy_integrate.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral by the trapezoidal rule, as ``scipy.integrate.trapezoid``."""
    return numpy_cumulative.trapezoid(floating(y), x, dx, axis)


@counterpart(scipy_integrate.cumulative_trapezoid)
def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Cumulative integrals by the trapezoidal rule, as ``scipy.integrate.cumulative_trapezoid``.

    Parameters
    ----------
    y : array_like
    x : array_like, optional
        The sample points, 1-D or with the shape of `y`.
    dx : float or Tensor, default 1.0
        The step if `x` is not given.
    axis : int, default -1
    initial : {None, 0}
        0 prepends a 0, so that the result has the length of `y`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import cumulative_trapezoid
    >>> wg.grad(lambda y: cumulative_trapezoid(y)[1])(np.ones(4))
    array([0.5, 1. , 0.5, 0. ])
    """
    y = as_array(y)
    samples = _move_axis_last(y, axis)
    step = dx if x is None else _steps(x, y, axis, "cumulative_trapezoid")
    cumulative = np.cumsum(step * (samples[..., 1:] + samples[..., :-1]) / 2.0, axis=-1)
    if initial is not None:
        if initial != 0:
            raise ArgumentError(
                f"cumulative_trapezoid with initial={initial!r}: it must be None or 0. Add the "
                f"value to the result{at(user_line())}."
            )
        cumulative = _prepend(np.zeros((), cumulative.dtype), cumulative)
    return _restore_axis(cumulative, axis, y.ndim)


def _prepend(first: Any, samples: Any) -> Any:
    """`samples` with `first` prepended along the last axis."""
    front = spread(first, (*samples.shape[:-1], 1))
    return np.concatenate([front, samples], axis=-1)


# ---- Simpson's rule ----------------------------------------------------------------------------


@counterpart(scipy_integrate.simpson)
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral by Simpson's rule, as ``scipy.integrate.simpson``.

    Parameters
    ----------
    y : array_like
        For an even number of samples the last step is integrated with the parabola through the
        last three samples (K. V. Cartwright, "Simpson's rule cumulative integration with MS Excel
        and irregularly-spaced data", 2017).
    x : array_like, optional
        The sample points.
    dx : float or Tensor, default 1.0
    axis : int, default -1

    Notes
    -----
    Differentiable with respect to `y`, `x` and `dx`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import simpson
    >>> wg.grad(lambda y: simpson(y, dx=3.0))(np.ones(5))
    array([1., 4., 2., 4., 1.])
    """
    y = as_array(y)
    samples = _move_axis_last(y, axis)
    n = known_length(samples.shape[-1], "simpson")
    steps = None if x is None else _steps(x, y, axis, "simpson")
    if steps is not None:
        steps = casts.astype(steps, float) if steps.dtype != np.float64 else steps
    if n % 2 == 1:
        return _simpson_pairs(samples, steps, dx, n)
    if n == 0:
        raise ShapeError(f"simpson of 0 samples: give at least one{at(user_line())}.")
    if n == 2:
        last = dx if steps is None else steps[..., -1]
        return 0.5 * last * (samples[..., -1] + samples[..., -2])
    h0 = h1 = np.float64(1.0) * dx
    if steps is not None:
        h0, h1 = steps[..., -2], steps[..., -1]
    return _simpson_pairs(samples, steps, dx, n - 1) + _last_step(samples, h0, h1)


def _simpson_pairs(samples: Any, steps: Any, dx: Any, n: int) -> Any:
    """The integral over the first n - 1 steps, in pairs of steps."""
    left, middle, right = (samples[..., k : n - 2 + k : 2] for k in range(3))
    if steps is None:
        return np.sum(left + 4.0 * middle + right, axis=-1) * (dx / 3.0)
    h0, h1 = steps[..., 0 : n - 1 : 2], steps[..., 1 : n - 1 : 2]
    both = h0 + h1
    inner = both * zero_if_zero(both, h0 * h1)
    ends = left * (2.0 - zero_if_zero(h1, h0)) + right * (2.0 - zero_if_zero(h0, h1))
    return np.sum(both / 6.0 * (ends + middle * inner), axis=-1)


def _last_step(samples: Any, h0: Any, h1: Any) -> Any:
    """The integral over the last step, h1, of the parabola through the last three samples."""
    both = 6 * (h0 + h1)
    last = zero_if_zero(h1 * (2 * h1 + 3 * h0), both)
    before = zero_if_zero(h1 * (h1 + 3 * h0), 6 * h0)
    first = zero_if_zero(h1**3, h0 * both)
    return last * samples[..., -1] + before * samples[..., -2] - first * samples[..., -3]


@counterpart(scipy_integrate.cumulative_simpson)
def cumulative_simpson(
    y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Cumulative integrals by Simpson's rule, as ``scipy.integrate.cumulative_simpson``.

    Parameters
    ----------
    y : array_like
        Fewer than three samples are integrated by the trapezoidal rule.
    x : array_like, optional
        The sample points, strictly increasing.
    dx : array_like, default 1.0
        A scalar step, or an array of the shape of `y` with length 1 along the axis.
    axis : int, default -1
    initial : array_like, optional
        Prepended to the result, and added to all its elements; of the shape of `dx`.

    Notes
    -----
    Differentiable with respect to `y`, `x`, `dx` and `initial`. Even steps use the parabola through
    both ends and the next sample; odd steps and the last one use the previous sample.
    """
    y = floating(y)
    samples = _move_axis_last(y, axis)
    n = known_length(samples.shape[-1], "cumulative_simpson")
    if n < 3:
        cumulative = _move_axis_last(cumulative_trapezoid(y, x, dx, axis), axis)
    else:
        if x is None:
            h = floating(dx)
            h = h if h.ndim == 0 else _check_shape(h, y, axis, "dx")
            h = spread(h, (*samples.shape[:-1], n - 1))
        else:
            h = _require_increasing(_steps(x, y, axis, "cumulative_simpson"))
        cumulative = np.cumsum(_integrals_of_steps(samples, h, even=x is None), axis=-1)
    if initial is not None:
        start = floating(initial)
        start = start if start.ndim == 0 else _check_shape(start, y, axis, "initial")
        cumulative = _prepend(start, cumulative + start)
    return _restore_axis(cumulative, axis, y.ndim)


def _check_shape(x: Any, y: Any, axis: int, name: str) -> Any:
    if x.shape != tuple(1 if k == axis % y.ndim else m for k, m in enumerate(y.shape)):
        raise ShapeError(
            f"cumulative_simpson: {name} of shape {x.shape} for samples of shape {y.shape}. It "
            f"must be a number, or have length 1 along axis {axis}{at(user_line())}."
        )
    return _move_axis_last(x, axis)


def _require_increasing(steps: Any) -> Any:
    if not is_traced(steps) and np.any(value_of(steps) <= 0):
        raise ArgumentError(
            "cumulative_simpson: x must be strictly increasing. Sort x and the samples"
            f"{at(user_line())}."
        )
    return steps


def _integrals_of_steps(samples: Any, h: Any, even: bool) -> Any:
    """The integral over each step."""
    n = samples.shape[-1]
    first = _first_step_integrals(samples, h, even)
    second = _first_step_integrals(samples[..., ::-1], h[..., ::-1], even)[..., ::-1]
    paired = np.stack(
        [first[..., : 2 * ((n - 1) // 2) : 2], second[..., : 2 * ((n - 1) // 2) : 2]], axis=-1
    )
    merged = paired.reshape((*samples.shape[:-1], 2 * ((n - 1) // 2)))
    return merged if n % 2 == 1 else np.concatenate([merged, second[..., -1:]], axis=-1)


def _first_step_integrals(samples: Any, h: Any, even: bool) -> Any:
    """For each three consecutive samples, the integral of their parabola over the first step."""
    left, middle, right = samples[..., :-2], samples[..., 1:-1], samples[..., 2:]
    h0, h1 = h[..., :-1], h[..., 1:]
    if even:
        return h0 / 12.0 * (5.0 * left + 8.0 * middle - right)
    ratio = h0 / (h0 + h1)
    outer = ratio * h0 / h1
    return h0 / 6.0 * ((3.0 - ratio) * left + (3.0 + outer + ratio) * middle - outer * right)


# ---- Romberg's method --------------------------------------------------------------------------


@counterpart(scipy_integrate.romb)
def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    """The integral by Romberg's extrapolation, as ``scipy.integrate.romb``.

    Parameters
    ----------
    y : array_like
        2^k + 1 samples.
    dx : float or Tensor, default 1.0
    axis : int, default -1
    show : bool
        Print the table. Not supported for tensors.

    Raises
    ------
    ShapeError
        The number of samples is not 2^k + 1.

    Notes
    -----
    Linear in `y` and `dx`. DLMF 3.5(ii).
    """
    samples = _move_axis_last(y, axis)
    n = known_length(samples.shape[-1], "romb")
    if n < 2 or (n - 1) & (n - 2):
        raise ShapeError(
            f"romb of {n} samples: their number must be one more than a power of two. Use simpson"
            f"{at(user_line())}."
        )
    if show:
        raise ArgumentError(
            f"romb of a tensor with show={show!r}: the table is not printed for tensors. Omit "
            f"show, or pass y.detach().numpy(){at(user_line())}."
        )
    h, step = (n - 1) * (np.float64(1.0) * dx), n - 1
    row = [(samples[..., 0] + samples[..., -1]) / 2.0 * h]
    while step > 1:
        halves = np.sum(samples[..., step // 2 :: step], axis=-1)
        new = [0.5 * (row[0] + h * halves)]
        for k, old in enumerate(row):
            new.append(new[k] + (new[k] - old) / (4 ** (k + 1) - 1))
        row, step, h = new, step // 2, h / 2.0
    return row[-1]


newton_cotes = scipy.integrate.newton_cotes  # constants


def fixed_quad(
    func: Callable[..., Any], a: Any, b: Any, args: tuple[Any, ...] = (), n: int = 5
) -> tuple[Any, None]:
    """The integral of a function by Gauss-Legendre quadrature, as ``scipy.integrate.fixed_quad``.

    Parameters
    ----------
    func : callable
        Takes an array of n points (and `args`) and returns the values along the last axis.
    a, b : float or Tensor
        The limits.
    args : tuple
    n : int, default 5
        The rule is exact for polynomials of degree 2 n - 1.

    Returns
    -------
    float or Tensor, None

    Raises
    ------
    ArgumentError
        A limit is infinite.

    Notes
    -----
    Differentiable with respect to `a`, `b` and everything that `func` uses. DLMF 3.5(v).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import fixed_quad
    >>> slope = wg.grad(lambda b: fixed_quad(lambda x: x**3, 0.0, b)[0])
    >>> float(slope(2.0).round(12))
    8.0
    """
    for end in (a, b):
        if not is_traced(end) and np.any(np.isinf(value_of(end))):
            raise ArgumentError(
                f"fixed_quad from {value_of(a)} to {value_of(b)}: the limits must be finite. "
                f"Substitute a variable with a finite range{at(user_line())}."
            )
    points, weights = scipy.special.roots_legendre(n)
    values = func((b - a) * (np.real(points) + 1) / 2.0 + a, *args)
    return (b - a) / 2.0 * np.sum(weights * values, axis=-1), None
