"""Gaussian filters, and derivatives of Gaussians.

    gaussian_filter1d gaussian_filter   smoothing, or derivatives of it
    gaussian_gradient_magnitude         the length of the gradient
    gaussian_laplace                    the Laplacian

Differentiable with respect to the standard deviations too, for a fixed radius of the kernel.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage
from numpy.lib.array_utils import normalize_axis_index

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert.errors import TraceError, at, user_line

from ..dispatch import counterpart
from .convolutions import correlated
from .windows import arguments, axes_of, operand, result, staged

__all__ = [
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
]

_LEAST_SIGMA = 1e-15  # SciPy ignores axes with smaller ones


def _kernel(sigma: Any, order: int, radius: int) -> Any:
    """The kernel: a polynomial times a Gaussian, for derivatives of any order."""
    if order < 0:
        raise ValueError("order must be non-negative")
    variance = sigma * sigma
    x = np.arange(-radius, radius + 1)
    density = np.exp(-0.5 / variance * x**2)
    density = density / np.sum(density)
    if order == 0:
        return density
    # The derivative of q(x) exp(p(x)) is (q' + q p') exp(p), with p' = -x / sigma^2.
    powers = np.arange(order + 1)
    q: list[Any] = [1.0] + [0.0] * order
    for _ in range(order):
        derivative = [k * q[k] for k in range(1, order + 1)] + [0.0]
        product = [0.0] + [-c / variance for c in q[:-1]]
        q = [a + b for a, b in zip(derivative, product, strict=True)]
    polynomial = sum(q[k] * x ** int(powers[k]) for k in range(order + 1))
    return polynomial * density


def _radius_of(sigma: Any, truncate: float, radius: Any) -> int:
    """The radius of the kernel.

    Raises
    ------
    TraceError
        It depends on a traced standard deviation.
    """
    if radius is None:
        if is_traced(sigma):
            raise TraceError(
                "a Gaussian filter with a traced sigma: the length of the kernel depends on it. "
                f"Pass radius{at(user_line())}."
            )
        radius = int(truncate * float(value_of(sigma)) + 0.5)
    if not isinstance(radius, numbers.Integral) or radius < 0:
        raise ValueError("Radius must be a nonnegative integer.")
    return int(radius)


def smoothed(
    x: Any, sigma: Any, axis: int, order: int, mode: str, cval: Any, truncate: float, radius: Any
) -> Any:
    """A Gaussian filter along one axis, in double precision."""
    sigma = sigma if isinstance(sigma, Handle) else float(sigma)
    kernel = _kernel(sigma, order, _radius_of(sigma, truncate, radius))
    return correlated(x, kernel[::-1], axis, mode, cval)


@counterpart(scipy.ndimage.gaussian_filter1d)
def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Any:
    """A Gaussian filter along one axis, as ``scipy.ndimage.gaussian_filter1d``.

    Parameters
    ----------
    input : array or Tensor
    sigma : float or Tensor
        The standard deviation, which is differentiated with a constant radius.
    order : int
        The order of the derivative of the Gaussian.
    axis, output, mode, cval
        As for `correlate1d`.
    truncate : float
        The radius in standard deviations.
    radius : int, optional
        Required if `sigma` is traced.

    Returns
    -------
    array or Tensor

    Raises
    ------
    TraceError
        `sigma` is traced, and no radius is given.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import gaussian_filter1d
    >>> peak = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    >>> wg.grad(lambda s: gaussian_filter1d(peak, s)[2])(1.0).round(6)
    np.float64(-0.398915)
    """
    x, dtype = operand(input)
    axis = normalize_axis_index(axis, x.ndim)
    y = smoothed(x, sigma, axis, order, mode, cval, truncate, radius)
    return result(y, dtype, output, "gaussian_filter1d")


@counterpart(scipy.ndimage.gaussian_filter)
def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """A Gaussian filter, as ``scipy.ndimage.gaussian_filter``.

    Parameters
    ----------
    input : array or Tensor
    sigma, order, mode, radius
        As for `gaussian_filter1d`; one for all axes, or one for each.
    output, cval, truncate
        As for `gaussian_filter1d`.
    axes : tuple of int, optional

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import gaussian_filter
    >>> x = np.eye(5)
    >>> wg.jit(wg.grad(lambda x: gaussian_filter(x, 1.0)[2, 2]))(x)[2].round(4)
    array([0.0233, 0.0966, 0.1592, 0.0966, 0.0233])
    """
    x, dtype = operand(input)
    store = lambda y: staged(y, dtype, output, "gaussian_filter")  # noqa: E731
    y = _filtered(x, sigma, order, mode, cval, truncate, radius, axes, store)
    return result(y, dtype, output, "gaussian_filter")


def _filtered(
    x: Any,
    sigma: Any,
    order: Any,
    mode: Any,
    cval: Any,
    truncate: float = 4.0,
    radius: Any = None,
    axes: Any = None,
    store: Callable[[Any], Any] | None = None,
) -> Any:
    axes = axes_of(axes, x.ndim)
    each = [_of_sigma(sigma, len(axes))]
    each += [arguments(v, len(axes)) for v in (order, mode, radius)]
    for axis, s, k, how, r in zip(axes, *each, strict=True):
        if isinstance(s, Handle) or s > _LEAST_SIGMA:
            x = smoothed(x, s, axis, k, how, cval, truncate, r)
            x = x if store is None else store(x)
    return x


def _of_sigma(sigma: Any, count: int) -> list[Any]:
    if not isinstance(sigma, Handle):
        return arguments(sigma, count)
    tensor: Any = sigma
    return arguments(list(tensor) if tensor.ndim else tensor, count)


@counterpart(scipy.ndimage.gaussian_gradient_magnitude)
def gaussian_gradient_magnitude(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """The length of the gradient of a smoothed array; ``scipy.ndimage`` has the same.

    Parameters
    ----------
    input : array or Tensor
    sigma, output, mode, cval, axes, **kwargs
        As for `gaussian_filter`.

    Returns
    -------
    array or Tensor
        Its derivative is zero where the gradient vanishes.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import gaussian_gradient_magnitude
    >>> x = np.arange(25.0).reshape(5, 5)
    >>> wg.vjp(lambda x: gaussian_gradient_magnitude(x, 0.5)[2, 2], x)[0].round(3)
    np.float64(4.385)
    """
    x, dtype = operand(input)
    axes = axes_of(axes, x.ndim)
    modes = arguments(mode, len(axes))
    squares: Any = 0.0
    store = lambda y: staged(y, dtype, output, "gaussian_gradient_magnitude")  # noqa: E731
    for axis, how in zip(axes, modes, strict=True):
        order = [0] * x.ndim
        order[axis] = 1
        part = _filtered(x, sigma, order, how, cval, store=store, **kwargs)
        squares = squares + store(part * part)
    y = x if not axes else length_of(squares)
    return result(y, dtype, output, "gaussian_gradient_magnitude")


def length_of(squares: Any) -> Any:
    """The square root, with derivative zero at zero."""
    positive = squares > 0.0
    return np.where(positive, np.sqrt(np.where(positive, squares, 1.0)), 0.0)


@counterpart(scipy.ndimage.gaussian_laplace)
def gaussian_laplace(
    input: Any,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Any:
    """The Laplacian of a smoothed array, as ``scipy.ndimage.gaussian_laplace``.

    Parameters
    ----------
    input : array or Tensor
    sigma, output, mode, cval, axes, **kwargs
        As for `gaussian_filter`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import gaussian_laplace
    >>> wg.grad(lambda x: gaussian_laplace(x, 1.0)[3])(np.zeros(7)).round(3)
    array([ 0.037,  0.162,  0.   , -0.399,  0.   ,  0.162,  0.037])
    """
    x, dtype = operand(input)
    axes = axes_of(axes, x.ndim)
    modes = arguments(mode, len(axes))
    sigmas: list[Any] = [0.0] * x.ndim
    for axis, s in zip(axes, _of_sigma(sigma, len(axes)), strict=True):
        sigmas[axis] = s
    total: Any = None
    store = lambda y: staged(y, dtype, output, "gaussian_laplace")  # noqa: E731
    for axis, how in zip(axes, modes, strict=True):
        order = [0] * x.ndim
        order[axis] = 2
        part = _filtered(x, sigmas, order, how, cval, store=store, **kwargs)
        total = part if total is None else total + part
    return result(x if total is None else total, dtype, output, "gaussian_laplace")
