"""Dispatch of SciPy's functions that are not ufuncs to `wengert.scipy` for tensor arguments.

    counterpart     calls SciPy's function if no argument is a tensor, else the decorated function
    converted_when_called   a function of the user, converted where it is traced
    array_of        an operand as an array or tensor; nested lists may contain tensors
    floating        an operand as an array or tensor of floating or complex numbers
    known_length    a length that must not be symbolic
    zero_if_zero    quotients that are 0 where the divisor is 0

Unlike NumPy's functions, SciPy's do not dispatch on their arguments: tensors have to be passed to
the functions of `wengert.scipy`.  A tensor may also be an element of a list or tuple.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops import casts
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor

from ..errors import TraceError, at, user_line

_TENSOR_TYPES = (Handle, Dim)


def holds_tensors(x: Any) -> bool:
    """Whether a tensor, or a symbolic size, is among the leaves of lists and tuples."""
    if isinstance(x, list | tuple):
        return any(map(holds_tensors, x))
    return isinstance(x, _TENSOR_TYPES)


def counterpart(theirs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: call `theirs` if no argument is a tensor, else the decorated function."""

    def decorate(ours: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(ours)
        def public(*args: Any, **kwargs: Any) -> Any:
            if any(map(holds_tensors, args)) or any(map(holds_tensors, kwargs.values())):
                return _as_tensors(ours(*args, **kwargs))
            return theirs(*args, **kwargs)

        return public

    return decorate


def _as_tensors(result: Any) -> Any:
    """Convert results that do not depend on a tensor, so that all results are tensors."""
    if isinstance(result, tuple):
        return tuple(map(_as_tensors, result))
    return as_tensor(result) if isinstance(result, np.ndarray | np.generic) else result


def converted_when_called(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user, which the front end converts if it is called in a trace.

    Outside of transformations a solver traces the functions that it is given all the same.
    """
    return lambda *args, **kwargs: converted(fun)(*args, **kwargs)


def floating(x: Any) -> Any:
    """`x` as an array or tensor of floating or complex numbers; integers become float64."""
    x = array_of(x)
    return x if x.dtype.kind in "fc" else casts.astype(x, float)


def array_of(x: Any) -> Any:
    """An operand as an array or tensor; nested lists may contain tensors, sparse arrays are dense.

    Functions of SciPy's solvers may return lists, and sparse Jacobians and Hessians.
    """
    return x.toarray() if hasattr(x, "toarray") else as_array(x)


def known_length(n: Any, what: str) -> int:
    """A length as a Python int.

    Raises
    ------
    TraceError
        It is a symbolic size, and the function is not the same for all sizes.
    """
    if isinstance(n, Dim):
        raise TraceError(
            f"{what} of symbolic length {n}: the computation depends on the length. Trace with a "
            f"number{at(user_line())}."
        )
    return int(n)


def zero_if_zero(x: Any, divisor: Any) -> Any:
    """x / divisor, and 0 with derivative 0 where the divisor is 0."""
    pole = value_of(divisor) == 0
    return choose(pole, 0.0, x / choose(pole, 1.0, divisor))
