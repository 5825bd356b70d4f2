"""Functions of `autograd.numpy.numpy_vjps` with which programs write rules of their primitives.

    unbroadcast, unbroadcast_f   a cotangent summed over the axes along which a value was broadcast
    match_complex                the real part, for a real value
    balanced_eq, replace_zero    helpers of autograd's own rules
    repeat_to_match_shape        the cotangent of a sum, repeated to the shape of its argument

The engine sums cotangents of broadcast arguments itself; rules need not call `unbroadcast`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of

__all__ = [
    "balanced_eq",
    "match_complex",
    "metadata",
    "repeat_to_match_shape",
    "replace_zero",
    "unbroadcast",
    "unbroadcast_f",
]
Meta = tuple[tuple[Any, ...], int, Any, bool]


def metadata(x: Any) -> Meta:
    """Shape, number of axes, dtype, and whether the dtype is complex."""
    shape, dtype = shape_of(x), dtype_of(x)
    return shape, len(shape), dtype, dtype.kind == "c"


def match_complex(target: Any, x: Any) -> Any:
    """`x` as a cotangent of `target`: its real part if `target` is real and `x` is complex."""
    is_complex = metadata(target)[3]
    if is_complex == metadata(x)[3]:
        return x
    return x + 0j if is_complex else np.real(x)


def unbroadcast(x: Any, target_meta: Meta, broadcast_idx: int = 0) -> Any:
    """Sum `x` over the axes that broadcasting has added to a value or repeated.

    Parameters
    ----------
    x : array or Tensor
        A cotangent with the shape of a result.
    target_meta : tuple
        ``metadata(value)`` of the argument.
    broadcast_idx : int
        The axis of `x` before which broadcasting has added axes.

    Examples
    --------
    >>> from wengert.compat.autograd.numpy.numpy_vjps import metadata, unbroadcast
    >>> unbroadcast(np.ones((3, 2)), metadata(np.ones(2)))
    array([3., 3.])
    """
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    for axis, size in enumerate(shape):
        if size == 1 and shape_of(x)[axis] != 1:
            x = np.sum(x, axis=axis, keepdims=True)
    return np.real(x) if metadata(x)[3] and not is_complex else x


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The rule `f` of an elementwise function, with its result summed to the shape of `target`.

    Examples
    --------
    >>> from wengert.compat.autograd import grad
    >>> from wengert.compat.autograd.extend import defvjp, primitive
    >>> from wengert.compat.autograd.numpy.numpy_vjps import unbroadcast_f
    >>> @primitive
    ... def scaled(x, y):
    ...     return x * y
    >>> defvjp(scaled, lambda ans, x, y: unbroadcast_f(x, lambda g: g * y), None)
    >>> float(grad(lambda x: np.sum(scaled(x, np.arange(3.0))))(2.0))
    3.0
    """
    meta = metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def balanced_eq(x: Any, z: Any, y: Any) -> Any:
    """1 where `x` alone equals `z`, 1/2 where `y` does too, 0 elsewhere."""
    return (x == z) / (1.0 + (x == y))


def replace_zero(x: Any, val: Any) -> Any:
    """`x` with `val` in place of zeros."""
    return np.where(x, x, val)


def repeat_to_match_shape(g: Any, shape: Any, dtype: Any, axis: Any, keepdims: bool) -> Any:
    """The cotangent of a reduction, repeated to the shape of its argument; and how often."""
    if shape == ():
        return g, 1
    axes = range(len(shape)) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    chosen = {a % len(shape) for a in axes}
    kept = [1 if a in chosen else n for a, n in enumerate(shape)]
    repeated = np.broadcast_to(np.reshape(g, kept), shape).astype(dtype)
    return repeated, math.prod(shape[a] for a in chosen)
