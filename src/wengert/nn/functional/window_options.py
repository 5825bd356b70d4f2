"""Options of layers and functions over 1, 2 and 3 axes: kernel sizes, strides, padding.

    per_axis        an option as a tuple with an integer for each axis
    pads            padding as pairs (before, after)
    array_of        nested lists as an array
    with_samples    an input with a batch axis, and whether it was added
    Option          the type of these arguments
    by_dimension    pool1d, pool2d and pool3d from pool_nd(axes, op_name, x, ...)
    documented      a docstring for a number of dimensions

An integer applies to all spatial axes, a tuple has one element for each.  Padding may also be
"same" or "valid".

In a docstring `<n>` is the number of dimensions, `<over>` "one axis" ..., `<space>` "length",
"height, width" ..., and `<4>` a 4 for each dimension.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line

Option = int | Sequence[int]
Pairs = tuple[tuple[int, int], ...]
AXES = {1: "length", 2: "height, width", 3: "depth, height, width"}


def per_axis(value: Any, axes: int, name: str, minimum: int = 1) -> tuple[int, ...]:
    """An option as a tuple with one integer for each axis.

    Raises
    ------
    ArgumentError
        `value` is not an integer or a tuple of `axes` integers, or is less than `minimum`.
    """
    numbers = list(value) if isinstance(value, list | tuple) else [value] * axes
    if len(numbers) == 1:
        numbers = numbers * axes
    integers = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in numbers)
    if len(numbers) != axes or not integers:
        raise ArgumentError(
            f"{name} must be an integer or one integer for each of {axes} axes, got {value!r}"
            f"{at(user_line())}."
        )
    if min(numbers) < minimum:
        raise ArgumentError(f"{name} must be at least {minimum}, got {value!r}{at(user_line())}.")
    return tuple([int(n) for n in numbers])


def pads(
    padding: Any,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Pairs:
    """Padding as pairs (before, after); "same" preserves lengths, "valid" is no padding.

    Raises
    ------
    ArgumentError
        The string is unknown, a number is negative, or "same" is given with a stride.
    """
    if not isinstance(padding, str):
        return tuple([(n, n) for n in per_axis(padding, len(kernel), "padding", 0)])
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding != "same":
        raise ArgumentError(
            f'padding must be an integer, a tuple, "same" or "valid", got {padding!r}'
            f"{at(user_line())}."
        )
    if any(s != 1 for s in stride):
        raise ArgumentError(
            f'padding="same" preserves lengths, and requires stride 1, got stride='
            f"{tuple(stride)}. Give the padding as a number{at(user_line())}."
        )
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple([(t // 2, t - t // 2) for t in totals])


def array_of(x: Any) -> Any:
    """Lists and tuples as arrays; anything else unchanged."""
    return np.asarray(x) if isinstance(x, list | tuple) else x


def with_samples(x: Any, axes: int, op_name: str) -> tuple[Any, bool]:
    """`x` as (samples, channels, *axes), and whether the batch axis was added.

    Raises
    ------
    ShapeError
        The number of axes is wrong.
    """
    x = array_of(x)
    shape = shape_of(x)
    if len(shape) == axes + 2:
        return x, False
    if len(shape) == axes + 1:
        return np.expand_dims(x, 0), True
    raise ShapeError(
        f"{op_name}: expected shape (samples, channels, {AXES[axes]}), or one sample without the "
        f"first axis, got {spelled(shape)}{at(user_line())}."
    )


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
