"""Sampling of images at arbitrary points, with PyTorch's names and coordinates.

    affine_grid   the points of an affine map
    grid_sample   the values of images at points

Coordinates run from -1 to 1 over an axis: with `align_corners` these are the centers of the first
and last elements, otherwise their outer edges.  The coordinates of a point are in the reverse order
of the axes, (x, y) or (x, y, z).  Elements are read at flat positions along one axis, so that a
sample is one gather for each neighbor, and its derivative one scatter.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.casts import astype
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from .conv import array_of

__all__ = ["affine_grid", "grid_sample"]

_MODES = ("bilinear", "nearest", "bicubic")
_PADDING = ("zeros", "border", "reflection")
_A = -0.75  # the parameter of Keys' cubic kernel, as in `interpolate`
_LARGEST_POSITION = 1e9  # outside of every image


def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Any:
    """The points to which affine maps take the centers of the elements of an image.

    Parameters
    ----------
    theta : array or Tensor, shape (batch, 2, 3) or (batch, 3, 4)
        Matrices that map (x, y, 1) or (x, y, z, 1) to coordinates for `grid_sample`.
    size : sequence of int
        The shape of the sampled images, (batch, channels, height, width) or (batch, channels,
        depth, height, width).
    align_corners : bool, optional
        As in `grid_sample`; default False.

    Returns
    -------
    array or Tensor, shape (batch, height, width, 2) or (batch, depth, height, width, 3)

    Raises
    ------
    ShapeError
        The shapes do not match.
    DtypeError
        `theta` does not have floating-point elements.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn import functional as F
    >>> identity = np.eye(2, 3)[None]
    >>> F.affine_grid(identity, (1, 1, 2, 2))[0, :, :, 0]
    array([[-0.5,  0.5],
           [-0.5,  0.5]])
    """
    theta, size = array_of(theta), tuple(size)
    shape, axes = shape_of(theta), len(size) - 2
    if axes not in (2, 3) or tuple(shape[1:]) != (axes, axes + 1) or len(shape) != 3:
        raise ShapeError(
            f"affine_grid was given theta of shape {spelled(shape)} for images of shape "
            f"{spelled(size)}: expected (batch, 2, 3) for (batch, channels, height, width), or "
            f"(batch, 3, 4) for (batch, channels, depth, height, width){at(user_line())}."
        )
    if shape[0] != size[0]:
        raise ShapeError(
            f"affine_grid: {shape[0]} matrices for {size[0]} images: theta has shape "
            f"{spelled(shape)}, the images {spelled(size)}{at(user_line())}."
        )
    _check_floats("affine_grid", "theta", theta)
    lines = []
    for n in size[2:]:
        line = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(n)
        lines.append(line if align_corners else line * ((n - 1) / n))
    points = np.stack(np.meshgrid(*lines, indexing="ij")[::-1], axis=-1).astype(dtype_of(theta))
    flat = np.reshape(points, (-1, axes))
    turned = np.swapaxes(theta, 1, 2)
    grid = np.matmul(flat, turned[:, :axes]) + turned[:, axes:]
    return np.reshape(grid, (shape[0], *size[2:], axes))


def grid_sample(
    x: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """The values of images at given points.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, height, width)
        Or (batch, channels, depth, height, width).
    grid : array or Tensor, shape (batch, rows, columns, 2)
        Or (batch, planes, rows, columns, 3). Points with coordinates from -1 to 1 inside of the
        image, in the order (x, y) or (x, y, z).
    mode : {"bilinear", "nearest", "bicubic"}
        "bilinear" is trilinear for three spatial axes; "bicubic" is for two.
    padding_mode : {"zeros", "border", "reflection"}
        Elements outside: zeros, the nearest of the image, or the image reflected at its borders.
    align_corners : bool, optional
        Whether -1 and 1 are the centers of the first and last elements, instead of their outer
        edges; default False.

    Returns
    -------
    array or Tensor, shape (batch, channels, rows, columns)
        Or (batch, channels, planes, rows, columns).

    Raises
    ------
    ShapeError
        The shapes do not match.
    ArgumentError
        A mode is unknown, or "bicubic" is given with three spatial axes.
    DtypeError
        `grid` does not have floating-point elements.

    Notes
    -----
    The derivative with respect to a coordinate at which pieces meet is that of the piece of larger
    coordinates, and zero at the ends of "border" and "reflection", as in PyTorch. A point that is
    NaN or infinite gives NaN, except with "nearest" (which reads zeros or an element of the border)
    and where "border" and "reflection" move it into the image.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn import functional as F
    >>> x = np.array([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> F.grid_sample(x, np.zeros((1, 1, 1, 2)))
    array([[[[1.5]]]])
    """
    x, grid = array_of(x), array_of(grid)
    space = _checked(x, grid, mode, padding_mode)
    if dtype_of(grid) == np.float16:  # positions need more digits
        grid = astype(grid, np.float32)
        return astype(grid_sample(x, grid, mode, padding_mode, align_corners), dtype_of(x))
    axes, align = len(space), bool(align_corners)
    batch, channels = shape_of(x)[:2]
    shape = shape_of(grid)[1:-1]
    flat = np.reshape(x, (batch, channels, -1))
    # The last coordinate belongs to the first axis.
    points = [np.reshape(grid[..., axes - 1 - k], (batch, -1)) for k in range(axes)]
    points = [_in_elements(p, n, align) for p, n in zip(points, space, strict=True)]
    if mode == "bicubic":
        neighbors = _cubic_neighbors(points, space, padding_mode, align)
    else:
        points = [_inside(p, n, padding_mode, align) for p, n in zip(points, space, strict=True)]
        neighbors = [_near(p, mode) for p in points]
    out: Any = None
    for corner in itertools.product(*neighbors):
        part = _read(flat, space, [place for place, _ in corner], padding_mode)
        weight: Any = None
        for _, one in corner:
            if one is not None:
                weight = one if weight is None else weight * one
        part = part if weight is None else part * np.expand_dims(weight, 1)
        out = part if out is None else out + part
    return np.reshape(out, (batch, channels, *shape))


def _checked(x: Any, grid: Any, mode: str, padding_mode: str) -> tuple[int, ...]:
    """The lengths of the spatial axes, after checking the arguments."""
    shape, points = shape_of(x), shape_of(grid)
    axes = len(shape) - 2
    if mode not in _MODES:
        raise ArgumentError(
            f"grid_sample: mode must be one of {', '.join(_MODES)}, got {mode!r}{at(user_line())}."
        )
    if padding_mode not in _PADDING:
        raise ArgumentError(
            f"grid_sample: padding_mode must be one of {', '.join(_PADDING)}, got "
            f"{padding_mode!r}{at(user_line())}."
        )
    if axes not in (2, 3) or len(points) != len(shape) or points[-1] != axes:
        raise ShapeError(
            f"grid_sample was given images of shape {spelled(shape)} and a grid of shape "
            f"{spelled(points)}: expected (batch, channels, height, width) and (batch, rows, "
            f"columns, 2), or one more spatial axis in both and 3 coordinates{at(user_line())}."
        )
    if points[0] != shape[0]:
        raise ShapeError(
            f"grid_sample: {shape[0]} images and {points[0]} grids: shapes {spelled(shape)} and "
            f"{spelled(points)}{at(user_line())}."
        )
    if mode == "bicubic" and axes != 2:
        raise ArgumentError(
            f"grid_sample: mode='bicubic' is for two spatial axes, got images of shape "
            f"{spelled(shape)}{at(user_line())}."
        )
    space = tuple(shape[2:])
    if not all(isinstance(n, int) for n in space) or min(space) < 1:
        raise ShapeError(
            f"grid_sample: the spatial axes of images must have known, nonzero lengths, got shape "
            f"{spelled(shape)}{at(user_line())}."
        )
    _check_floats("grid_sample", "grid", grid)
    return space


def _check_floats(op_name: str, name: str, x: Any) -> None:
    if dtype_of(x).kind != "f":
        raise DtypeError(
            f"{op_name}: {name} must have floating-point elements, got {dtype_of(x)}"
            f"{at(user_line())}."
        )


# ---- coordinates -------------------------------------------------------------------------------


def _in_elements(point: Any, n: int, align: bool) -> Any:
    """A coordinate between -1 and 1 as a position along an axis of length n."""
    return (point + 1.0) * ((n - 1) / 2.0) if align else ((point + 1.0) * n - 1.0) / 2.0


def _inside(position: Any, n: int, padding_mode: str, align: bool) -> Any:
    """Positions moved into the axis, for all modes except zeros."""
    if padding_mode == "zeros":
        return position
    if padding_mode == "reflection":
        position = _reflected(position, n, align)
    # The derivative is zero at the ends, too.
    within = (position > 0.0) & (position < n - 1.0)
    ends = np.where(position > 0.0, n - 1.0, 0.0).astype(dtype_of(position))
    return np.where(within, position, ends)


def _reflected(position: Any, n: int, align: bool) -> Any:
    """Positions reflected at the centers, or else the edges, of the first and last elements."""
    low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
    if span == 0.0:
        return np.zeros_like(position)
    position = np.where(np.abs(position) < _LARGEST_POSITION, position, low)
    away = np.abs(position - low)
    turns = np.floor(away / span)
    rest = away - turns * span
    return low + np.where(np.mod(turns, 2.0) == 0.0, rest, span - rest)


def _near(position: Any, mode: str) -> list[tuple[Any, Any]]:
    """The neighbors of a position along an axis, with their weights."""
    if mode == "nearest":
        return [(_finite(np.rint(position)), None)]
    left = np.floor(position)
    share = position - left
    left = _finite(left)
    return [(left, 1.0 - share), (left + 1.0, share)]


def _finite(place: Any) -> Any:
    """Places that can be converted to integers: -4, which is outside, for NaN and infinity."""
    return np.where(np.abs(place) < _LARGEST_POSITION, place, -4.0)


def _cubic_neighbors(points: Any, space: Any, padding_mode: str, align: bool) -> Any:
    """The four neighbors along each axis, which are moved into it, and their weights."""
    found = []
    for position, n in zip(points, space, strict=True):
        first = np.floor(position)
        t = position - first
        first = _finite(first)
        places = [_inside(first + k, n, padding_mode, align) for k in range(-1, 3)]
        found.append(list(zip(places, _cubic_weights(t), strict=True)))
    return found


def _cubic_weights(t: Any) -> list[Any]:
    """Keys' weights of the four elements around a position t after the second."""

    def far(t: Any) -> Any:
        return ((t - 5.0) * t + 8.0) * t * _A - 4.0 * _A

    def near(t: Any) -> Any:
        return ((_A + 2.0) * t - (_A + 3.0)) * t * t + 1.0

    return [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]


def _read(flat: Any, space: Any, places: Sequence[Any], padding_mode: str) -> Any:
    """Elements at positions along each axis; zeros outside."""
    index: Any = None
    inside: Any = None
    for place, n in zip(places, space, strict=True):
        within = (place >= 0) & (place <= n - 1)
        inside = within if inside is None else inside & within
        whole = astype(np.clip(place, 0, n - 1), np.int64)
        index = whole if index is None else index * n + whole
    part = np.take_along_axis(flat, np.expand_dims(index, 1), axis=2)
    return np.where(np.expand_dims(inside, 1), part, 0) if padding_mode == "zeros" else part
