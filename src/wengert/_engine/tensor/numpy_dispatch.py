"""Dispatch between functions of `wengert.numpy` and NumPy's functions of the same name.

`@counterpart(np.stack)` registers the decorated function as the implementation of `np.stack` for
tensors, and returns the public function: it calls the decorated function if a tensor is among the
arguments, else NumPy's, so that the result is exactly NumPy's.  Lists of tensors are accepted as
arrays; NumPy itself looks for tensors only in the lists of functions of several arrays
(`np.stack`), and a plain `np.mean([x, y])` raises an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.device_arrays import refuse_on_device
from wengert._engine.core.handle import Handle, is_traced, shape_of, value_of, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.other_libraries import has_own_functions
from wengert._engine.core.recording import switches
from wengert._engine.core.spec import unweakened
from wengert._engine.core.symbolic import constraints
from wengert._engine.core.symbolic.dim import Dim, is_symbolic
from wengert._engine.ops import creation
from wengert._engine.ops.casts import broadcast_to
from wengert._engine.ops.indexing.window_functions import applied, has_windows
from wengert._engine.ops.indexing.windows import Window
from wengert._engine.ops.joining import NESTED, holds_handles, stacked
from wengert.errors import ArgumentError, ConversionError, ShapeError, at, user_line

from .numpy_protocols import FUNCTIONS
from .operand_conversion import length, without_lists
from .operators import PLAIN_OPERANDS
from .suggested_code import suggestion

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

_OURS = (Handle, Dim)


def counterpart(function: Any, *others: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the implementation of NumPy's `function` for tensors (a decorator).

    Parameters
    ----------
    function : callable
        NumPy's function; it is called if no tensor is among the arguments.
    *others
        Further functions of NumPy with the same implementation.
    """

    def register(ours: Callable[..., Any]) -> Callable[..., Any]:
        for f in (function, *others):
            FUNCTIONS[f] = ours

        @functools.wraps(ours)
        def public(*args: Any, **kwargs: Any) -> Any:
            if Window.exist and switches.count and has_windows(args, kwargs):  # in a trace only
                return applied(function.__name__, args, kwargs)
            for a in (*args, *kwargs.values()) if kwargs else args:
                if isinstance(a, _OURS) or (isinstance(a, NESTED) and holds_handles(a)):
                    if kwargs or not PLAIN_OPERANDS.issuperset(map(type, args)):
                        if any(map(has_own_functions, args)):
                            return function(*args, **kwargs)  # NumPy calls its method
                        args, kwargs = without_lists(function, args, kwargs)
                    return ours(*args, **kwargs)
            return function(*args, **kwargs)

        return public

    return register


def as_array(x: Any) -> Any:
    """`x` if it is a tensor, else ``np.asarray(x)``; nested lists may contain tensors."""
    if isinstance(x, list | tuple):
        x = stacked(x)
    if isinstance(x, Handle):
        return x
    try:
        return np.asarray(x)
    except TypeError:
        refuse_on_device(x, "an operand of a function of tensors")
        raise


def as_tensor(x: Any) -> Any:
    """`x` if it is a tensor, else a constant one."""
    x = as_array(x)
    return x if isinstance(x, Handle) else wrap(constant(x))


def plain(x: Operand | list[int]) -> Any:
    """The plain array of `x`, whose value must be known."""
    return np.asarray(value_of(x))


def values(x: Operand | list[int]) -> Any:
    """`x` detached, for indices and masks; a tensor while tracing."""
    return value_of(x) if is_traced(x) else np.asarray(value_of(x))


def check_device(device: str | None) -> None:
    """Raise an error for a device other than "cpu", as NumPy does."""
    if device not in (None, "cpu"):
        raise ArgumentError(
            f"device={device!r}: arrays and tensors are on the 'cpu' only. Leave it out"
            f"{at(user_line())}."
        )


_WEAK = {"b": False, "i": 0, "f": 0.0, "c": 0j}


def dtype_of(x: Any) -> Any:
    """The argument of `np.result_type` for `x`: a Python number is passed unchanged, as weak."""
    if is_traced(x):
        spec = x.node.spec
        return _WEAK[spec.dtype.kind] if spec.weak else spec.dtype
    value = unweakened(value_of(x))
    return value if isinstance(value, int | float | complex) else np.asarray(value).dtype


# ---- sizes -------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The common shape, including symbolic sizes."""
    if not any(map(is_symbolic, shapes)):
        return np.broadcast_shapes(*shapes)
    try:
        return constraints.broadcast(*shapes)
    except ValueError as error:
        raise ShapeError(f"{error}{at(user_line())}.") from error


numbers = creation.positions  # 0, 1, ... n - 1, also for a symbolic size


def lengths(shape: Any) -> tuple[Any, ...]:
    """One length or a sequence of them as a tuple of integers and symbolic sizes."""
    if isinstance(shape, int | np.integer | Dim):
        return (length(shape),)
    if isinstance(shape, tuple | list):
        return tuple(map(length, shape))
    return tuple(int(n) for n in plain(shape).ravel())


def spread(array: Any, shape: tuple[Any, ...]) -> Any:
    """Broadcast a value without derivative to a shape, which may have symbolic sizes."""
    if shape_of(array) == shape:
        return array
    if is_symbolic(shape) and not isinstance(array, Handle):
        array = as_tensor(array)
    if isinstance(array, Handle):
        return broadcast_to(array, shape=shape)
    return np.broadcast_to(array, shape)


def write(target: Array, index: Any, values: Operand, what: str) -> None:
    """`target[index] = values` for a function that changes its argument.

    Raises
    ------
    ConversionError
        The target is a plain array and the values are recorded: their history would be lost.
    """
    if not isinstance(target, Handle):
        if isinstance(values, Handle) and type(values.node) is Node:
            remedy = suggestion() or (
                "Make the array a tensor first (wengert.tensor(array), or np.zeros_like(x))"
            )
            raise ConversionError(
                f"{what} writes into a plain array, but the values are recorded for a derivative, "
                f"which a plain array cannot hold. {remedy}{at(user_line())}."
            )
        values = value_of(values)
    target[index] = values  # type: ignore[index]
