"""Dispatch of SciPy's functions that are not ufuncs to `wengert.scipy` for tensor arguments.

    counterpart     SciPy's own where no tensor is among the arguments, else the function below it
    floating        an operand as an array or tensor of floating or complex numbers
    known_length    a length that the function has to know while a graph is built
    zero_if_zero    quotients that are 0 where the divisor is

SciPy's functions do not look at what they are given, as NumPy's do: a tensor comes to the functions
here under the name `wengert.scipy` only.  It may stand in a list or tuple among the arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops import casts
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor

from ..errors import TraceError, at, user_line

_OURS = (Handle, Dim)


def holds_tensors(x: Any) -> bool:
    """Whether a tensor, or a symbolic size, is among the leaves of lists and tuples."""
    if isinstance(x, list | tuple):
        return any(map(holds_tensors, x))
    return isinstance(x, _OURS)


def counterpart(theirs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call `theirs` of plain arrays, and the function below of anything else (a decorator)."""

    def enter(ours: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(ours)
        def public(*args: Any, **kwargs: Any) -> Any:
            if any(map(holds_tensors, args)) or any(map(holds_tensors, kwargs.values())):
                return _as_tensors(ours(*args, **kwargs))
            return theirs(*args, **kwargs)

        return public

    return enter


def _as_tensors(result: Any) -> Any:
    """Arrays that depend on no tensor after all are constants, so that all results are tensors."""
    if isinstance(result, tuple):
        return tuple(map(_as_tensors, result))
    return as_tensor(result) if isinstance(result, np.ndarray | np.generic) else result


def floating(x: Any) -> Any:
    """`x` as an array or tensor of floating or complex numbers; integers in double."""
    x = as_array(x)
    return x if x.dtype.kind in "fc" else casts.astype(x, float)


def known_length(n: Any, what: str) -> int:
    """A length as a Python int.

    Raises
    ------
    TraceError
        It is a symbolic size: what the function does is not the same for all sizes.
    """
    if isinstance(n, Dim):
        raise TraceError(
            f"{what} of {n} elements: what it does depends on their number, which is not known "
            f"while a graph for all sizes is built. Trace with a number{at(user_line())}."
        )
    return int(n)


def zero_if_zero(x: Any, divisor: Any) -> Any:
    """x / divisor, and 0 where the divisor is 0, in value and derivative."""
    pole = value_of(divisor) == 0
    return choose(pole, 0.0, x / choose(pole, 1.0, divisor))
