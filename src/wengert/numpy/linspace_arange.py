"""Ranges: arithmetic and geometric sequences, and Vandermonde matrices.

    arithmetic     arange, linspace
    geometric      logspace, geomspace
    powers         vander

They are differentiable with respect to start, stop and step.  The number of elements is an integer
without derivative, which may be a symbolic size while a graph is built.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, shape_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert._engine.ops import casts, creation, joining, shapes
from wengert._engine.ops.indexing import getitem
from wengert._engine.ops.indexing.shapes import computed_range
from wengert._engine.tensor.numpy_dispatch import (
    as_array,
    broadcast_shapes,
    check_device,
    counterpart,
    dtype_of,
    numbers,
    plain,
    spread,
    values,
)
from wengert._engine.tensor.numpy_protocols import FUNCTIONS
from wengert._engine.tensor.operand_conversion import needed
from wengert.errors import TraceError, at, user_line

__all__ = ["arange", "linspace", "logspace", "geomspace", "vander"]


_OURS = (Handle, Dim)


def _constant(value: Any) -> Any:
    return wrap(constant(value))


def arange(
    start: Any = None, stop: Any = None, step: Any = None, *,
    dtype: Any = None, device: Any = None, like: Any = None,
) -> Any:  # fmt: skip
    """Evenly spaced numbers, differentiable with respect to start and step.

    Parameters
    ----------
    start, stop, step : number or Tensor
        As in NumPy: stop alone, or start and stop, or all three.
    dtype : dtype, optional

    Raises
    ------
    TraceError
        The number of elements depends on a value that is unknown while a graph is built.

    Examples
    --------
    >>> import wengert as wg, wengert.numpy as wnp
    >>> wg.jacobian(lambda step: wnp.arange(0.0, 1.0, step))(0.3)
    array([0., 1., 2., 3.])
    """
    if not isinstance(start, _OURS) and not (isinstance(stop, _OURS) or isinstance(step, _OURS)):
        made = _plain_range(start, stop, step, dtype, device)
        return _constant(made) if isinstance(like, Handle) else made
    check_device(device)
    start, stop, step = _range(start, stop, step)
    if any(isinstance(a, Dim) for a in (start, stop, step)):
        return _arange_of_sizes(start, stop, step, dtype)
    if any(map(is_traced, (start, stop, step))):
        return computed_range(start, stop, step, dtype)
    ends: list[Any] = [plain(a)[()] for a in (start, stop, step)]
    found = np.arange(*ends, dtype=dtype)
    if found.dtype.kind not in "fc":
        return _constant(found)
    count = np.arange(found.size, dtype=found.dtype)
    return casts.astype(start + step * count, found.dtype)


def _arange_of_sizes(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    whole = all(isinstance(a, Dim | int | np.integer) for a in (start, stop, step))
    if not whole or isinstance(step, Dim):
        raise TraceError(
            f"np.arange({start}, {stop}, {step}): beside symbolic sizes the other arguments must "
            "be integers. Scale the numbers instead, start + step * "
            f"np.arange(n){at(user_line())}."
        )
    kind = np.dtype(np.intp if dtype is None else dtype)
    return creation.arange.record(start=start, stop=stop, step=int(step), dtype=kind)


def _plain_range(start: Any, stop: Any, step: Any, dtype: Any, device: Any) -> Any:
    """`numpy.arange`."""
    if start is None:
        return np.arange(stop=stop, step=step, dtype=dtype, device=device)  # type: ignore[call-overload]
    return np.arange(start, stop, step, dtype=dtype, device=device)


def _range(start: Any, stop: Any, step: Any) -> tuple[Any, Any, Any]:
    if stop is None:
        start, stop = None, start
    if stop is None:
        raise TypeError("arange() requires stop to be specified.")
    return 0 if start is None else start, stop, 1 if step is None else step


FUNCTIONS[np.arange] = lambda *args, **kwargs: as_array(
    arange(*args, **kwargs, like=_constant(0.0))
)


def _ends(start: Any, stop: Any) -> tuple[Any, Any]:
    """Both ends in floating point, broadcast to a common shape."""
    start, stop = joining.stacked(start), joining.stacked(stop)
    dtype = np.result_type(dtype_of(start), dtype_of(stop), 0.0)  # Python numbers are weak
    start, stop = as_array(start), as_array(stop)
    shape = broadcast_shapes(start.shape, stop.shape)
    return tuple(  # type: ignore[return-value]
        spread(casts.astype(a, dtype) if a.dtype != dtype else a, shape) for a in (start, stop)
    )


def _weighted(start: Any, stop: Any, num: Any, endpoint: bool) -> Any:
    """``start + i * step`` along a new first axis, ending exactly at stop."""
    n = num - 1 if endpoint else num
    shape = (num,) + (1,) * start.ndim
    real = start.dtype.type(0).real.dtype
    if isinstance(num, Dim):
        return _weighted_sizes(start, stop, num, n, real)
    i = np.arange(num, dtype=real).reshape(shape)
    if n <= 0:
        return i * (stop - start) + start
    line = i * ((stop - start) / n) + start
    if not endpoint or num < 2:
        return line
    last = shapes.expand_dims(stop, axis=(0,))
    return joining.concatenate(getitem.read(line, slice(0, num - 1)), last, axis=0)


def _weighted_sizes(start: Any, stop: Any, num: Dim, n: Any, real: Any) -> Any:
    """The same for a symbolic number of elements, which may be 1."""
    i = casts.astype(numbers(num), real).reshape((num,) + (1,) * start.ndim)
    line = i * ((stop - start) / casts.astype(np.maximum(size_value(n), 1), real)) + start
    if n is num:
        return line
    return np.where((i == casts.astype(size_value(n), real)) & (i > 0), stop, line)


@counterpart(np.linspace)
def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """Evenly spaced numbers between two ends; see `numpy.linspace`.

    Parameters
    ----------
    start, stop : array_like or Tensor
    num : int, default 50
    endpoint : bool, default True
        Whether the last number is `stop`.
    retstep : bool, default False
        Also return the spacing.
    dtype : dtype, optional
    axis : int, default 0
        Position of the new axis.

    Examples
    --------
    >>> import wengert as wg, wengert.numpy as wnp
    >>> wg.jacobian(lambda stop: wnp.linspace(0.0, stop, 3))(8.0)
    array([0. , 0.5, 1. ])
    """
    check_device(device)
    if not isinstance(num, Dim):
        many = "how many numbers there are"
        num = int(needed(num, "np.linspace", many, "Pass an integer, or a size x.shape[0]"))
        if num < 0:
            raise ValueError(f"Number of samples, {num}, must be non-negative.")
    start, stop = _ends(start, stop)
    line = _weighted(start, stop, num, endpoint)
    if dtype is not None and np.dtype(dtype) != line.dtype:
        if np.dtype(dtype).kind in "iu":
            line = np.floor(line)
        line = casts.astype(line, dtype)
    if axis != 0:
        line = np.moveaxis(line, 0, axis)
    if not retstep:
        return line
    n = num - 1 if endpoint else num
    if isinstance(n, Dim):
        steps = size_value(n)
        return line, np.where(steps > 0, (stop - start) / np.maximum(steps, 1), np.nan)
    return line, (stop - start) / n if n > 0 else np.nan


@counterpart(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """A geometric sequence, from the logarithms of the ends; see `numpy.logspace`."""
    if shape_of(base):
        base = as_array(base)
        shape = broadcast_shapes(base.shape, shape_of(start), shape_of(stop))
        start, stop, base = (spread(as_array(a), shape) for a in (start, stop, base))
        base = np.expand_dims(base, axis)
    y = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else casts.astype(y, dtype)


@counterpart(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """A geometric sequence between two ends; see `numpy.geomspace`."""
    # NumPy's promotion: double precision, unless a dtype is given.
    ends = [as_array(a) for a in (start, stop)]
    wide = np.result_type(*[a.dtype for a in ends], float(num), np.dtype(dtype))
    start, stop = _ends(*[casts.astype(a, wide) for a in ends])
    traced = is_traced(start) or is_traced(stop)
    if not traced and ((plain(start) == 0).any() or (plain(stop) == 0).any()):
        raise ValueError("Geometric sequence cannot include zero")
    if start.dtype.kind == "c":  # a spiral, by the smaller angle about zero
        sign: Any = 1.0
        turn = np.log(stop / start)
        result = start * np.exp(linspace(turn * 0.0, turn, num, endpoint))
    else:
        sign = np.sign(values(start))
        result = np.exp(linspace(np.log(start * sign), np.log(stop * sign), num, endpoint))
    if num > 0:
        # The ends are exact, and their derivatives those of the ends themselves.
        first = shapes.expand_dims(start * sign, axis=(0,))
        last = shapes.expand_dims(stop * sign, axis=(0,))
        inner = getitem.read(result, slice(1, num - 1 if endpoint and num > 1 else num))
        parts = [first, inner, last] if endpoint and num > 1 else [first, inner]
        result = joining.concatenate(*parts, axis=0)
    result = result * sign
    if axis != 0:
        result = np.moveaxis(result, 0, axis)
    return result if dtype is None else casts.astype(result, dtype)


@counterpart(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Powers of x as columns; see `numpy.vander`."""
    x = as_array(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    n = x.size if N is None else N
    dtype = np.result_type(x.dtype, int)
    powers = numbers(n if isinstance(n, Dim) else int(n))
    wide = casts.astype(shapes.reshape(x, shape=(-1, 1)), dtype)
    return np.power(wide, powers if increasing else powers[::-1])
