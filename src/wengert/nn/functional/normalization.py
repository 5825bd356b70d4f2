"""Normalization, as plain functions: elements made to have mean 0 and variance 1 together.

    batch_norm       over the batch and space, for each channel
    instance_norm    over space, for each sample and channel
    group_norm       over groups of channels and space, for each sample
    layer_norm       over the last axes
    rms_norm         over the last axes, by the root of the mean square alone
    normalize        to norm 1 along an axis

The variance is the mean square of what the mean was taken from, in two passes: E[x**2] - E[x]**2
cancels, and is negative for single precision and a large mean.  Half precision is computed in
single.  Channels are axis 1, PyTorch's layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.kinds.reduction import count_along
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from ..parameter import write

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "normalize", "rms_norm"]


def _in_single(compute: Callable[[Any], Any], x: Any) -> Any:
    """What is computed of x, for half precision in single."""
    if dtype_of(x).kind == "c":
        raise DtypeError(
            f"normalization of {dtype_of(x)}: the variance of complex numbers is not their mean "
            f"square. Normalize real and imaginary parts{at(user_line())}."
        )
    if dtype_of(x) != np.float16:
        return compute(x)
    return compute(x.astype(np.float32)).astype(np.float16)


def _centered(x: Any, axis: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The mean, what is left without it, and the sum of its squares."""
    mean = _added(np.mean, x, axis)
    rest = x - mean
    return mean, rest, _added(np.sum, np.square(rest), axis)


def _added(combine: Any, x: Any, axis: tuple[int, ...]) -> Any:
    """A mean or sum over axes: of float32 in float64, as NumPy adds rows up one after the other.

    Native code adds many partial sums, and needs no help.
    """
    if dtype_of(x) != np.float32 or is_traced(x):
        return combine(x, axis=axis, keepdims=True)
    return combine(x, axis=axis, keepdims=True, dtype=np.float64).astype(np.float32)


def _standard(x: Any, axis: tuple[int, ...], eps: float) -> Any:
    _, rest, total = _centered(x, axis)
    return rest / np.sqrt(total / count_along(shape_of(x), axis) + eps)


def _scaled(y: Any, weight: Any, bias: Any, shape: tuple[Any, ...] | None = None) -> Any:
    """Times weight plus bias, laid along an axis of channels."""
    for array, join in ((weight, np.multiply), (bias, np.add)):
        if array is not None:
            y = join(y, array if shape is None else np.reshape(array, shape))
    return y


def _channels(x: Any, what: str, least: int = 2) -> tuple[Any, ...]:
    shape = shape_of(x)
    if len(shape) < least:
        raise ShapeError(
            f"{what} was given shape {spelled(shape)}: it needs samples on axis 0 and channels on "
            f"axis 1{' and something beyond' if least > 2 else ''}{at(user_line())}."
        )
    return shape


def _one_for_each(array: Any, count: Any, name: str, what: str) -> None:
    if array is not None and shape_of(array) != (count,):
        raise ShapeError(
            f"{what}: {name} has shape {spelled(shape_of(array))} for {count} channels. Give one "
            f"number for each{at(user_line())}."
        )


def _more_than_one(count: Any, shape: tuple[Any, ...], what: str) -> None:
    if isinstance(count, int) and count < 2:
        raise ShapeError(
            f"{what} in training was given shape {spelled(shape)}: {count} value for each channel "
            f"has no variance. Give more samples, or evaluate, model.eval(){at(user_line())}."
        )


def _moved(held: Any, value: Any, momentum: Any, what: str) -> None:
    """Let a running statistic go a part of the way to a new value."""
    new = (1.0 - momentum) * value_of(held) + momentum * value
    if isinstance(held, Handle):
        write(held, new, what)
    else:
        held[...] = new


def batch_norm(
    x: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Each channel less its mean, divided by its standard deviation.

    Parameters
    ----------
    x : array or Tensor, shape (samples, channels, ...)
    running_mean, running_var : array or Tensor, shape (channels,), optional
        What is used in evaluation, and moved along in training: written to.
    weight, bias : array or Tensor, shape (channels,), optional
        Applied to the result.
    training : bool, default False
        Whether mean and variance are those of `x`; they are, too, without running ones.
    momentum : float, default 0.1
        The share of `x` in the running statistics, whose variance has n - 1 for its divisor.
    eps : float, default 1e-5
        Added to the variance.

    Raises
    ------
    ShapeError
        A shape does not fit, or in training a channel has one value.

    References
    ----------
    .. [1] S. Ioffe and C. Szegedy, "Batch normalization", ICML 2015, arXiv:1502.03167.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import batch_norm
    >>> batch_norm(np.array([[0.0, 5.0], [2.0, 9.0]]), eps=0.0)
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    shape = _channels(x, "batch_norm")
    for name, array in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        _one_for_each(array, shape[1], name, "batch_norm")
    along = (1, shape[1]) + (1,) * (len(shape) - 2)
    if not training and running_mean is not None and running_var is not None:
        mean, var = np.reshape(running_mean, along), np.reshape(running_var, along)
        return _in_single(
            lambda x: _scaled((x - mean) / np.sqrt(var + eps), weight, bias, along), x
        )
    axis = (0, *range(2, len(shape)))
    count = count_along(shape, axis)
    if training:
        _more_than_one(count, shape, "batch_norm")

    def compute(x: Any) -> Any:
        mean, rest, total = _centered(x, axis)
        if training and running_mean is not None:
            seen = np.reshape(value_of(mean), (shape[1],))
            _moved(running_mean, seen, momentum, "running_mean")
        if training and running_var is not None:
            seen = np.reshape(value_of(total), (shape[1],)) / (count - 1)
            _moved(running_var, seen, momentum, "running_var")
        return _scaled(rest / np.sqrt(total / count + eps), weight, bias, along)

    return _in_single(compute, x)


def instance_norm(
    x: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: Any = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Each channel of each sample less its mean, divided by its standard deviation.

    Parameters are those of `batch_norm`, with `use_input_stats` in the place of `training`: the
    running statistics are moved to the mean, over samples, of theirs.

    References
    ----------
    .. [1] D. Ulyanov, A. Vedaldi and V. Lempitsky, "Instance normalization", arXiv:1607.08022.
    """
    shape = _channels(x, "instance_norm", 3)
    for name, array in (("weight", weight), ("bias", bias)):
        _one_for_each(array, shape[1], name, "instance_norm")
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    axis = tuple(range(2, len(shape)))
    count = count_along(shape, axis)
    _more_than_one(count, shape, "instance_norm")

    def compute(x: Any) -> Any:
        mean, rest, total = _centered(x, axis)
        for held, seen, what in (
            (running_mean, mean, "running_mean"),
            (running_var, None if running_var is None else total / (count - 1), "running_var"),
        ):
            if held is not None:
                seen = np.mean(np.reshape(value_of(seen), shape[:2]), axis=0)
                _moved(held, seen, momentum, what)
        along = (1, shape[1]) + (1,) * len(axis)
        return _scaled(rest / np.sqrt(total / count + eps), weight, bias, along)

    return _in_single(compute, x)


def group_norm(
    x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Each group of channels of each sample less its mean, divided by its standard deviation.

    Parameters
    ----------
    x : array or Tensor, shape (samples, channels, ...)
    num_groups : int
        Neighboring channels make a group; their number is a multiple of this.
    weight, bias : array or Tensor, shape (channels,), optional
    eps : float, default 1e-5

    Raises
    ------
    ShapeError
        The channels are not made of whole groups, or a shape does not fit.

    References
    ----------
    .. [1] Y. Wu and K. He, "Group normalization", ECCV 2018, arXiv:1803.08494.
    """
    shape = _channels(x, "group_norm")
    if num_groups < 1 or shape[1] % num_groups:
        raise ShapeError(
            f"group_norm: {shape[1]} channels are not made of {num_groups} groups. Choose a "
            f"divisor{at(user_line())}."
        )
    for name, array in (("weight", weight), ("bias", bias)):
        _one_for_each(array, shape[1], name, "group_norm")
    grouped = (shape[0], num_groups, shape[1] // num_groups, *shape[2:])
    axis = tuple(range(2, len(grouped)))
    along = (1, shape[1]) + (1,) * (len(shape) - 2)

    def compute(x: Any) -> Any:
        y = _standard(np.reshape(x, grouped), axis, eps)
        return _scaled(np.reshape(y, shape), weight, bias, along)

    return _in_single(compute, x)


def _last(x: Any, normalized_shape: int | Sequence[int], what: str) -> tuple[int, ...]:
    """The last axes, if they have that shape."""
    last = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    shape = shape_of(x)
    if not last or shape[-len(last) :] != last:
        raise ShapeError(
            f"{what} over {spelled(last)} was given shape {spelled(shape)}, which has to end with "
            f"that. Reshape the input, or change the layer{at(user_line())}."
        )
    return tuple(range(-len(last), 0))


def layer_norm(
    x: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """The last axes less their mean, divided by their standard deviation.

    Parameters
    ----------
    x : array or Tensor, shape (..., *normalized_shape)
    normalized_shape : int or sequence of int
    weight, bias : array or Tensor, shape normalized_shape, optional
    eps : float, default 1e-5

    Raises
    ------
    ShapeError
        `x` does not end with that shape.

    References
    ----------
    .. [1] J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer normalization", arXiv:1607.06450.
    """
    axis = _last(x, normalized_shape, "layer_norm")
    return _in_single(lambda x: _scaled(_standard(x, axis, eps), weight, bias), x)


def rms_norm(
    x: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None
) -> Any:
    """The last axes divided by the root of their mean square.

    Parameters
    ----------
    x : array or Tensor, shape (..., *normalized_shape)
    normalized_shape : int or sequence of int
    weight : array or Tensor, shape normalized_shape, optional
    eps : float, optional
        Added to the mean square; by default the spacing of numbers at 1 (of x's dtype).

    References
    ----------
    .. [1] B. Zhang and R. Sennrich, "Root mean square layer normalization", arXiv:1910.07467.
    """
    axis = _last(x, normalized_shape, "rms_norm")
    kind = dtype_of(x)
    small = eps if eps is not None else float(np.finfo(kind if kind.kind == "f" else float).eps)

    def compute(x: Any) -> Any:
        square = np.mean(np.square(x), axis=axis, keepdims=True)
        return _scaled(x / np.sqrt(square + small), weight, None)

    return _in_single(compute, x)


def normalize(x: Any, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Any:
    """Divided by the p-norm along an axis, or by `eps` where that is larger.

    Parameters
    ----------
    x : array or Tensor
    p : float, default 2.0
    axis : int, default 1
    eps : float, default 1e-12
    """
    if not eps > 0:
        raise ArgumentError(f"normalize: eps={eps}, but it has to be positive{at(user_line())}.")
    size = np.linalg.norm(x, ord=p, axis=axis, keepdims=True)
    return x / np.maximum(size, eps)
