"""Normalization layers: BatchNorm, InstanceNorm, GroupNorm, LayerNorm, RMSNorm, LocalResponseNorm.

The functions are in functional/normalization.py.  Names of parameters and buffers are PyTorch's.
Running statistics are buffers: compiled training steps update them, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from wengert._engine.core.handle import shape_of, value_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..functional import normalization
from ..init import check_layer_sizes
from ..module import Module
from ..parameter import Buffer, Parameter, write

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]


class _ChannelNorm(Module):
    """Base of batch and instance normalization: parameters, buffers, shape checks."""

    axes: tuple[int, ...] = ()
    layout = ""

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        dtype: Any,
    ) -> None:
        check_layer_sizes(self, 1, num_features=num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        n = num_features
        self.weight = Parameter(np.ones(n, dtype)) if affine else None
        self.bias = Parameter(np.zeros(n, dtype)) if affine else None
        self.running_mean = Buffer(np.zeros(n, dtype)) if track_running_stats else None
        self.running_var = Buffer(np.ones(n, dtype)) if track_running_stats else None
        self.num_batches_tracked = Buffer(np.int64(0)) if track_running_stats else None

    def _batch_weight(self) -> Any:
        """The weight of this batch in the running statistics; increments the batch count."""
        if not (self.training and self.track_running_stats):
            return 0.0
        write(self.num_batches_tracked, value_of(self.num_batches_tracked) + 1)
        if self.momentum is not None:
            return self.momentum
        kind = self.running_mean.dtype  # type: ignore[union-attr]
        return 1.0 / value_of(self.num_batches_tracked).astype(kind)

    def _check(self, x: Any, channel: int = 1) -> tuple[Any, ...]:
        shape = shape_of(x)
        if len(shape) not in self.axes or shape[channel] != self.num_features:
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}: expected "
                f"{self.layout.format(n=self.num_features)}. Reshape the input, or change the "
                f"layer{at(user_line())}."
            )
        return shape

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if self.track_running_stats:
            self.running_mean = np.zeros(self.num_features)  # type: ignore[assignment]
            self.running_var = np.ones(self.num_features)  # type: ignore[assignment]
            self.num_batches_tracked = np.int64(0)  # type: ignore[assignment]

    def extra_repr(self) -> str:
        """Sizes and options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ChannelNorm):
    """(x - mean) / standard deviation for each channel."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = float,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, x: Any) -> Any:
        """x normalized for each channel, times the weight plus the bias."""
        self._check(x)
        return normalization.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training,
            self._batch_weight(),
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """`functional.batch_norm` over (batch, channels) or (batch, channels, length).

    In training, mean and variance of the batch are used, and the running statistics are updated
    with them; in evaluation the running statistics are used.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float or None, default 0.1
        The weight of a batch in the running statistics; None for cumulative averages.
    affine : bool, default True
        Whether there are a weight and a bias.
    track_running_stats : bool, default True
        If False, statistics of the batch are used in evaluation, too.
    dtype : dtype, default float64

    Attributes
    ----------
    weight, bias : Parameter, shape (num_features,), or None
    running_mean, running_var : Buffer, shape (num_features,), or None
    num_batches_tracked : Buffer, shape (), or None

    Raises
    ------
    ShapeError
        The shape of the input is wrong, or in training there is only one value per channel.

    Notes
    -----
    Each call in training updates the running statistics; eager `wengert.checkpoint` calls the
    function again in the backward pass, and updates them twice, as in PyTorch. In `wengert.vmap`
    and in loops use `stateful_call`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> norm = nn.BatchNorm1d(2, affine=False)
    >>> norm(np.array([[0.0, 5.0], [2.0, 9.0]])).round(3)
    array([[-1., -1.],
           [ 1.,  1.]])
    >>> norm.running_mean
    Buffer([0.1, 0.7], dtype=float64)
    """

    axes = (2, 3)
    layout = "(batch, {n}) or (batch, {n}, length)"


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` over (batch, channels, height, width)."""

    axes = (4,)
    layout = "(batch, {n}, height, width)"


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` over (batch, channels, depth, height, width)."""

    axes = (5,)
    layout = "(batch, {n}, depth, height, width)"


class _InstanceNorm(_ChannelNorm):
    """(x - mean) / standard deviation for each channel of each sample."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: Any = float,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, x: Any) -> Any:
        """x normalized for each channel of each sample, times the weight plus the bias."""
        single = len(shape_of(x)) == min(self.axes)
        shape = self._check(x, 0 if single else 1)
        y = normalization.instance_norm(
            np.expand_dims(x, 0) if single else x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self._batch_weight(),
            self.eps,
        )
        return np.reshape(y, shape) if single else y


class InstanceNorm1d(_InstanceNorm):
    """`functional.instance_norm` over (batch, channels, length) or (channels, length).

    Parameters are those of `BatchNorm1d`, but `affine` and `track_running_stats` default to False.
    """

    axes = (2, 3)
    layout = "(batch, {n}, length) or ({n}, length)"


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` over (batch, channels, height, width) or (channels, height, width)."""

    axes = (3, 4)
    layout = "(batch, {n}, height, width) or ({n}, height, width)"


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` over (batch, channels, depth, height, width), or without batch."""

    axes = (4, 5)
    layout = "(batch, {n}, depth, height, width) or ({n}, depth, height, width)"


class GroupNorm(Module):
    """`functional.group_norm` as a module: normalization over groups of channels.

    Parameters
    ----------
    num_groups : int
        Must divide the number of channels; 1 normalizes whole samples.
    num_channels : int
    eps : float, default 1e-5
    affine : bool, default True
    dtype : dtype, default float64

    Attributes
    ----------
    weight, bias : Parameter, shape (num_channels,), or None

    Raises
    ------
    ArgumentError
        `num_groups` does not divide `num_channels`.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: Any = float,
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ArgumentError(
                f"GroupNorm({num_groups}, {num_channels}): num_channels must be a multiple of "
                f"num_groups{at(user_line())}."
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter(np.ones(num_channels, dtype)) if affine else None
        self.bias = Parameter(np.zeros(num_channels, dtype)) if affine else None

    def forward(self, x: Any) -> Any:
        """x normalized for each group of each sample, times the weight plus the bias."""
        shape = shape_of(x)
        if len(shape) < 2 or shape[1] != self.num_channels:
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}: expected (batch, {self.num_channels}, "
                f"...). Reshape the input, or change the layer{at(user_line())}."
            )
        return normalization.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Sizes and options."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, "
            f"affine={self.weight is not None}"
        )


class _LastAxesNorm(Module):
    """Base of layer and RMS normalization: the weight, shape checks."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None,
        elementwise_affine: bool,
        dtype: Any,
    ) -> None:
        one = not isinstance(normalized_shape, list | tuple)
        shape: Any = (normalized_shape,) if one else tuple(normalized_shape)  # type: ignore[arg-type]
        check_layer_sizes(self, normalized_shape=shape)
        self.normalized_shape, self.eps = shape, cast(float, eps)  # None: RMSNorm only
        self.weight = Parameter(np.ones(shape, dtype)) if elementwise_affine else None

    def _check(self, x: Any) -> None:
        last, shape = self.normalized_shape, shape_of(x)
        if shape[len(shape) - len(last) :] != last or len(shape) < len(last):
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}, which must end with {spelled(last)}. "
                f"Reshape the input, or change the layer{at(user_line())}."
            )

    def extra_repr(self) -> str:
        """Sizes and options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"
        )


class LayerNorm(_LastAxesNorm):
    """`functional.layer_norm` as a module: normalization over the last axes.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Lengths of the last axes.
    eps : float, default 1e-5
    elementwise_affine : bool, default True
        Whether there are a weight and a bias.
    bias : bool, default True
        Whether there is a bias.
    dtype : dtype, default float64

    Attributes
    ----------
    weight, bias : Parameter, shape normalized_shape, or None

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.LayerNorm(2)(np.array([[0.0, 2.0], [5.0, 9.0]])).numpy().round(3)
    array([[-1.,  1.],
           [-1.,  1.]])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = float,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, dtype)
        shape = self.normalized_shape
        self.bias = Parameter(np.zeros(shape, dtype)) if elementwise_affine and bias else None

    def forward(self, x: Any) -> Any:
        """x normalized over its last axes, times the weight plus the bias."""
        self._check(x)
        return normalization.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_LastAxesNorm):
    """`functional.rms_norm` as a module: division by the root mean square of the last axes.

    Parameters
    ----------
    normalized_shape : int or sequence of int
    eps : float, optional
        Default ``finfo(x.dtype).eps``.
    elementwise_affine : bool, default True
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape normalized_shape, or None
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: Any = float,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, dtype)

    def forward(self, x: Any) -> Any:
        """x divided by its root mean square over the last axes, times the weight."""
        self._check(x)
        return normalization.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class LocalResponseNorm(Module):
    """`functional.local_response_norm` as a module: normalization over neighboring channels.

    Parameters
    ----------
    size : int
        The number of neighboring channels.
    alpha : float, default 1e-4
    beta : float, default 0.75
    k : float, default 1.0
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Any) -> Any:
        """x divided by a power of the mean square of neighboring channels."""
        return normalization.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
