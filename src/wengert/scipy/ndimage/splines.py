"""Coefficients of interpolating splines, and their basis functions.

    spline_filter1d spline_filter  the coefficients
    basis                          the values of the basis functions at a point

SciPy runs a recursive filter in both directions; it is the convolution with its impulse response,
which decreases by a factor of 2 or more with each element, and is a sum of windows here.  Along
short axes it is the product with the matrix of SciPy's filter, whose boundary is approximate there.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.ndimage
from numpy.lib.array_utils import normalize_axis_index

from wengert.errors import at, user_line

from ..dispatch import counterpart, known_length
from .boundaries import extended, operand, result
from .weighted_windows import windowed

__all__ = ["spline_filter", "spline_filter1d"]

_LONGEST = 200  # elements of the impulse response on each side
_NEGLIGIBLE = 1e-18
_LONGEST_WITH_MATRIX = 32  # elements of axes with a matrix

# The boundary of the recursive filter for each mode.
_BOUNDARIES = {
    "mirror": "mirror",
    "constant": "mirror",
    "grid-constant": "mirror",
    "wrap": "mirror",
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "nearest": "reflect",
    "grid-wrap": "wrap",
}


@functools.cache
def _impulse_response(order: int) -> Any:
    """The coefficients of the spline through a single 1."""
    impulse = np.zeros(2 * _LONGEST + 1)
    impulse[_LONGEST] = 1.0
    response = scipy.ndimage.spline_filter1d(impulse, order)
    large = np.flatnonzero(np.abs(response) > _NEGLIGIBLE)
    response = response[large[0] : large[-1] + 1]
    response.flags.writeable = False
    return response


@functools.cache
def _matrix(n: int, order: int, mode: str) -> Any:
    """The coefficients of the unit vectors."""
    matrix = scipy.ndimage.spline_filter1d(np.eye(n), order, 0, mode=mode)
    matrix.flags.writeable = False
    return matrix


def coefficients(x: Any, order: int, axis: int, mode: str) -> Any:
    """The coefficients along one axis, in double precision."""
    if order < 2 or x.shape[axis] == 1:
        return x
    n = known_length(x.shape[axis], "a spline")
    if n <= _LONGEST_WITH_MATRIX:
        product = np.tensordot(_matrix(n, order, mode), x, ((1,), (axis,)))
        return product if axis == 0 else np.moveaxis(product, 0, axis)
    response = _impulse_response(order)
    radius = len(response) // 2
    around = extended(x, axis, radius, radius, _BOUNDARIES[mode], 0.0)
    shape = [1] * x.ndim
    shape[axis] = len(response)
    return windowed(around, response.reshape(shape))


def _check(order: int, mode: str) -> None:
    if order < 0 or order > 5:
        raise RuntimeError("spline order not supported")
    if mode not in _BOUNDARIES:
        raise RuntimeError(f"boundary mode not supported{at(user_line())}")


@counterpart(scipy.ndimage.spline_filter1d)
def spline_filter1d(
    input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror"
) -> Any:
    """The coefficients of splines along one axis, as ``scipy.ndimage.spline_filter1d``.

    Parameters
    ----------
    input : array or Tensor
    order : int
        0 to 5.
    axis : int
    output : dtype
    mode : str

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import spline_filter1d
    >>> wg.grad(lambda x: spline_filter1d(x)[1])(np.zeros(4)).round(4)
    array([-0.4667,  1.8667, -0.5333,  0.1333])
    """
    _check(order, mode)
    x, _ = operand(input)
    y = coefficients(x, order, normalize_axis_index(axis, x.ndim), mode)
    return result(y, np.dtype(float), output, "spline_filter1d")


@counterpart(scipy.ndimage.spline_filter)
def spline_filter(
    input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror"
) -> Any:
    """The coefficients of splines along all axes, as ``scipy.ndimage.spline_filter``.

    Parameters
    ----------
    input, order, output, mode
        As for `spline_filter1d`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import spline_filter
    >>> wg.grad(lambda x: spline_filter(x)[1, 1])(np.zeros((3, 3)))[1].round(4)
    array([-1.,  4., -1.])
    """
    _check(order, mode)
    if order < 2:
        raise RuntimeError("spline order not supported")
    x, _ = operand(input)
    for axis in range(x.ndim):
        x = coefficients(x, order, axis, mode)
    return result(x, np.dtype(float), output, "spline_filter")


def basis(u: Any, order: int) -> list[Any]:
    """The values of the basis functions that are not zero, at distance `u` from a knot.

    By the recurrence of C. de Boor (1972) for knots at distance 1.
    """
    values: list[Any] = [1.0]
    for k in range(1, order + 1):
        carried: Any = 0.0
        following = []
        for r, value in enumerate(values):
            part = value * (1.0 / k)
            following.append(carried + (r + 1 - u) * part)
            carried = (u + (k - r - 1)) * part
        values = [*following, carried]
    return values
