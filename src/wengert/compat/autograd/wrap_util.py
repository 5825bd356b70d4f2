"""Operators on functions of one argument, extended to functions of several.

unary_to_nary   a decorator: ``op(fun, x)`` becomes ``op(fun, argnum=0)(*args, **kwargs)``
get_name        the name of a function in messages

Arrays of integers, with respect to which autograd differentiates too, become floating-point arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.validation import function as check_function
from wengert._engine.core.validation import integers

__all__ = ["get_name", "unary_to_nary"]


def _floating(x: Any) -> Any:
    return x.astype(float) if isinstance(x, np.ndarray) and x.dtype.kind in "iu" else x


def get_name(fun: Any) -> str:
    """The name of a function, or a placeholder."""
    return getattr(fun, "__name__", "[unknown name]")


def unary_to_nary(operator: Callable[..., Any]) -> Callable[..., Any]:
    """Make an operator ``op(fun, x)`` one of functions of several arguments (a decorator).

    Parameters
    ----------
    operator : callable
        ``operator(fun, x, *more, **options)`` of a function of one argument, at `x`.

    Returns
    -------
    callable
        ``op(fun, argnum=0, *more, **options)``, which returns a function of the arguments of
        `fun`. `argnum` is an index, or a list of indices: then `x` is a tuple.
    """

    @functools.wraps(operator)
    def of_function(
        fun: Callable[..., Any], argnum: Any = 0, *more: Any, **options: Any
    ) -> Callable[..., Any]:
        name = get_name(operator)
        check_function(fun, name)
        chosen = integers(argnum, "argnum")
        is_one = not isinstance(argnum, tuple | list)

        def of_arguments(*args: Any, **kwargs: Any) -> Any:
            def of_one(x: Any) -> Any:
                full = list(args)
                for i, value in zip(chosen, [x] if is_one else x, strict=True):
                    full[i] = value
                return converted(fun)(*full, **kwargs)

            of_one.__name__ = get_name(fun)
            found = args[chosen[0]] if is_one else tuple([args[i] for i in chosen])
            x = pytree.tree_map(_floating, found)
            return operator(of_one, x, *more, **options)

        of_arguments.__name__ = f"{name}_of_{get_name(fun)}_wrt_argnum_{argnum}"
        of_arguments.__doc__ = (
            f"    {name} of function {get_name(fun)} with respect to argument {argnum}."
        )
        return of_arguments

    return of_function
