"""How a function of `wengert.numpy` meets NumPy's function of the same name.

`@counterpart(np.stack)` enters the function below it as what tensors do for `np.stack`, whether it
is called by NumPy's own name or by ours, and returns the public function: with a tensor among the
arguments it is ours, with plain arrays only it is NumPy's own, so that the result is exactly
NumPy's.  Tensors inside a list are found by NumPy itself, whose dispatch looks there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.handle import Handle, value_of
from ..core.node import Node
from ..core.spec import unweakened
from ..errors import ConversionError, at, user_line
from ..tensor.protocols import FUNCTIONS


def counterpart(function: Any, *others: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the function below as what tensors do for NumPy's `function` (a decorator).

    Parameters
    ----------
    function : callable
        NumPy's; it runs where no tensor is among the arguments.
    *others
        More of NumPy's functions for which tensors do the same.
    """

    def enter(ours: Callable[..., Any]) -> Callable[..., Any]:
        for f in (function, *others):
            FUNCTIONS[f] = ours

        @functools.wraps(ours)
        def public(*args: Any, **kwargs: Any) -> Any:
            for a in args:
                if isinstance(a, Handle):
                    return ours(*args, **kwargs)
            for a in kwargs.values():
                if isinstance(a, Handle):
                    return ours(*args, **kwargs)
            return function(*args, **kwargs)

        return public

    return enter


def as_array(x: Any) -> Any:
    """`x` if it is a tensor, else NumPy's array of it."""
    return x if isinstance(x, Handle) else np.asarray(x)


def plain(x: Any) -> Any:
    """The plain array behind `x`; only for what has no derivative: indices, masks, shapes."""
    return np.asarray(value_of(x))


def dtype_of(x: Any) -> Any:
    """What `np.result_type` is to be told of `x`: a Python number stays one, as it is weak."""
    value = unweakened(value_of(x))
    return value if isinstance(value, int | float | complex) else np.asarray(value).dtype


def write(target: Any, index: Any, values: Any, what: str) -> None:
    """`target[index] = values` for a function that changes its argument.

    Raises
    ------
    ConversionError
        The target is a plain array and the values are recorded: it cannot hold their history.
    """
    if not isinstance(target, Handle):
        if isinstance(values, Handle) and type(values.node) is Node:
            raise ConversionError(
                f"{what} writes into a plain array, but what it writes is recorded for a "
                "derivative, which a plain array cannot hold. Make the array a tensor first "
                f"(wengert.tensor(array), or np.zeros_like(x)){at(user_line())}."
            )
        values = value_of(values)
    target[index] = values  # type: ignore[index]
