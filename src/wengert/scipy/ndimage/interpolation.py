"""Geometric transformations of arrays, by interpolating splines.

    map_coordinates      values at given coordinates
    geometric_transform  at coordinates that a function gives
    shift zoom           axis by axis
    rounded, real_of, grid_of, each_of, separately   parts of these functions

Differentiable with respect to the array, and to coordinates and distances.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.ndimage

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import TraceError, at, user_line

from ..dispatch import counterpart, floating
from .splines import along_axis, checked, prefiltered, sampled
from .windows import arguments, operand, result

__all__ = [
    "geometric_transform",
    "map_coordinates",
    "shift",
    "zoom",
]


def rounded(y: Any, dtype: np.dtype[Any], output: Any, name: str) -> Any:
    """The result; integers are rounded, as in SciPy."""
    kind = dtype.kind if output is None else np.dtype(output).kind
    if kind in "iu":
        y = np.trunc(np.where(y > 0, y + 0.5, y - 0.5))
    return result(y, dtype, output, name)


def real_of(x: Any) -> Any:
    """An argument as real numbers in double precision."""
    return casts.astype(floating(x), float)


def grid_of(shape: Sequence[int]) -> list[Any]:
    """The coordinates of all elements, an array for each axis."""
    return list(np.indices(tuple(shape)).astype(float))


@counterpart(scipy.ndimage.map_coordinates)
def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The values of an array at coordinates, as ``scipy.ndimage.map_coordinates``.

    Parameters
    ----------
    input : array or Tensor
    coordinates : array or Tensor
        A row for each axis of `input`.
    output : dtype, optional
        The dtype of the result; an array is not supported with tensors.
    order : int
        The order of the spline, 0 to 5. With 0 the derivative with respect to coordinates is zero.
    mode : str
        What is beyond the borders: all of SciPy's.
    cval : number or Tensor
    prefilter : bool
        Whether `input` has values, and not coefficients.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import map_coordinates
    >>> x = np.arange(16.0).reshape(4, 4) ** 2
    >>> at = lambda p: map_coordinates(x, p[:, None], order=1)[0]
    >>> wg.grad(at)(np.array([1.5, 1.25]))
    array([58., 15.])
    """
    checked(order, mode)
    x, dtype = operand(input)
    points = real_of(coordinates)
    if points.ndim < 1 or points.shape[0] != x.ndim:
        raise RuntimeError("invalid shape for coordinate array")
    x, added = prefiltered(x, order, mode, cval, prefilter)
    y = sampled(x, [points[k] for k in range(x.ndim)], order, mode, cval, added)
    return rounded(y, dtype, output, "map_coordinates")


@counterpart(scipy.ndimage.geometric_transform)
def geometric_transform(
    input: Any,
    mapping: Callable[..., Any],
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: dict[str, Any] | None = None,
) -> Any:
    """The values of an array at mapped coordinates, as ``scipy.ndimage.geometric_transform``.

    Parameters
    ----------
    input : array or Tensor
    mapping : callable
        ``mapping(coordinates, *extra_arguments, **extra_keywords)`` takes the coordinates of an
        element of the result, a tuple of numbers, and returns those in `input`. It is called for
        all elements at once (`wengert.vmap`).
    output_shape : tuple of int, optional
    output, order, mode, cval, prefilter
        As for `map_coordinates`.
    extra_arguments, extra_keywords
        Differentiated, too.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import geometric_transform
    >>> def moved(distance):
    ...     mapping = lambda p, distance: (p[0] - distance,)
    ...     x = np.arange(6.0) ** 2
    ...     return geometric_transform(x, mapping, order=1, extra_arguments=(distance,))
    >>> wg.jvp(moved, (0.5,), (1.0,))[1]
    array([ 0., -1., -3., -5., -7., -9.])
    """
    checked(order, mode)
    x, dtype = operand(input)
    shape = x.shape if output_shape is None else tuple(map(int, output_shape))
    function, keywords = converted(mapping), extra_keywords or {}

    def point(*p: Any) -> list[Any]:
        mapped = function(p, *extra_arguments, **keywords)
        return [real_of(m) for m in mapped]

    flat = [g.reshape(-1) for g in grid_of(shape)]
    points = [p.reshape(shape) for p in vmap(point)(*flat)]
    if len(points) != x.ndim:
        raise RuntimeError("invalid shape for coordinate array")
    x, added = prefiltered(x, order, mode, cval, prefilter)
    y = sampled(x, points, order, mode, cval, added)
    return rounded(y, dtype, output, "geometric_transform")


def each_of(value: Any, count: int) -> list[Any]:
    """One value for each axis, of a number, a sequence or a tensor."""
    if isinstance(value, list | tuple):
        return arguments(value, count)
    value = as_array(value)
    return [value] * count if value.ndim == 0 else arguments(list(value), count)


def separately(
    x: Any, coordinates: Sequence[Any], order: int, mode: str, cval: Any, added: int
) -> Any:
    """The values of a spline on a grid, axis by axis."""
    if mode == "grid-constant" and x.ndim > 1:
        # The value beyond the borders is not the same after an interpolation along another axis.
        sizes = [c.shape[0] for c in coordinates]
        points = []
        for axis, c in enumerate(coordinates):
            shape = [1] * len(sizes)
            shape[axis] = sizes[axis]
            points.append(np.broadcast_to(c.reshape(shape), tuple(sizes)))
        return sampled(x, points, order, mode, cval, added)
    mask: Any = None
    for axis, c in enumerate(coordinates):
        x, outside = along_axis(x, axis, c, order, mode, cval, added)
        if outside is not None:
            mask = outside if mask is None else np.logical_or(mask, outside)
    return x if mask is None else np.where(mask, cval, x)


@counterpart(scipy.ndimage.shift)
def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """An array shifted by any distance, as ``scipy.ndimage.shift``.

    Parameters
    ----------
    input : array or Tensor
    shift : float, sequence or Tensor
        The distance for all axes, or for each.
    output, order, mode, cval, prefilter
        As for `map_coordinates`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import shift
    >>> wg.grad(lambda d: shift(np.arange(6.0) ** 2, d)[3])(0.5).round(4)
    np.float64(-5.1316)
    """
    checked(order, mode)
    x, dtype = operand(input)
    distances = [real_of(d) for d in each_of(shift, x.ndim)]
    axes = [np.arange(n) - d for n, d in zip(x.shape, distances, strict=True)]
    x, added = prefiltered(x, order, mode, cval, prefilter)
    y = separately(x, axes, order, mode, cval, added)
    return rounded(y, dtype, output, "shift")


@counterpart(scipy.ndimage.zoom)
def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """An array enlarged by interpolation, as ``scipy.ndimage.zoom``.

    Parameters
    ----------
    input : array or Tensor
    zoom : float or sequence of float
        It determines the shape of the result, and nothing else.
    output, order, mode, cval, prefilter
        As for `map_coordinates`.
    grid_mode : bool
        As in SciPy.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import zoom
    >>> wg.grad(lambda x: np.sum(zoom(x, 2, order=1)))(np.ones(3)).round(3)
    array([1.8, 2.4, 1.8])
    """
    checked(order, mode)
    x, dtype = operand(input)
    factors = arguments(known_numbers(zoom, "zoom"), x.ndim)
    if prefilter and all(z == 1 for z in factors):
        return result(x, dtype, output, "zoom")
    if grid_mode and mode in ("constant", "wrap"):
        warnings.warn(
            f"It is recommended to use mode = grid-{mode} instead of {mode} when grid_mode is "
            "True.",
            stacklevel=3,
        )
    axes = []
    for n, factor in zip(x.shape, factors, strict=True):
        size = round(n * factor)
        nominator, divisor = (n, size) if grid_mode else (n - 1, size - 1)
        step = nominator / divisor if divisor else 1.0
        positions = np.arange(size)
        axes.append((positions + 0.5) * step - 0.5 if grid_mode else positions * step)
    x, added = prefiltered(x, order, mode, cval, prefilter)
    y = separately(x, axes, order, mode, cval, added)
    return rounded(y, dtype, output, "zoom")


def known_numbers(value: Any, what: str) -> Any:
    """An argument that determines a shape, as plain numbers.

    Raises
    ------
    TraceError
        It is traced.
    """
    leaves = value if isinstance(value, list | tuple) else [value]
    if any([isinstance(v, Handle) and is_traced(v) for v in leaves]):
        raise TraceError(
            f"{what} is traced, and the shape of the result depends on its value. Pass a plain "
            f"number{at(user_line())}."
        )
    plain = [value_of(v) for v in leaves]
    return plain if isinstance(value, list | tuple) else plain[0]
