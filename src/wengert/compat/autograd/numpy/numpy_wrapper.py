"""NumPy's functions that autograd changes, and functions that it adds.

    shape, ndim                       also of lists of tensors
    where                             native Python values stay such
    int8 ... int64, integer           conversions of tensors to integers, without derivative
    array, concatenate, stack ...     also of views of dicts and of generators
    make_diagonal                     the transpose of `diagonal`
    metadata                          shape, number of axes, dtype, and whether it is complex

All other names are those of `wengert.numpy`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, KeysView, ValuesView
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, dtype_of, is_traced, shape_of, value_of
from wengert.errors import ArgumentError, at, user_line

from .... import numpy as wnp
from ..strict import is_strict
from .numpy_vjps import metadata

__all__ = [
    "array",
    "column_stack",
    "concatenate",
    "dstack",
    "hstack",
    "stack",
    "vstack",
    "int8",
    "int16",
    "int32",
    "int64",
    "integer",
    "make_diagonal",
    "metadata",
    "ndim",
    "shape",
    "where",
]
_ARRAYS = (Handle, np.ndarray, np.generic)
_MISSING: Any = object()
_isinstance = type.__instancecheck__


def where(condition: Any, x: Any = _MISSING, y: Any = _MISSING) -> Any:
    """``np.where``, which without arrays and tensors returns Python numbers and lists.

    Examples
    --------
    >>> from wengert.compat.autograd import numpy as np
    >>> np.where(True, [1, 2], [3, 4])
    [1, 2]
    """
    if x is _MISSING and y is _MISSING:
        return wnp.where(condition)
    if x is _MISSING or y is _MISSING:
        raise ArgumentError(f"where takes both x and y, or neither{at(user_line())}.")
    chosen = wnp.where(condition, x, y)
    leaves = pytree.flatten((condition, x, y))[0]
    has_arrays = any(isinstance(leaf, _ARRAYS) for leaf in leaves)
    return chosen if has_arrays else chosen.tolist()


def shape(a: Any) -> Any:
    """``np.shape``, also of lists of tensors."""
    return shape_of(wnp.asarray(a) if isinstance(a, list | tuple) else a)


def ndim(a: Any) -> int:
    """``np.ndim``, also of lists of tensors."""
    return len(shape(a))


def _of_iterables(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a sequence of arrays, which also accepts views of dicts, and generators."""

    @functools.wraps(function)
    def joined(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(arrays, ValuesView | KeysView | Iterator):
            arrays = list(arrays)
        return function(arrays, *args, **kwargs)

    return joined


array = _of_iterables(wnp.array)
concatenate, stack = _of_iterables(wnp.concatenate), _of_iterables(wnp.stack)
vstack, hstack = _of_iterables(wnp.vstack), _of_iterables(wnp.hstack)
dstack, column_stack = _of_iterables(wnp.dstack), _of_iterables(wnp.column_stack)


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Matrices with the last axis of `D` on the diagonals.

    Parameters
    ----------
    D : array or Tensor
    offset, axis1, axis2 : int
        As in autograd only 0, -1 and -2.

    Examples
    --------
    >>> from wengert.compat.autograd import numpy as np
    >>> np.make_diagonal(np.array([1.0, 2.0]), axis1=-1, axis2=-2)
    array([[1., 0.],
           [0., 2.]])
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        raise ArgumentError(
            f"make_diagonal: offset={offset}, axis1={axis1} and axis2={axis2}; only offset=0, "
            f"axis1=-1 and axis2=-2 are supported{at(user_line())}."
        )
    return np.expand_dims(D, -1) * np.eye(shape_of(D)[-1], dtype=dtype_of(D))


class _OfTensors(type):
    """The class of integer types that accept tensors: instances are those of NumPy's type.

    In strict mode they are not, as with autograd, whose types are subclasses of NumPy's.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        return _isinstance(cls, instance) if is_strict() else isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])


def _accepting_tensors(kind: type[np.signedinteger[Any]]) -> Any:
    """NumPy's integer type, which converts the values of tensors, without derivative."""

    def make(cls: Any, value: Any = 0, *more: Any) -> Any:
        found: Any = value_of(value)
        return found.astype(kind) if is_traced(found) else kind(found, *more)

    return _OfTensors(kind.__name__, (kind,), {"__new__": make, "__doc__": kind.__doc__})


int8, int16 = _accepting_tensors(np.int8), _accepting_tensors(np.int16)
int32, int64 = _accepting_tensors(np.int32), _accepting_tensors(np.int64)
integer = _OfTensors("integer", (np.integer,), {"__doc__": np.integer.__doc__})


def __getattr__(name: str) -> Any:
    return getattr(wnp, name)


def __dir__() -> list[str]:
    return sorted({*dir(wnp), *__all__})
