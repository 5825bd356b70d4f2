"""Inspection of arrays.

    shape and type   shape, ndim, size, result_type, can_cast, min_scalar_type, common_type,
                     iscomplexobj, isrealobj
    comparing        array_equal, array_equiv, allclose
    memory           may_share_memory, shares_memory
    order            einsum_path
    bits             packbits, unpackbits
    positions        unravel_index, ravel_multi_index, tril_indices_from, triu_indices_from,
                     diag_indices_from
    printing         array2string, array_repr, array_str
    saving           save, savez, savez_compressed, savetxt

The results are plain numbers, booleans, dtypes and strings without derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, is_traced, shape_of, wrap
from wengert._engine.core.handle import dtype_of as dtype_itself
from wengert._engine.core.node import constant
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.tensor.numpy_dispatch import (
    as_array,
    counterpart,
    dtype_of,
    numbers,
    plain,
    values,
)
from wengert._engine.tensor.numpy_protocols import FUNCTIONS
from wengert._engine.tensor.operand_conversion import needed
from wengert.errors import TraceError, at, user_line

__all__ = ["may_share_memory", "shares_memory", "size"]

FUNCTIONS[np.shape] = lambda a: shape_of(a)
FUNCTIONS[np.ndim] = lambda a: len(shape_of(a))


def _of_values(function: Any, remedy: str) -> Callable[..., Any]:
    """Call NumPy's function with the values, which must be concrete."""
    name = f"np.{function.__name__}"

    def ask(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map(
            lambda x: needed(x, name, "the result", remedy), (args, kwargs)
        )
        return function(*args, **kwargs)

    return ask


_SHOWN = "Show it when the graph runs, with wengert.debug.show, or return it"
_POSITIONS = "Compute positions with //, % and *"
for _names, _remedy in (
    ("array2string save savez savez_compressed savetxt min_scalar_type", _SHOWN),
    ("ravel_multi_index", _POSITIONS),
):
    for _name in _names.split():
        FUNCTIONS[getattr(np, _name)] = _of_values(getattr(np, _name), _remedy)


@counterpart(np.unravel_index)
def _unravel_index(indices: Any, shape: Any, order: Literal["C", "F"] = "C") -> Any:
    """The positions along each axis; see `numpy.unravel_index`."""
    if not is_traced(indices):
        return np.unravel_index(plain(indices), shape, order)
    lengths = shape if isinstance(shape, tuple | list) else (shape,)
    if order != "C":
        needed(indices, "np.unravel_index with order='F'", "the result", _POSITIONS)
    positions: list[Any] = []
    remaining = values(indices)
    outside = np.any((remaining < 0) | (remaining >= math.prod(lengths)))
    RuntimeChecks.add(outside, ValueError(
        f"index is out of bounds for an array with shape {tuple(lengths)}{at(user_line())}"
    ))  # fmt: skip
    for n in lengths[:0:-1]:
        positions.insert(0, remaining % n)
        remaining = remaining // n
    return (remaining, *positions)


def _of_types(function: Any) -> Callable[..., Any]:
    """Call NumPy's function with the dtypes; Python numbers are passed as they are (weak)."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        return function(*[dtype_of(a) if isinstance(a, Handle) else a for a in args], **kwargs)

    return ask


for _function in (np.result_type, np.can_cast):
    FUNCTIONS[_function] = _of_types(_function)
FUNCTIONS[np.common_type] = lambda *arrays: np.common_type(
    *[np.empty(0, dtype_itself(a)) for a in arrays]
)
FUNCTIONS[np.array_repr] = lambda arr, *args, **kwargs: repr(arr)
FUNCTIONS[np.array_str] = lambda a, *args, **kwargs: (
    str(a) if is_traced(a) else np.array_str(plain(a), *args, **kwargs)
)


def _bits(function: Any) -> Callable[..., Any]:
    """Call NumPy's function of integer bits, which has no derivative."""

    def make(a: Any, *args: Any, **named: Any) -> Any:
        found = needed(a, f"np.{function.__name__}", "the result", "Use //, % and bitwise_and")
        return wrap(constant(function(found, *args, **named)))

    return make


FUNCTIONS[np.packbits], FUNCTIONS[np.unpackbits] = _bits(np.packbits), _bits(np.unpackbits)


@counterpart(np.einsum_path)
def _einsum_path(*operands: Any, **how: Any) -> Any:
    """The contraction order; it depends on shapes only."""
    plain_ones = [
        np.broadcast_to(0.0, _concrete_shape(a, "np.einsum_path", "Pass concrete lengths"))
        if isinstance(a, Handle)
        else a
        for a in operands
    ]
    return np.einsum_path(*plain_ones, **how)


# ---- comparing ---------------------------------------------------------------------------------


@counterpart(np.allclose)
def _allclose(
    a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Any:  # a plain boolean; traced during tracing
    close = np.isclose(as_array(a), as_array(b), rtol, atol, equal_nan)
    return _as_boolean(np.all(close))


@counterpart(np.array_equal)
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    a1, a2 = as_array(a1), as_array(a2)
    if not _same_shape(a1.shape, a2.shape):
        return False
    same = a1 == a2
    if equal_nan:
        same = same | ((a1 != a1) & (a2 != a2))
    return _as_boolean(np.all(same))


@counterpart(np.array_equiv)
def _array_equiv(a1: Any, a2: Any) -> Any:
    try:
        return _as_boolean(np.all(as_array(a1) == as_array(a2)))
    except ValueError:
        return False


def _as_boolean(found: Any) -> Any:
    return found if is_traced(found) else bool(found)


def _same_shape(a: Any, b: Any) -> bool:
    if a != b and len(a) == len(b) and is_symbolic((*a, *b)):
        raise TraceError(
            f"np.array_equal of shapes {a} and {b}: whether they are equal depends on sizes, "
            "which are unknown while a graph is built. Give equal sizes the same name"
            f"{at(user_line())}."
        )
    return bool(a == b)


# ---- shape only --------------------------------------------------------------------------------


def _concrete_shape(x: Any, what: str, remedy: str) -> tuple[int, ...]:
    """The shape, which must not be symbolic."""
    shape = shape_of(x)
    if is_symbolic(shape):
        raise TraceError(
            f"{what} of {x.node.spec}: the result depends on sizes, which are unknown while a "
            f"graph is built. {remedy}{at(user_line())}."
        )
    return shape


_MASK = "Select with a mask, np.where(np.tri(n, like=x), x, 0)"


@counterpart(np.tril_indices_from)
def _tril_indices_from(arr: Any, k: int = 0) -> Any:
    rows, columns = _concrete_shape(arr, "np.tril_indices_from", _MASK)
    return np.tril_indices(rows, k, columns)


@counterpart(np.triu_indices_from)
def _triu_indices_from(arr: Any, k: int = 0) -> Any:
    rows, columns = _concrete_shape(arr, "np.triu_indices_from", _MASK)
    return np.triu_indices(rows, k, columns)


@counterpart(np.diag_indices_from)
def _diag_indices_from(arr: Any) -> Any:
    shape = shape_of(arr)
    if len(shape) < 2 or any(n != shape[0] for n in shape):
        return np.diag_indices_from(np.broadcast_to(0, shape))  # raises where NumPy does
    return (numbers(shape[0]),) * len(shape)


@counterpart(np.size)
def size(a: Any, axis: Any = None) -> Any:
    """The number of elements, or the length of an axis; see `numpy.size`."""
    total: Any = 1
    for n in shape_of(a) if axis is None else _lengths(a, axis):
        total = total * n
    return total


def _lengths(a: Any, axis: Any) -> list[Any]:
    axes = axis if isinstance(axis, tuple) else (axis,)
    return [shape_of(a)[k] for k in axes]


# ---- memory ------------------------------------------------------------------------------------


def _root(x: Any) -> Any:
    """The array whose memory `x` is a view of."""
    while getattr(x, "_link", None) is not None:
        x = x._link[0]
    return x


def _elements(x: Any) -> Any:
    """The index of each element of `x` in the array that owns the memory."""
    views = []
    while getattr(x, "_link", None) is not None:
        x, take, _ = x._link
        views.append(take)
    shape = _concrete_shape(x, "np.shares_memory", "Pass concrete lengths")
    found = wrap(constant(np.arange(math.prod(shape)).reshape(shape)))
    for take in reversed(views):
        found = take(found)
    return plain(found)


@counterpart(np.shares_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether two arrays share memory; see `numpy.shares_memory`."""
    if not (isinstance(a, Handle) and isinstance(b, Handle)) or _root(a) is not _root(b):
        return False
    return np.intersect1d(_elements(a), _elements(b)).size > 0


@counterpart(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """As `shares_memory`, which is exact."""
    return shares_memory(a, b)
