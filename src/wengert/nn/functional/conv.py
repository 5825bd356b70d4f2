"""Convolution functions, and the options of functions of windows over 1, 2 and 3 axes.

    per_axis              an option as a tuple with an integer for each axis
    pads                  padding as pairs (before, after)
    array_of              nested lists as an array
    with_samples          an input with a batch axis, and whether it was added
    Option                the type of these arguments
    by_dimension          pool1d, pool2d and pool3d from pool_nd(axes, op_name, x, ...)
    documented            a docstring for a number of dimensions
    conv1d conv2d conv3d  cross-correlations
    conv_transpose1d conv_transpose2d conv_transpose3d  their transposes

An integer applies to all spatial axes, a tuple has one element for each.  Padding may also be
"same" or "valid".

In a docstring `<n>` is the number of dimensions, `<over>` "one axis" ..., `<space>` "length",
"height, width" ..., and `<4>` a 4 for each dimension.

For convolutions this module handles options, the bias and shape checks; the operations are in
_engine/ops/neural/convolution.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.neural.convolution import convolution, convolution_input
from wengert.errors import ArgumentError, ShapeError, at, user_line

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

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


# ---- convolutions ------------------------------------------------------------------------------


def conv_nd(
    axes: int,
    op_name: str,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Option = 1,
    padding: Any = 0,
    dilation: Option = 1,
    groups: int = 1,
) -> Any:
    """Cross-correlation over <over>, as in PyTorch.

    Parameters
    ----------
    x : array or Tensor, shape (batch, in_channels, <space>)
        Or one sample, without the batch axis.
    weight : array or Tensor, shape (out_channels, in_channels / groups, <k>)
    bias : array or Tensor, shape (out_channels,), optional
    stride : int or tuple, default 1
    padding : int, tuple, "same" or "valid", default 0
        The number of zeros on each side; "same" preserves lengths.
    dilation : int or tuple, default 1
        The distance between elements of the kernel.
    groups : int, default 1
        The number of groups of channels, which are convolved separately.

    Returns
    -------
    array or Tensor, shape (batch, out_channels, <space>)
        An axis of length n becomes (n + 2 padding - dilation (kernel - 1) - 1) // stride + 1.

    Raises
    ------
    ShapeError
        The shapes do not match.
    ArgumentError
        An option is invalid.

    Notes
    -----
    The cost is two operations for each sample, output channel, input channel of its group, kernel
    element and output position [1]_.

    References
    ----------
    .. [1] V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep learning",
       arXiv:1603.07285.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.conv<n>d(np.ones((2, 3, <5>)), np.ones((4, 3, <3>)), padding=1).shape
    (2, 4, <5>)
    """
    (x, single), weight = with_samples(x, axes, op_name), array_of(weight)
    lengths = shape_of(x)[2:]
    kernel = _kernel(weight, axes, op_name)
    _check_groups(groups, shape_of(weight)[0], op_name)
    inputs = shape_of(weight)[1] * groups
    _check_channels(x, weight, inputs, axes, op_name)
    strides = per_axis(stride, axes, "stride")
    dilations = per_axis(dilation, axes, "dilation")
    pairs = pads(padding, kernel, strides, dilations)
    _check_lengths(lengths, pairs, kernel, dilations, op_name)
    x, weight = _same_dtype(x, weight)
    y = convolution(
        x, weight, stride=strides, padding=pairs, dilation=dilations, groups=int(groups)
    )
    y = _biased(y, bias, axes)
    return y[0] if single else y


conv1d, conv2d, conv3d = by_dimension(conv_nd)


def conv_transpose_nd(
    axes: int,
    op_name: str,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Option = 1,
    padding: Option = 0,
    output_padding: Option = 0,
    groups: int = 1,
    dilation: Option = 1,
) -> Any:
    """Transposed convolution over <over>, as in PyTorch: the transpose of `conv<n>d`.

    Parameters
    ----------
    x : array or Tensor, shape (batch, in_channels, <space>)
        Or one sample, without the batch axis.
    weight : array or Tensor, shape (in_channels, out_channels / groups, <k>)
    bias : array or Tensor, shape (out_channels,), optional
    stride : int or tuple, default 1
        The distance between the elements of x in the result.
    padding : int or tuple, default 0
        The number of elements removed on each side of the result.
    output_padding : int or tuple, default 0
        The number of elements added on one side; less than the stride or the dilation.
    groups : int, default 1
    dilation : int or tuple, default 1

    Returns
    -------
    array or Tensor, shape (batch, out_channels, <space>)
        An axis of length n becomes (n - 1) stride - 2 padding + dilation (kernel - 1) +
        output_padding + 1.

    Raises
    ------
    ShapeError
        The shapes do not match.
    ArgumentError
        An option is invalid.

    Notes
    -----
    The cost is that of the convolution it transposes: section 4 of [1]_.

    References
    ----------
    .. [1] V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep learning",
       arXiv:1603.07285.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.conv_transpose<n>d(np.ones((2, 4, <5>)), np.ones((4, 3, <2>)), stride=2).shape
    (2, 3, <10>)
    """
    (x, single), weight = with_samples(x, axes, op_name), array_of(weight)
    kernel = _kernel(weight, axes, op_name)
    inputs = shape_of(weight)[0]
    _check_groups(groups, inputs, op_name)
    _check_channels(x, weight, inputs, axes, op_name)
    strides = per_axis(stride, axes, "stride")
    dilations = per_axis(dilation, axes, "dilation")
    pad = per_axis(padding, axes, "padding", 0)
    more = per_axis(output_padding, axes, "output_padding", 0)
    size = []
    for n, k, s, d, p, e in zip(
        shape_of(x)[2:], kernel, strides, dilations, pad, more, strict=True
    ):
        if e >= max(s, d):
            raise ArgumentError(
                f"{op_name}: output_padding={output_padding!r} must be less than the stride "
                f"{strides} or the dilation {dilations}{at(user_line())}."
            )
        size.append((n - 1) * s + d * (k - 1) + 1 - 2 * p + e)
    if any(isinstance(n, int) and n < 1 for n in size):
        raise ShapeError(
            f"{op_name} was given shape {spelled(shape_of(x))}: with padding {pad} the result "
            f"would have the empty shape {spelled(tuple(size))}. Choose less padding"
            f"{at(user_line())}."
        )
    x, weight = _same_dtype(x, weight)
    y = convolution_input(
        x,
        weight,
        size=tuple(size),
        stride=strides,
        padding=tuple([(p, p - e) for p, e in zip(pad, more, strict=True)]),
        dilation=dilations,
        groups=int(groups),
    )
    y = _biased(y, bias, axes)
    return y[0] if single else y


conv_transpose1d, conv_transpose2d, conv_transpose3d = by_dimension(conv_transpose_nd)


def _same_dtype(x: Any, weight: Any) -> tuple[Any, Any]:
    """Both cast to the dtype of the result: native code needs equal dtypes."""
    one, two = dtype_of(x), dtype_of(weight)
    if one == two:
        return x, weight
    both = np.result_type(one, two)
    return (x if one == both else x.astype(both)), (weight if two == both else weight.astype(both))


def _kernel(weight: Any, axes: int, op_name: str) -> tuple[int, ...]:
    shape = shape_of(weight)
    if len(shape) != axes + 2:
        raise ShapeError(
            f"{op_name} was given a weight of shape {spelled(shape)}: expected {axes + 2} axes, "
            f"two of channels and {AXES[axes]}{at(user_line())}."
        )
    return tuple(shape[2:])


def _check_channels(x: Any, weight: Any, inputs: Any, axes: int, op_name: str) -> None:
    if shape_of(x)[1] != inputs:
        raise ShapeError(
            f"{op_name} was given {shape_of(x)[1]} channels, in shape {spelled(shape_of(x))}: its "
            f"weight of shape {spelled(shape_of(weight))} takes (samples, {inputs}, "
            f"{AXES[axes]}). Reshape the input, or change the weight{at(user_line())}."
        )


def _check_groups(groups: Any, channels: Any, op_name: str) -> None:
    is_integer = isinstance(groups, int | np.integer)
    if not is_integer or groups < 1 or channels % groups:
        raise ArgumentError(
            f"{op_name}: groups must be an integer that divides the {channels} channels of the "
            f"weight's first axis, got {groups!r}{at(user_line())}."
        )


def _check_lengths(
    lengths: Sequence[Any], pairs: Any, kernel: Sequence[int], dilation: Sequence[int], op_name: str
) -> None:
    padded = [n + low + high for n, (low, high) in zip(lengths, pairs, strict=True)]
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(isinstance(n, int) and n < k for n, k in zip(padded, spans, strict=True)):
        raise ShapeError(
            f"{op_name} was given spatial axes of lengths {spelled(tuple(lengths))}, "
            f"{spelled(tuple(padded))} with padding, less than the {spelled(tuple(spans))} "
            f"that its kernel spans. Give larger inputs or more padding{at(user_line())}."
        )


def _biased(y: Any, bias: Any, axes: int) -> Any:
    return y if bias is None else y + np.reshape(bias, (-1, *([1] * axes)))
