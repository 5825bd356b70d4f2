"""Functions for 1, 2 and 3 spatial dimensions, from one definition.

    by_dimension    pool1d, pool2d and pool3d from pool_nd(axes, op_name, x, ...)
    documented      a docstring for a number of dimensions

In a docstring `<n>` is the number of dimensions, `<over>` "one axis" ..., `<space>` "length",
"height, width" ..., and `<4>` a 4 for each dimension.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from .window_options import AXES

P = ParamSpec("P")
R = TypeVar("R")

_COUNT = {1: "one axis", 2: "two axes", 3: "three axes"}


def documented(text: str, axes: int) -> str:
    """A docstring for `axes` spatial dimensions."""
    words = {"n": str(axes), "over": _COUNT[axes], "space": AXES[axes]}
    return re.sub(r"<(\w+)>", lambda m: words.get(m[1]) or ", ".join([m[1]] * axes), text)


def by_dimension(
    function: Callable[Concatenate[int, str, P], R], *dimensions: int
) -> list[Callable[P, R]]:
    """A function for each number of dimensions, by default 1, 2 and 3.

    Parameters
    ----------
    function : callable
        ``f_nd(axes, op_name, x, ...)``, where `op_name` is the name for error messages.
    """
    signature = inspect.signature(function)
    public = signature.replace(parameters=list(signature.parameters.values())[2:])

    def bind(axes: int) -> Callable[P, R]:
        name = function.__name__.replace("_nd", f"{axes}d")

        def bound(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(axes, name, *args, **kwargs)

        bound.__name__ = bound.__qualname__ = name
        bound.__module__ = function.__module__
        bound.__doc__ = documented(function.__doc__ or "", axes)
        bound.__annotations__ = {k: v for k, v in function.__annotations__.items() if k in names}
        bound.__signature__ = public  # type: ignore[attr-defined]
        return bound

    names = {*public.parameters, "return"}
    found = [bind(axes) for axes in dimensions or (1, 2, 3)]
    function.__doc__ = None  # it has placeholders
    return found
