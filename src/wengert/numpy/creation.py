"""Array creation.

    from data      array, asarray, asanyarray, ascontiguousarray, asfortranarray, asarray_chkfinite,
                   from_dlpack, fromiter, require
    filled         zeros, ones, empty, full, eye, identity, tri, indices, and zeros_like ...

They return plain arrays, as NumPy does, unless an argument is a tensor: `array` of a nested list of
tensors is a tensor, and `np.zeros_like(x)` or `np.ones(n, like=x)` of a tensor is a constant
tensor, to which recorded values can be assigned.  With symbolic sizes, during tracing, they create
nodes of the graph.  Ranges are in ranges_and_windows.py.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, shape_of, wrap
from wengert._engine.core.handle import dtype_of as dtype_itself
from wengert._engine.core.node import constant
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.ops import casts, creation, joining
from wengert._engine.ops.indexing.shapes import computed_length
from wengert._engine.tensor.numpy_dispatch import (
    as_array,
    check_device,
    counterpart,
    lengths,
    numbers,
    plain,
    spread,
)
from wengert._engine.tensor.numpy_protocols import FUNCTIONS
from wengert._engine.tensor.operand_conversion import needed

from ..errors import ArgumentError, at, user_line
from .shape_manipulation import own_copy

__all__ = [
    "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite",
    "from_dlpack", "fromiter", "require", "zeros", "ones", "empty", "full", "eye",
    "identity", "tri", "indices",
    "zeros_like", "ones_like", "empty_like", "full_like",
]  # fmt: skip


# ---- from data ---------------------------------------------------------------------------------


def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: Any = "K",
    subok: bool = False, ndmin: int = 0, like: Any = None,
) -> Any:  # fmt: skip
    """An array of the data; a tensor if it contains tensors, also in nested lists.

    Parameters
    ----------
    object : array_like, Tensor, or nested lists of these
    dtype : dtype, optional
    copy : bool, optional
        A tensor is copied by default; the copy is a new handle, and is differentiable.
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
        if copy is False:
            raise ArgumentError(
                f"copy=False, but conversion of a tensor of {result.dtype} to {np.dtype(dtype)} "
                f"needs a copy. Omit copy or dtype{at(user_line())}."
            )
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
    """`array` without a copy if none is needed; a tensor is returned unchanged."""
    check_device(device)
    if type(a) is np.ndarray and like is None:
        return np.asarray(a, dtype, order, copy=copy)
    return array(a, dtype, copy=copy, order=order or "K", like=like)


asanyarray = asarray


def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """A 1-d array of the values of an iterable; a tensor if one of them is.

    See `numpy.fromiter`.
    """
    values = list(itertools.islice(iter, None if count < 0 else count))
    if count >= 0 and len(values) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had {len(values)}")
    if joining.holds_handles(values):
        return array(values, dtype)
    made = np.fromiter(values, dtype, len(values))
    return _constant(made) if isinstance(like, Handle) else made


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array of another library, with shared memory; a tensor remains differentiable.

    See `numpy.from_dlpack`.
    """
    if not isinstance(x, Handle):
        return np.from_dlpack(x, device=device, copy=copy)
    check_device(device)
    return own_copy(x) if copy else x


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """At least one axis, contiguous in memory; the layout has no meaning for a tensor."""
    if isinstance(a, Handle) or joining.holds_handles(a):
        return array(a, dtype, copy=None, ndmin=1)
    return np.ascontiguousarray(a, dtype)


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Fortran order in memory; the layout has no meaning for a tensor."""
    if isinstance(a, Handle) or joining.holds_handles(a):
        return array(a, dtype, copy=None, ndmin=1)
    return np.asfortranarray(a, dtype)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """`asarray` with an error for NaN and infinity."""
    a = asarray(a, dtype, order)
    found = needed(a, "np.asarray_chkfinite", "whether it raises", "Use wengert.debug.guard")
    if a.dtype.kind in "fc" and not np.isfinite(plain(found)).all():
        raise ValueError("array must not contain infs or NaNs")
    return a


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """An array with memory layout requirements, ignored for a tensor; see `numpy.require`."""
    if isinstance(a, Handle) or joining.holds_handles(a):
        return array(a, dtype, copy=None)
    return np.require(a, dtype, requirements)


# ---- filled ------------------------------------------------------------------------------------


def _like(function: Any, ours: Callable[..., Any]) -> Callable[..., Any]:
    """A creation function of NumPy that returns a constant tensor if `like=` is a tensor.

    `ours` is called for symbolic sizes, with the same arguments.
    """

    @functools.wraps(function)
    def create(*args: Any, like: Any = None, **kwargs: Any) -> Any:
        try:
            made = function(*args, **kwargs)
        except TypeError:  # NumPy does not accept symbolic sizes and traced integers
            if sizes_of(args) or sizes_of(kwargs) or _has_traced((*args, *kwargs.values())):
                return ours(*args, **kwargs)
            raise
        return _constant(made) if isinstance(like, Handle) else made

    FUNCTIONS[function] = lambda *args, **kwargs: as_array(
        create(*args, **kwargs, like=_constant(0.0))
    )

    return create


def _has_traced(shapes: Any) -> bool:
    return any(_has_traced(n) if type(n) in (tuple, list) else is_traced(n) for n in shapes)


def _lengths(shape: Any, function: str) -> tuple[Any, ...]:
    """A shape, in which traced integers are symbolic sizes."""
    shape = shape if isinstance(shape, tuple | list) else (shape,)
    return lengths(tuple(computed_length(n, f"np.{function}") for n in shape))


def _of_number(number: int, name: str) -> Callable[..., Any]:
    def create(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Any:
        kind = np.dtype(float if dtype is None else dtype)
        return creation.full.record(shape=_lengths(shape, name), value=number, dtype=kind)

    return create


def _eye(
    N: Any, M: Any = None, k: int = 0, dtype: Any = float, order: Any = "C", *, device: Any = None
) -> Any:
    rows, *columns = _lengths((N,) if M is None else (N, M), "eye")
    return creation.eye.record(
        rows=rows, columns=columns[0] if columns else rows, offset=int(k), dtype=np.dtype(dtype)
    )


def _tri(N: Any, M: Any = None, k: int = 0, dtype: Any = float) -> Any:
    rows, columns = numbers(N), numbers(N if M is None else M)
    return casts.astype(as_array(rows.reshape((-1, 1)) >= columns - k), dtype)


zeros, ones, empty = (
    _like(getattr(np, name), _of_number(n, name))
    for name, n in (("zeros", 0), ("ones", 1), ("empty", 0))
)
eye, tri = _like(np.eye, _eye), _like(np.tri, _tri)
identity = _like(
    np.identity, lambda n, dtype=None: _eye(n, dtype=float if dtype is None else dtype)
)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The index along each axis, as `numpy.indices`; a tensor for symbolic sizes."""
    if not sizes_of(tuple(dimensions)):
        make: Any = np.indices
        return make(dimensions, dtype, sparse)
    shape = lengths(dimensions)
    n = len(shape)
    rows = [
        as_array(casts.astype(numbers(m), dtype)).reshape((1,) * i + (-1,) + (1,) * (n - i - 1))
        for i, m in enumerate(shape)
    ]
    if sparse:
        return tuple(rows)
    return joining.stack(*[spread(row, shape) for row in rows], axis=0)


def _filled(shape: Any, value: Any, dtype: Any) -> Any:
    value = as_array(value)
    return spread(value if dtype is None else casts.astype(value, dtype), shape)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None,
    like: Any = None,
) -> Any:  # fmt: skip
    """Filled with a value, which may be a tensor; see `numpy.full`."""
    check_device(device)
    if isinstance(fill_value, Handle) or joining.holds_handles(fill_value):
        return own_copy(_filled(_lengths(shape, "full"), fill_value, dtype))
    if sizes_of(shape) or _has_traced((shape,)):
        return _full_node(_lengths(shape, "full"), fill_value, dtype)
    made = np.full(shape, fill_value, dtype, order)
    return _constant(made) if isinstance(like, Handle) else made


def _full_node(shape: Any, fill_value: Any, dtype: Any) -> Any:
    value = np.asarray(fill_value) if dtype is None else np.asarray(fill_value).astype(dtype)
    if value.ndim:
        return own_copy(casts.broadcast_to(wrap(constant(value)), shape=shape))
    return creation.full.record(shape=shape, value=value.item(), dtype=value.dtype)


FUNCTIONS[np.full] = lambda *args, **kwargs: as_array(full(*args, **kwargs, like=_constant(0.0)))
FUNCTIONS[np.array] = lambda *args, **kwargs: array(*args, **kwargs, like=_constant(0.0))
for _function in (np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require,
                  np.fromfunction, np.fromiter, np.frombuffer, np.fromstring):  # fmt: skip
    FUNCTIONS[_function] = functools.partial(
        lambda f, *args, **kwargs: _constant(f(*args, **kwargs)), _function
    )


def _new_like(numpy_function: Any, number: int) -> Callable[..., Any]:
    """zeros_like, ones_like and empty_like; a constant tensor for a tensor."""

    def create(
        a: Any,
        dtype: Any = None,
        order: Any = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Any:
        check_device(device)
        if is_traced(a) or sizes_of(shape):
            kind = dtype_itself(a) if dtype is None else np.dtype(dtype)
            target = shape_of(a) if shape is None else lengths(shape)
            return creation.full.record(shape=target, value=number, dtype=kind)
        return _constant(numpy_function(plain(a), dtype, order, subok, shape))

    create.__name__ = numpy_function.__name__
    create.__doc__ = (
        f"As `numpy.{numpy_function.__name__}`; for a tensor a constant tensor, to which recorded "
        "values can be assigned."
    )
    return counterpart(numpy_function)(create)


zeros_like, ones_like, empty_like = (
    _new_like(f, n) for f, n in ((np.zeros_like, 0), (np.ones_like, 1), (np.empty_like, 0))
)


@counterpart(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True,
    shape: Any = None, *, device: Any = None,
) -> Any:  # fmt: skip
    """Filled with a value, which may be a tensor, in the shape and dtype of `a`."""
    check_device(device)
    a_dtype = dtype_itself(a) if dtype is None else dtype
    target = shape_of(a) if shape is None else lengths(shape)
    if is_traced(a) and not isinstance(fill_value, Handle):
        return _full_node(target, fill_value, a_dtype)
    filled = _filled(target, fill_value, a_dtype)
    return own_copy(filled) if isinstance(filled, Handle) else _constant(np.array(filled))
