"""Creation: arrays from nothing, from numbers, from lists.

    from data      array, asarray, asanyarray, ascontiguousarray, asfortranarray, asarray_chkfinite
    filled         zeros, ones, empty, full, eye, identity, tri, and zeros_like ... of an array
    ranges         arange, linspace, logspace, geomspace
    made of one    vander

They give plain arrays, as NumPy does, unless a tensor is among the arguments: `array` of a nested
list of tensors is a tensor, `linspace` between tensors differentiates by its ends, and
`np.zeros_like(x)` or `np.zeros(n, like=x)` of a tensor is a constant tensor, into which results
that are recorded can be written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.handle import Handle, value_of, wrap
from ..core.node import constant
from ..ops import casts, indexing, joining, shapes
from ..tensor.protocols import FUNCTIONS
from .dispatch import as_array, counterpart, dtype_of, plain
from .shapes import ints, own_copy

__all__ = [
    "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite",
    "zeros", "ones", "empty", "full", "eye", "identity", "tri", "indices", "zeros_like",
    "ones_like", "empty_like", "full_like", "arange", "linspace", "logspace", "geomspace",
    "vander",
]  # fmt: skip


# ---- from data ---------------------------------------------------------------------------------


def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: Any = "K",
    subok: bool = False, ndmin: int = 0, like: Any = None,
) -> Any:  # fmt: skip
    """An array of the data; with tensors in it, nested in lists or not, a tensor.

    Parameters
    ----------
    object : array_like, Tensor, or nested lists of these
    dtype : dtype, optional
    copy : bool, optional
        A tensor is copied by default; the copy is a handle of its own, and derivatives pass.
    order, subok, ndmin, like
        As in NumPy.

    Examples
    --------
    >>> import numpy as np, wengert as wg, wengert.numpy as wnp
    >>> rotation = lambda a: wnp.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    >>> float(wg.grad(lambda a: rotation(a)[1, 0])(0.0))
    1.0
    """
    if not joining.holds_handles(object):
        if isinstance(like, Handle):
            return _constant(np.array(object, dtype, order=order, subok=subok, ndmin=ndmin))
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
    result = joining.stacked(object)
    if dtype is not None and result.dtype != dtype:
        result = casts.astype(result, dtype)
    elif copy and result is object:
        result = own_copy(result)
    if result.ndim < ndmin:
        result = result.reshape((1,) * (ndmin - result.ndim) + result.shape)
    return result


def _constant(value: Any) -> Any:
    return wrap(constant(value))


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None,
    copy: bool | None = None, like: Any = None,
) -> Any:  # fmt: skip
    """`array` without a copy where none is needed; a tensor stays itself."""
    if type(a) is np.ndarray and like is None:
        return np.asarray(a, dtype, order, copy=copy)
    return array(a, dtype, copy=copy, order=order or "K", like=like)


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """At least one axis, contiguous in memory, which for a tensor says nothing."""
    if isinstance(a, Handle) or joining.holds_handles(a):
        return array(a, dtype, copy=False, ndmin=1)
    return np.ascontiguousarray(a, dtype)


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Fortran's order in memory, which for a tensor says nothing."""
    if isinstance(a, Handle) or joining.holds_handles(a):
        return array(a, dtype, copy=False, ndmin=1)
    return np.asfortranarray(a, dtype)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """`asarray`, refusing NaN and infinity."""
    a = asarray(a, dtype, order)
    if a.dtype.kind in "fc" and not np.isfinite(plain(a)).all():
        raise ValueError("array must not contain infs or NaNs")
    return a


# ---- filled ------------------------------------------------------------------------------------


def _like(function: Any) -> Callable[..., Any]:
    """A creation function of NumPy, which gives a constant tensor for `like=` a tensor."""
    FUNCTIONS[function] = lambda *args, **kwargs: _constant(function(*args, **kwargs))

    @functools.wraps(function)
    def create(*args: Any, like: Any = None, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        return _constant(made) if isinstance(like, Handle) else made

    return create


zeros, ones, empty = _like(np.zeros), _like(np.ones), _like(np.empty)
eye, identity, tri = _like(np.eye), _like(np.identity), _like(np.tri)
indices = np.indices


def _filled(shape: Any, value: Any, dtype: Any) -> Any:
    value = as_array(joining.stacked(value))
    return casts.broadcast_to(value if dtype is None else casts.astype(value, dtype), shape=shape)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None,
    like: Any = None,
) -> Any:  # fmt: skip
    """Filled with a value, which may be a tensor; see `numpy.full`."""
    if isinstance(fill_value, Handle) or joining.holds_handles(fill_value):
        return own_copy(_filled(ints(shape), fill_value, dtype))
    made = np.full(shape, fill_value, dtype, order)
    return _constant(made) if isinstance(like, Handle) else made


FUNCTIONS[np.full] = lambda *args, **kwargs: as_array(full(*args, **kwargs, like=_constant(0.0)))
FUNCTIONS[np.array] = lambda *args, **kwargs: array(*args, **kwargs, like=_constant(0.0))
for _function in (np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require,
                  np.fromfunction, np.fromiter, np.frombuffer, np.fromstring):  # fmt: skip
    FUNCTIONS[_function] = functools.partial(
        lambda f, *args, **kwargs: _constant(f(*args, **kwargs)), _function
    )


def _new_like(numpy_function: Any) -> Callable[..., Any]:
    """zeros_like and its sisters: of a tensor a constant tensor."""

    def create(
        a: Any,
        dtype: Any = None,
        order: Any = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Any:
        return _constant(numpy_function(plain(a), dtype, order, subok, shape))

    create.__name__ = numpy_function.__name__
    create.__doc__ = (
        f"As `numpy.{numpy_function.__name__}`; of a tensor a constant tensor, into which recorded "
        "values can be written."
    )
    return counterpart(numpy_function)(create)


zeros_like, ones_like, empty_like = map(_new_like, (np.zeros_like, np.ones_like, np.empty_like))


@counterpart(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True,
    shape: Any = None, *, device: Any = None,
) -> Any:  # fmt: skip
    """Filled with a value, which may be a tensor, in the shape and dtype of `a`."""
    a_dtype = np.asarray(value_of(a)).dtype if dtype is None else dtype
    target = np.shape(value_of(a)) if shape is None else ints(shape)
    filled = _filled(target, fill_value, a_dtype)
    return own_copy(filled) if isinstance(filled, Handle) else _constant(np.array(filled))


# ---- ranges ------------------------------------------------------------------------------------


def arange(
    *args: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any
) -> Any:
    """Numbers at equal steps; their number has no derivative, start and step have.

    Parameters
    ----------
    start, stop, step : number or Tensor
        As in NumPy: stop alone, or start and stop, or all three.
    dtype : dtype, optional

    Examples
    --------
    >>> import wengert as wg, wengert.numpy as wnp
    >>> wg.jacobian(lambda step: wnp.arange(0.0, 1.0, step))(0.3)
    array([0., 1., 2., 3.])
    """
    for a in (*args, *named.values()) if named else args:
        if isinstance(a, Handle):
            break
    else:
        made = np.arange(*args, dtype=dtype, **named)
        return _constant(made) if isinstance(like, Handle) else made
    start, stop, step = _range(args, named)
    ends: list[Any] = [plain(a)[()] for a in (start, stop, step)]
    numbers = np.arange(*ends, dtype=dtype)
    if numbers.dtype.kind not in "fc":
        return _constant(numbers)
    count = np.arange(numbers.size, dtype=numbers.dtype)
    return casts.astype(start + step * count, numbers.dtype)


def _range(args: Any, named: dict[str, Any]) -> tuple[Any, Any, Any]:
    names = ("stop",) if len(args) == 1 and "stop" not in named else ("start", "stop", "step")
    given = {**dict(zip(names, args, strict=False)), **named}
    if "stop" not in given:
        raise TypeError("arange() requires stop to be specified.")
    return given.get("start", 0), given["stop"], given.get("step", 1)


FUNCTIONS[np.arange] = lambda *args, **kwargs: as_array(
    arange(*args, **kwargs, like=_constant(0.0))
)


def _ends(start: Any, stop: Any) -> tuple[Any, Any]:
    """Both ends in floating point, broadcast to one shape."""
    start, stop = joining.stacked(start), joining.stacked(stop)
    dtype = np.result_type(dtype_of(start), dtype_of(stop), 0.0)  # Python numbers are weak
    start, stop = as_array(start), as_array(stop)
    shape = np.broadcast_shapes(start.shape, stop.shape)
    return tuple(  # type: ignore[return-value]
        casts.broadcast_to(casts.astype(a, dtype) if a.dtype != dtype else a, shape=shape)
        for a in (start, stop)
    )


def _weighted(start: Any, stop: Any, num: int, endpoint: bool) -> Any:
    """``start + i * step`` along a new first axis, ending exactly at stop."""
    n = num - 1 if endpoint else num
    shape = (num,) + (1,) * start.ndim
    real = start.dtype.type(0).real.dtype
    i = np.arange(num, dtype=real).reshape(shape)
    if n <= 0:
        return i * (stop - start) + start
    line = i * ((stop - start) / n) + start
    if not endpoint or num < 2:
        return line
    last = shapes.expand_dims(stop, axis=(0,))
    return joining.concatenate(indexing.read(line, slice(0, num - 1)), last, axis=0)


@counterpart(np.linspace)
def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """Numbers at equal distances between two ends; see `numpy.linspace`.

    Parameters
    ----------
    start, stop : array_like or Tensor
    num : int, default 50
    endpoint : bool, default True
        Whether the last one is `stop`.
    retstep : bool, default False
        Also return the distance.
    dtype : dtype, optional
    axis : int, default 0
        Where the new axis goes.

    Examples
    --------
    >>> import wengert as wg, wengert.numpy as wnp
    >>> wg.jacobian(lambda stop: wnp.linspace(0.0, stop, 3))(8.0)
    array([0. , 0.5, 1. ])
    """
    num = int(value_of(num))
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
    return line, (stop - start) / n if n > 0 else np.nan


@counterpart(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """Numbers at equal ratios, given by the logarithms of the ends; see `numpy.logspace`."""
    if np.ndim(value_of(base)):
        base = as_array(base)
        shape = np.broadcast_shapes(base.shape, np.shape(value_of(start)), np.shape(value_of(stop)))
        start, stop, base = (
            casts.broadcast_to(as_array(a), shape=shape) for a in (start, stop, base)
        )
        base = np.expand_dims(base, axis)
    y = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else casts.astype(y, dtype)


@counterpart(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Numbers at equal ratios between two ends; see `numpy.geomspace`."""
    # NumPy's promotion: double precision, unless a dtype is named.
    ends = [as_array(joining.stacked(a)) for a in (start, stop)]
    wide = np.result_type(*[a.dtype for a in ends], float(num), np.dtype(dtype))
    start, stop = _ends(*[casts.astype(a, wide) for a in ends])
    if (plain(start) == 0).any() or (plain(stop) == 0).any():
        raise ValueError("Geometric sequence cannot include zero")
    if start.dtype.kind == "c":  # a spiral, the shorter way round zero
        sign: Any = 1.0
        turn = np.log(stop / start)
        result = start * np.exp(linspace(turn * 0.0, turn, num, endpoint))
    else:
        sign = np.sign(plain(start))
        result = np.exp(linspace(np.log(start * sign), np.log(stop * sign), num, endpoint))
    if num > 0:
        # The ends are exact, and their derivatives those of the ends themselves.
        first = shapes.expand_dims(start * sign, axis=(0,))
        last = shapes.expand_dims(stop * sign, axis=(0,))
        inner = indexing.read(result, slice(1, num - 1 if endpoint and num > 1 else num))
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
    n = x.size if N is None else int(N)
    dtype = np.result_type(x.dtype, int)
    powers = np.arange(n)
    wide = casts.astype(shapes.reshape(x, shape=(-1, 1)), dtype)
    return np.power(wide, powers if increasing else powers[::-1])
