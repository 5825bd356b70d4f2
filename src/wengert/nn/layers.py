"""Layers: the modules that models are built of.

    with parameters     Linear
    without             ReLU Tanh Sigmoid Softplus Softmax LogSoftmax Flatten
    random              Dropout
    losses as modules   MSELoss (MSE) L1Loss CrossEntropyLoss NLLLoss BCEWithLogitsLoss BCELoss

What they compute is in activations.py, losses.py and functional.py.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from ..core.dims import spelled
from ..core.handle import shape_of
from ..errors import ArgumentError, ShapeError, at, user_line
from ..random import Stream
from . import functional as F
from . import init
from .losses import REDUCTIONS
from .module import Module
from .parameter import Parameter


class Linear(Module):
    """``y = x @ weight.T + bias``, PyTorch's layout and its initial values.

    Parameters
    ----------
    in_features, out_features : int
        Lengths of the last axis of x and of y.
    bias : bool, default True
    rng : int or numpy.random.Generator, optional
        Source of the initial values.
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (out_features, in_features)
    bias : Parameter, shape (out_features,), or None

    Notes
    -----
    Weight and bias start uniform between -1/sqrt(in_features) and 1/sqrt(in_features), which is
    `init.kaiming_uniform` with a gain of 1/sqrt(3).

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.Linear(3, 2, rng=0)
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    >>> layer(np.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        rng = np.random.default_rng(rng)
        bound = 1.0 / sqrt(max(1, in_features))
        self.in_features, self.out_features = in_features, out_features
        shape = (out_features, in_features)
        self.weight = Parameter(init.kaiming_uniform(shape, rng, dtype, gain=sqrt(1.0 / 3.0)))
        self.bias = Parameter(init.uniform((out_features,), bound, rng, dtype)) if bias else None

    def forward(self, x: Any) -> Any:
        """``x @ weight.T + bias``."""
        if shape_of(x)[-1:] != (self.in_features,):
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape_of(x))}: its last axis must have length "
                f"{self.in_features}. Reshape the input, or change the layer{at(user_line())}."
            )
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class ReLU(Module):
    """`functional.relu` as a module."""

    def forward(self, x: Any) -> Any:
        """x where x > 0, else 0."""
        return F.relu(x)


class Tanh(Module):
    """The hyperbolic tangent as a module."""

    def forward(self, x: Any) -> Any:
        """tanh(x)."""
        return np.tanh(x)


class Sigmoid(Module):
    """`functional.sigmoid` as a module."""

    def forward(self, x: Any) -> Any:
        """1 / (1 + e**-x)."""
        return F.sigmoid(x)


class Softplus(Module):
    """`functional.softplus` as a module."""

    def forward(self, x: Any) -> Any:
        """log(1 + e**x)."""
        return F.softplus(x)


class Softmax(Module):
    """`functional.softmax` as a module.

    Parameters
    ----------
    axis : int, default -1
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """Positive numbers that sum to one along the axis."""
        return F.softmax(x, self.axis)

    def extra_repr(self) -> str:
        """The axis."""
        return f"axis={self.axis}"


class LogSoftmax(Softmax):
    """`functional.log_softmax` as a module.

    Parameters
    ----------
    axis : int, default -1
    """

    def forward(self, x: Any) -> Any:
        """The logarithms of the softmax along the axis."""
        return F.log_softmax(x, self.axis)


class Flatten(Module):
    """All axes but the first become one."""

    def forward(self, x: Any) -> Any:
        """x with shape (samples, everything else)."""
        return np.reshape(x, (shape_of(x)[0], -1))


class Dropout(Module):
    """`functional.dropout` in training; nothing in evaluation.

    Parameters
    ----------
    p : float, default 0.5
        Probability of dropping an element.
    rng : int, numpy.random.Generator or wengert.random.Stream, optional
        In a graph a `Stream`, so that each run drops others.
    """

    def __init__(self, p: float = 0.5, rng: Any = None) -> None:
        if not 0.0 <= p <= 1.0:
            raise ArgumentError(
                f"Dropout(p={p}): it is the probability of dropping an element. Choose it from 0 "
                f"to 1{at(user_line())}."
            )
        self.p = p
        self.rng = rng if isinstance(rng, Stream) else np.random.default_rng(rng)

    def forward(self, x: Any) -> Any:
        """x, in training with elements dropped and the others scaled."""
        return F.dropout(x, self.p, self.training, self.rng)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class _Loss(Module):
    """A loss with a reduction, given as the function of functional.py that computes it."""

    function: Any

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in REDUCTIONS:
            raise ArgumentError(
                f"reduction={reduction!r} is not one of {REDUCTIONS}. Choose one{at(user_line())}."
            )
        self.reduction = reduction

    def forward(self, prediction: Any, target: Any) -> Any:
        """The loss of the prediction (first) for the target (second)."""
        return type(self).function(prediction, target, self.reduction)

    def extra_repr(self) -> str:
        """The reduction."""
        return f"reduction={self.reduction!r}"


class MSELoss(_Loss):
    """`functional.mse_loss`: the mean squared difference."""

    function = staticmethod(F.mse_loss)


MSE = MSELoss


class L1Loss(_Loss):
    """`functional.l1_loss`: the mean absolute difference."""

    function = staticmethod(F.l1_loss)


class CrossEntropyLoss(_Loss):
    """`functional.cross_entropy`, from logits.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> loss_fn = nn.CrossEntropyLoss()
    >>> round(float(loss_fn(np.array([[0.0, 0.0]]), np.array([0]))), 6)  # log 2
    0.693147
    """

    function = staticmethod(F.cross_entropy)


class NLLLoss(_Loss):
    """`functional.nll_loss`, from log-probabilities."""

    function = staticmethod(F.nll_loss)


class BCEWithLogitsLoss(_Loss):
    """`functional.binary_cross_entropy_with_logits`."""

    function = staticmethod(F.binary_cross_entropy_with_logits)


class BCELoss(_Loss):
    """`functional.binary_cross_entropy`, from probabilities."""

    function = staticmethod(F.binary_cross_entropy)
