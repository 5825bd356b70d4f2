"""Normalization functions: mean 0 and variance 1.

    batch_norm       over the batch and spatial axes, for each channel
    instance_norm    over spatial axes, for each sample and channel
    group_norm       over groups of channels and spatial axes, for each sample
    layer_norm       over the last axes
    rms_norm         over the last axes; divides by the root mean square only
    normalize        divides by the norm along an axis
    local_response_norm  over neighboring channels; divides by a power of the mean square

The variance is computed in two passes, after the mean is subtracted: E[x**2] - E[x]**2 cancels, and
can be negative in single precision for a large mean.  Half precision is computed in single
precision.  Channels are axis 1, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.symbolic.dim import Comparisons, Dim, spelled
from wengert._engine.kinds.reduction import count_along
from wengert._engine.ops.neural.pooling import sum_pool
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from ..parameter import write

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]


def _in_single_precision(compute: Callable[[Any], Any], x: Any) -> Any:
    """compute(x), in single precision if x is in half precision."""
    if dtype_of(x).kind == "c":
        raise DtypeError(
            f"normalization of {dtype_of(x)} is not supported: the variance of complex numbers is "
            f"not their mean square. Normalize real and imaginary parts{at(user_line())}."
        )
    if dtype_of(x) != np.float16:
        return compute(x)
    return compute(x.astype(np.float32)).astype(np.float16)


def _centered(x: Any, axis: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The mean, x - mean, and the sum of squares of x - mean."""
    mean = _reduce(np.mean, x, axis)
    rest = x - mean
    return mean, rest, _reduce(np.sum, np.square(rest), axis)


def _reduce(combine: Any, x: Any, axis: tuple[int, ...]) -> Any:
    """A mean or sum over axes; of float32 in float64, because NumPy adds rows sequentially.

    Native code uses many partial sums, which is accurate enough in float32.
    """
    if dtype_of(x) != np.float32 or is_traced(x):
        return combine(x, axis=axis, keepdims=True)
    return combine(x, axis=axis, keepdims=True, dtype=np.float64).astype(np.float32)


def _standardize(x: Any, axis: tuple[int, ...], eps: float) -> Any:
    _, rest, total = _centered(x, axis)
    return rest / np.sqrt(total / count_along(shape_of(x), axis) + eps)


def _scale_and_shift(y: Any, weight: Any, bias: Any, shape: tuple[Any, ...] | None = None) -> Any:
    """y * weight + bias, both optional and reshaped to `shape`."""
    for array, join in ((weight, np.multiply), (bias, np.add)):
        if array is not None:
            y = join(y, array if shape is None else np.reshape(array, shape))
    return y


def _channels(x: Any, what: str, minimum: int = 2) -> tuple[Any, ...]:
    shape = shape_of(x)
    if len(shape) < minimum:
        raise ShapeError(
            f"{what}: expected samples on axis 0, channels on axis 1"
            f"{' and spatial axes' if minimum > 2 else ''}, got shape {spelled(shape)}"
            f"{at(user_line())}."
        )
    return shape


def _check_per_channel(array: Any, count: Any, name: str, what: str) -> None:
    if array is not None and shape_of(array) != (count,):
        raise ShapeError(
            f"{what}: {name} must have one element for each of {count} channels, got shape "
            f"{spelled(shape_of(array))}{at(user_line())}."
        )


def _check_variance(count: Any, shape: tuple[Any, ...], what: str) -> None:
    if isinstance(count, Dim):
        Comparisons.note(count, 1)
    elif count < 2:
        raise ShapeError(
            f"{what} in training was given shape {spelled(shape)}: the variance of {count} value "
            "per channel is undefined. Give more samples, or switch to evaluation, model.eval()"
            f"{at(user_line())}."
        )


def _update_running(running: Any, value: Any, momentum: Any, what: str) -> None:
    """Update an exponential moving average in place."""
    new = (1.0 - momentum) * value_of(running) + momentum * value
    if isinstance(running, Handle):
        write(running, new, what)
    else:
        running[...] = new


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
    """(x - mean) / standard deviation for each channel.

    Parameters
    ----------
    x : array or Tensor, shape (samples, channels, ...)
    running_mean, running_var : array or Tensor, shape (channels,), optional
        Used in evaluation, and updated in place in training.
    weight, bias : array or Tensor, shape (channels,), optional
        Scale and offset of the result.
    training : bool, default False
        Whether to use mean and variance of `x`; they are also used if there are no running ones.
    momentum : float, default 0.1
        The weight of `x` in the running statistics, whose variance has divisor n - 1.
    eps : float, default 1e-5
        Added to the variance.

    Raises
    ------
    ShapeError
        A shape does not match, or in training there is only one value per channel.

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
        _check_per_channel(array, shape[1], name, "batch_norm")
    along = (1, shape[1]) + (1,) * (len(shape) - 2)
    if not training and running_mean is not None and running_var is not None:
        mean, var = np.reshape(running_mean, along), np.reshape(running_var, along)
        return _in_single_precision(
            lambda x: _scale_and_shift((x - mean) / np.sqrt(var + eps), weight, bias, along), x
        )
    axis = (0, *range(2, len(shape)))
    count = count_along(shape, axis)
    if training:
        _check_variance(count, shape, "batch_norm")

    def compute(x: Any) -> Any:
        mean, rest, total = _centered(x, axis)
        if training and running_mean is not None:
            new = np.reshape(value_of(mean), (shape[1],))
            _update_running(running_mean, new, momentum, "running_mean")
        if training and running_var is not None:
            new = np.reshape(value_of(total), (shape[1],)) / (count - 1)
            _update_running(running_var, new, momentum, "running_var")
        return _scale_and_shift(rest / np.sqrt(total / count + eps), weight, bias, along)

    return _in_single_precision(compute, x)


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
    """(x - mean) / standard deviation for each channel of each sample.

    Parameters are those of `batch_norm`, with `use_input_stats` instead of `training`. Running
    statistics are updated with the mean over samples.

    References
    ----------
    .. [1] D. Ulyanov, A. Vedaldi and V. Lempitsky, "Instance normalization", arXiv:1607.08022.
    """
    shape = _channels(x, "instance_norm", 3)
    for name, array in (("weight", weight), ("bias", bias)):
        _check_per_channel(array, shape[1], name, "instance_norm")
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    axis = tuple(range(2, len(shape)))
    count = count_along(shape, axis)
    _check_variance(count, shape, "instance_norm")

    def compute(x: Any) -> Any:
        mean, rest, total = _centered(x, axis)
        for running, new, what in (
            (running_mean, mean, "running_mean"),
            (running_var, None if running_var is None else total / (count - 1), "running_var"),
        ):
            if running is not None:
                new = np.mean(np.reshape(value_of(new), shape[:2]), axis=0)
                _update_running(running, new, momentum, what)
        along = (1, shape[1]) + (1,) * len(axis)
        return _scale_and_shift(rest / np.sqrt(total / count + eps), weight, bias, along)

    return _in_single_precision(compute, x)


def group_norm(
    x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """(x - mean) / standard deviation for each group of channels of each sample.

    Parameters
    ----------
    x : array or Tensor, shape (samples, channels, ...)
    num_groups : int
        The number of groups of neighboring channels; must divide the number of channels.
    weight, bias : array or Tensor, shape (channels,), optional
    eps : float, default 1e-5

    Raises
    ------
    ShapeError
        `num_groups` does not divide the number of channels, or a shape does not match.

    References
    ----------
    .. [1] Y. Wu and K. He, "Group normalization", ECCV 2018, arXiv:1803.08494.
    """
    shape = _channels(x, "group_norm")
    if num_groups < 1 or shape[1] % num_groups:
        raise ShapeError(
            f"group_norm: {shape[1]} channels cannot be divided into {num_groups} groups"
            f"{at(user_line())}."
        )
    for name, array in (("weight", weight), ("bias", bias)):
        _check_per_channel(array, shape[1], name, "group_norm")
    grouped = (shape[0], num_groups, shape[1] // num_groups, *shape[2:])
    axis = tuple(range(2, len(grouped)))
    along = (1, shape[1]) + (1,) * (len(shape) - 2)

    def compute(x: Any) -> Any:
        y = _standardize(np.reshape(x, grouped), axis, eps)
        return _scale_and_shift(np.reshape(y, shape), weight, bias, along)

    return _in_single_precision(compute, x)


def _last_axes(x: Any, normalized_shape: int | Sequence[int], what: str) -> tuple[int, ...]:
    """The axes to normalize over, checked against `normalized_shape`."""
    last = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    shape = shape_of(x)
    if not last or shape[-len(last) :] != last:
        raise ShapeError(
            f"{what} over {spelled(last)} was given shape {spelled(shape)}, which must end with "
            f"{spelled(last)}. Reshape the input, or change the layer{at(user_line())}."
        )
    return tuple(range(-len(last), 0))


def layer_norm(
    x: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """(x - mean) / standard deviation over the last axes.

    Parameters
    ----------
    x : array or Tensor, shape (..., *normalized_shape)
    normalized_shape : int or sequence of int
    weight, bias : array or Tensor, shape normalized_shape, optional
    eps : float, default 1e-5

    Raises
    ------
    ShapeError
        The shape of `x` does not end with `normalized_shape`.

    References
    ----------
    .. [1] J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer normalization", arXiv:1607.06450.
    """
    axis = _last_axes(x, normalized_shape, "layer_norm")
    return _in_single_precision(
        lambda x: _scale_and_shift(_standardize(x, axis, eps), weight, bias), x
    )


def rms_norm(
    x: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float | None = None
) -> Any:
    """x divided by its root mean square over the last axes.

    Parameters
    ----------
    x : array or Tensor, shape (..., *normalized_shape)
    normalized_shape : int or sequence of int
    weight : array or Tensor, shape normalized_shape, optional
    eps : float, optional
        Added to the mean square; default ``finfo(x.dtype).eps``.

    References
    ----------
    .. [1] B. Zhang and R. Sennrich, "Root mean square layer normalization", arXiv:1910.07467.
    """
    axis = _last_axes(x, normalized_shape, "rms_norm")
    kind = dtype_of(x)
    small = eps if eps is not None else float(np.finfo(kind if kind.kind == "f" else float).eps)

    def compute(x: Any) -> Any:
        square = np.mean(np.square(x), axis=axis, keepdims=True)
        return _scale_and_shift(x / np.sqrt(square + small), weight, None)

    return _in_single_precision(compute, x)


def normalize(x: Any, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Any:
    """x / max(p-norm of x, eps) along an axis.

    Parameters
    ----------
    x : array or Tensor
    p : float, default 2.0
    axis : int, default 1
    eps : float, default 1e-12
    """
    if not eps > 0:
        raise ArgumentError(f"normalize: eps must be positive, got {eps}{at(user_line())}.")
    size = np.linalg.norm(x, ord=p, axis=axis, keepdims=True)
    return x / np.maximum(size, eps)


def local_response_norm(
    x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """x / (k + alpha m)**beta, where m is the mean square over `size` neighboring channels.

    Channels outside are zeros, and count; size // 2 of the neighbors are before a channel.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, ...)
        With at least one spatial axis.
    size : int
        The number of neighboring channels.
    alpha, beta, k : float

    References
    ----------
    .. [1] A. Krizhevsky, I. Sutskever, G. E. Hinton, "ImageNet classification with deep
       convolutional neural networks", NeurIPS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn import functional as F
    >>> F.local_response_norm(np.ones((1, 3, 1)), 3, alpha=1.0, beta=1.0)[0, :, 0]
    array([0.6, 0.5, 0.6])
    """
    shape = _channels(x, "local_response_norm", 3)
    if size < 1:
        raise ArgumentError(
            f"local_response_norm: size must be at least 1, got {size}{at(user_line())}."
        )

    def compute(x: Any) -> Any:
        rows = np.reshape(x * x, (shape[0], 1, shape[1], -1))
        pads = ((size // 2, (size - 1) // 2), (0, 0))
        total = sum_pool(rows, window=(size, 1), stride=(1, 1), padding=pads)
        return x / (k + alpha / size * np.reshape(total, shape)) ** beta

    return _in_single_precision(compute, x)
