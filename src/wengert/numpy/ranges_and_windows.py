"""Ranges, Vandermonde matrices, windows; `r_` and `c_`.

    arithmetic     arange, linspace
    geometric      logspace, geomspace
    powers         vander
    windows        i0, the modified Bessel function of order zero; kaiser
    concatenation  r_ along the first axis, with numbers and ranges as pieces; c_ as columns

Ranges are differentiable with respect to start, stop and step.  The number of elements is an
integer without derivative, which may be a symbolic size while a graph is built.

NumPy's other windows (bartlett, blackman, hamming, hanning) depend on a length only, and are plain
arrays.  Those here are differentiable with respect to x and beta.

NumPy's `r_` and `c_` convert every piece to a plain array.  These concatenate tensors if a piece is
one, and otherwise call NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, shape_of, wrap
from wengert._engine.core.handle import dtype_of as dtype_of_operand
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert._engine.ops import casts, creation, joining, shapes
from wengert._engine.ops.indexing import getitem
from wengert._engine.ops.indexing.shapes import computed_range
from wengert._engine.tensor.numpy_dispatch import (
    as_array,
    as_tensor,
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
from wengert._engine.tensor.operand_conversion import needed, operand
from wengert.errors import ArgumentError, DtypeError, TraceError, at, user_line

from .joining import concatenate

__all__ = ["arange", "c_", "geomspace", "i0", "kaiser", "linspace", "logspace", "r_", "vander"]

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


# ---- windows -----------------------------------------------------------------------------------


@counterpart(np.i0)
def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, order 0, as ``numpy.i0``; DLMF 10.25.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> float(wg.grad(np.i0)(0.0))
    0.0
    """
    dtype = dtype_of_operand(x)
    if dtype.kind == "c":
        raise DtypeError(
            "i0 of complex numbers: it is defined for real numbers only. Use scipy.special.iv(0, z)"
            f"{at(user_line())}."
        )
    made = lookup("special.i0")(x if dtype.kind == "f" else casts.astype(x, float))
    return made if dtype.kind != "f" or made.dtype == dtype else casts.astype(made, dtype)


def kaiser(M: Any, beta: Any) -> Any:
    """The Kaiser window of length M, as ``numpy.kaiser``; differentiable with respect to `beta`.

    Examples
    --------
    >>> import numpy as np, wengert as wg, wengert.numpy as wnp
    >>> wg.jacobian(lambda beta: wnp.kaiser(3, beta))(2.0).round(3)
    array([-0.306,  0.   , -0.306])
    """
    if not isinstance(beta, Handle):
        return np.kaiser(M, beta)
    if M < 1:
        return as_array(beta)[None][:0]
    if M == 1:
        return np.ones_like(as_array(beta)[None], float)
    middle = (M - 1) / 2.0
    t = (np.arange(0, M) - middle) / middle
    beta = casts.astype(beta, float)
    return i0(beta * np.sqrt(1 - t**2.0)) / i0(beta)


# ---- concatenation by indexing -----------------------------------------------------------------


class _Concatenator:
    """The type of `r_` and `c_`; holds the defaults of NumPy's directive "axis,ndmin,trans1d"."""

    def __init__(self, theirs: Any, axis: int, ndmin: int, trans1d: int) -> None:
        self._theirs = theirs
        self._defaults = axis, ndmin, trans1d
        self.__doc__ = theirs.__doc__

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not any(map(joining.holds_handles, items)):
            return self._theirs[key]
        axis, ndmin, trans1d = self._defaults
        if isinstance(items[0], str):
            axis, ndmin, trans1d = self._directive(items[0])
            items = items[1:]
        pieces = [self._piece(item, ndmin, trans1d) for item in items]
        numbers = (int, float, complex)
        kinds = [
            x if type(x) in numbers else dtype_of(p) for x, p in zip(items, pieces, strict=True)
        ]
        dtype = np.result_type(*kinds)
        return concatenate([casts.astype(as_tensor(p), dtype) for p in pieces], axis)

    def __len__(self) -> int:
        return 0

    def _directive(self, text: str) -> tuple[int, int, int]:
        try:
            given = [int(n) for n in text.split(",")]
            axis, ndmin, trans1d = (*given, *self._defaults[len(given) :])
        except ValueError:
            raise ArgumentError(
                f"np.r_[{text!r}, ...] with a tensor: the first entry can be 'axis', 'axis,ndmin' "
                "or 'axis,ndmin,trans1d', all integers; matrices of tensors do not exist. Use "
                f"np.concatenate{at(user_line())}."
            ) from None
        return axis, ndmin, trans1d

    def _piece(self, item: Any, ndmin: int, trans1d: int) -> Any:
        if isinstance(item, slice):
            item, ndim = np.r_[item], -1
        else:
            item = operand(item)
            ndim = len(shape_of(item))
        array = as_tensor(item)
        missing = max(ndmin - array.ndim, 0)
        array = shapes.reshape(array, shape=(1,) * missing + tuple(array.shape))
        if ndim < 0:  # a range
            return array if trans1d == -1 or ndmin < 2 else array.swapaxes(-1, trans1d)
        if trans1d == -1 or ndim >= ndmin:
            return array
        first = trans1d + missing + 1 if trans1d < 0 else trans1d
        axes = list(range(ndmin))
        order = axes[:first] + axes[missing:] + axes[first:missing]
        return shapes.transpose(array, axes=tuple(order))


r_ = _Concatenator(np.r_, 0, 1, -1)
c_ = _Concatenator(np.c_, -1, 2, 0)
