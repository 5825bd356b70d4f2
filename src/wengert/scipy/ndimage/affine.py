"""Affine transformations of arrays, by interpolating splines.

affine_transform  by a matrix and an offset
rotate            in the plane of two axes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.ndimage
from numpy.lib.array_utils import normalize_axis_index

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert.errors import TraceError, at, user_line

from ..dispatch import counterpart
from ..special import cosdg, sindg
from .interpolation import each_of, grid_of, real_of, rounded, separately
from .splines import checked, prefiltered, sampled
from .windows import operand

__all__ = ["affine_transform", "rotate"]


@counterpart(scipy.ndimage.affine_transform)
def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """An affine transformation of an array, as ``scipy.ndimage.affine_transform``.

    Parameters
    ----------
    input : array or Tensor
    matrix : array or Tensor
        From coordinates of the result to those of `input`: a matrix, its diagonal, or a matrix of
        homogeneous coordinates.
    offset : float, array or Tensor
    output_shape : tuple of int, optional
    output, order, mode, cval, prefilter
        As for `map_coordinates`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import affine_transform
    >>> x = np.arange(16.0).reshape(4, 4)
    >>> turned = lambda m: affine_transform(x, m, order=1)[1, 1]
    >>> wg.grad(turned)(np.array([[0.9, 0.1], [-0.2, 1.1]]))
    array([[4., 4.],
           [1., 1.]])
    """
    checked(order, mode)
    x, dtype = operand(input)
    matrix = real_of(matrix)
    n = x.ndim
    if matrix.ndim not in (1, 2) or matrix.shape[0] < 1:
        raise RuntimeError("no proper affine matrix provided")
    if matrix.ndim == 2 and matrix.shape[1] == n + 1 and matrix.shape[0] in (n, n + 1):
        if matrix.shape[0] == n + 1 and not is_traced(matrix):
            last = value_of(matrix)[n]
            if not np.array_equal(last, [0] * n + [1]):
                raise ValueError(
                    f"Expected homogeneous transformation matrix with shape {matrix.shape} for "
                    f"image shape {x.shape}, but bottom row was not equal to {[0] * n + [1]}"
                )
        matrix, offset = matrix[:n, :n], matrix[:n, n]
    if matrix.shape[0] != n:
        raise RuntimeError("affine matrix has wrong number of rows")
    if matrix.ndim == 2 and matrix.shape[1] != n:
        raise RuntimeError("affine matrix has wrong number of columns")
    shape = x.shape if output_shape is None else tuple(map(int, output_shape))
    offsets = each_of(offset, n)
    x, added = prefiltered(x, order, mode, cval, prefilter)
    if matrix.ndim == 1:
        axes = [(np.arange(m) + o / s) * s for m, o, s in _zipped(shape, offsets, matrix)]
        y = separately(x, axes, order, mode, cval, added)
    else:
        y = sampled(x, _affine(matrix, offsets, grid_of(shape)), order, mode, cval, added)
    return rounded(y, dtype, output, "affine_transform")


def _zipped(shape: Sequence[int], offsets: Sequence[Any], diagonal: Any) -> list[Any]:
    return [(int(m), offsets[k], diagonal[k]) for k, m in enumerate(shape)]


def _affine(matrix: Any, offsets: Sequence[Any], grid: Sequence[Any]) -> list[Any]:
    coordinates = []
    for k, offset in enumerate(offsets):
        value = offset
        for j, positions in enumerate(grid):
            value = value + matrix[k, j] * positions
        coordinates.append(value)
    return coordinates


@counterpart(scipy.ndimage.rotate)
def rotate(
    input: Any,
    angle: Any,
    axes: tuple[int, int] = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """An array rotated in the plane of two axes, as ``scipy.ndimage.rotate``.

    Parameters
    ----------
    input : array or Tensor
    angle : float or Tensor
        In degrees.
    axes : pair of int
    reshape : bool
        Whether the shape of the result contains the whole array; with a traced angle it must be
        False.
    output, order, mode, cval, prefilter
        As for `map_coordinates`.

    Returns
    -------
    array or Tensor

    Raises
    ------
    TraceError
        The angle is traced, and `reshape` is true.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import rotate
    >>> x = np.arange(25.0).reshape(5, 5)
    >>> wg.grad(lambda a: rotate(x, a, reshape=False, order=1)[1, 2])(10.0).round(4)
    np.float64(0.0323)
    """
    checked(order, mode)
    x, dtype = operand(input)
    first, second = _plane(axes, x.ndim)
    if reshape:
        angle = angle if not isinstance(angle, Handle) else _known_angle(angle)
    angle = real_of(angle)
    c, s = cosdg(angle), sindg(angle)
    matrix = np.array([[c, s], [-s, c]]) if not isinstance(c, Handle) else _stacked(c, s)
    inner = np.array([x.shape[first], x.shape[second]])
    outer = inner
    if reshape:
        rows, columns = inner
        plain = np.asarray(value_of(matrix))
        bounds = plain @ [[0, 0, rows, rows], [0, columns, 0, columns]]
        outer = (np.ptp(bounds, axis=1) + 0.5).astype(int)
    offset = (inner - 1) / 2 - matrix @ ((outer - 1) / 2)
    moved = np.moveaxis(x, (first, second), (0, 1))
    moved, added = prefiltered(moved, order, mode, cval, prefilter, (0, 1))
    points = _affine(matrix, [offset[0], offset[1]], grid_of(outer.tolist()))
    y = sampled(moved, points, order, mode, cval, added)
    y = np.moveaxis(y, (0, 1), (first, second))
    return rounded(y, dtype, output, "rotate")


def _known_angle(angle: Handle) -> Any:
    if is_traced(angle):
        raise TraceError(
            "rotate with a traced angle: the shape of the result depends on its value. Pass "
            f"reshape=False{at(user_line())}."
        )
    return angle


def _stacked(c: Any, s: Any) -> Any:
    return np.stack([np.stack([c, s]), np.stack([-s, c])])


def _plane(axes: Any, ndim: int) -> tuple[int, int]:
    """The two axes, in increasing order."""
    if ndim < 2:
        raise ValueError("input array should be at least 2D")
    if len(axes) != 2:
        raise ValueError("axes should contain exactly two values")
    first, second = sorted([normalize_axis_index(int(a), ndim) for a in axes])
    if first == second:
        raise ValueError("axes must be different")
    return first, second
