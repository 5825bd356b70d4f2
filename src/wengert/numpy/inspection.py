"""Inspection: what is asked of an array and not computed from it.

    shape and type   shape, ndim, size, result_type, can_cast, min_scalar_type, common_type,
                     iscomplexobj, isrealobj
    comparing        array_equal, array_equiv, allclose
    memory           may_share_memory, shares_memory
    positions        unravel_index, ravel_multi_index, tril_indices_from, triu_indices_from,
                     diag_indices_from
    printing         array2string, array_repr, array_str
    saving           save, savez, savez_compressed, savetxt

The answers are plain numbers, truth values, dtypes and texts: they have no derivative, and say so
by being plain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import tree
from ..core.handle import Handle, value_of, wrap
from ..core.node import constant
from ..tensor.protocols import FUNCTIONS
from .dispatch import counterpart, dtype_of, plain

__all__ = ["may_share_memory", "shares_memory", "size"]


def _of_values(function: Any) -> Callable[..., Any]:
    """What NumPy's function says of the values."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree.tree_map(value_of, (args, kwargs))
        return function(*args, **kwargs)

    return ask


for _name in """shape ndim array_equal array_equiv allclose iscomplexobj isrealobj
    unravel_index ravel_multi_index tril_indices_from triu_indices_from diag_indices_from
    array2string array_str save savez savez_compressed savetxt common_type
    """.split():
    _function = getattr(np, _name)
    FUNCTIONS[_function] = _of_values(_function)


def _of_types(function: Any) -> Callable[..., Any]:
    """What NumPy's function says of the dtypes; a Python number stays one, as it is weak."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        return function(*[dtype_of(a) if isinstance(a, Handle) else a for a in args], **kwargs)

    return ask


for _function in (np.result_type, np.can_cast):
    FUNCTIONS[_function] = _of_types(_function)
FUNCTIONS[np.min_scalar_type] = _of_values(np.min_scalar_type)
FUNCTIONS[np.array_repr] = lambda arr, *args, **kwargs: repr(arr)


@counterpart(np.size)
def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or the length of an axis; see `numpy.size`."""
    return np.size(np.broadcast_to(np.empty(()), np.shape(value_of(a))), axis)


# ---- memory ------------------------------------------------------------------------------------


def _root(x: Any) -> Any:
    """The array whose memory `x` is a view of."""
    while getattr(x, "_link", None) is not None:
        x = x._link[0]
    return x


def _elements(x: Any) -> Any:
    """For each element of `x` its number in the array that owns the memory."""
    views = []
    while getattr(x, "_link", None) is not None:
        x, take, _ = x._link
        views.append(take)
    value = plain(x)
    numbers = wrap(constant(np.arange(value.size).reshape(value.shape)))
    for take in reversed(views):
        numbers = take(numbers)
    return plain(numbers)


@counterpart(np.shares_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether writing to one shows in the other; see `numpy.shares_memory`."""
    if not (isinstance(a, Handle) and isinstance(b, Handle)) or _root(a) is not _root(b):
        return False
    return np.intersect1d(_elements(a), _elements(b)).size > 0


@counterpart(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """As `shares_memory`, which is exact."""
    return shares_memory(a, b)
