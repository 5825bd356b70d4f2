"""Activation functions as modules, for `Sequential`.

    without options     ReLU ReLU6 Tanh Sigmoid LogSigmoid SiLU Mish SELU Softsign Hardsigmoid
                        Hardswish Tanhshrink
    with options        LeakyReLU PReLU RReLU ELU CELU GELU GLU Softplus Hardtanh Threshold
                        Softshrink Hardshrink Maxout
    along an axis       Softmax LogSoftmax Softmin

Only `PReLU` has a parameter.  The functions are in functional/activations.py.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from wengert.random import Stream

from ..functional import activations
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Maxout",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "RReLU",
    "Sigmoid",
    "SiLU",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Activation(Module):
    """A function of one array; the attributes named in `options` are passed to it."""

    function: ClassVar[Any]
    options: ClassVar[tuple[str, ...]] = ()

    def forward(self, x: Any) -> Any:
        """The function of x."""
        return type(self).function(x, *(getattr(self, name) for name in self.options))

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.options)


class ReLU(_Activation):
    """`functional.relu` as a module: max(x, 0)."""

    function = staticmethod(activations.relu)


class ReLU6(_Activation):
    """`functional.relu6` as a module: x clipped to [0, 6]."""

    function = staticmethod(activations.relu6)


class Tanh(_Activation):
    """`functional.tanh` as a module: the hyperbolic tangent."""

    function = staticmethod(activations.tanh)


class Sigmoid(_Activation):
    """`functional.sigmoid` as a module: 1 / (1 + e**-x)."""

    function = staticmethod(activations.sigmoid)


class LogSigmoid(_Activation):
    """`functional.log_sigmoid` as a module: the logarithm of the sigmoid."""

    function = staticmethod(activations.log_sigmoid)


class SiLU(_Activation):
    """`functional.silu` as a module: x sigmoid(x)."""

    function = staticmethod(activations.silu)


class Mish(_Activation):
    """`functional.mish` as a module: x tanh(softplus(x))."""

    function = staticmethod(activations.mish)


class SELU(_Activation):
    """`functional.selu` as a module: the self-normalizing elu."""

    function = staticmethod(activations.selu)


class Softsign(_Activation):
    """`functional.softsign` as a module: x / (1 + |x|)."""

    function = staticmethod(activations.softsign)


class Hardsigmoid(_Activation):
    """`functional.hardsigmoid` as a module: relu6(x + 3) / 6."""

    function = staticmethod(activations.hardsigmoid)


class Hardswish(_Activation):
    """`functional.hardswish` as a module: x relu6(x + 3) / 6."""

    function = staticmethod(activations.hardswish)


class Tanhshrink(_Activation):
    """`functional.tanhshrink` as a module: x - tanh(x)."""

    function = staticmethod(activations.tanhshrink)


class LeakyReLU(_Activation):
    """`functional.leaky_relu` as a module.

    Parameters
    ----------
    negative_slope : float, default 0.01
    """

    function = staticmethod(activations.leaky_relu)
    options = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope


class RReLU(Module):
    """`functional.rrelu` as a module: random slopes in training, their mean in evaluation.

    Parameters
    ----------
    lower, upper : float, default 1/8 and 1/3
    rng : int, numpy.random.Generator or wengert.random.Stream, optional
        Must be a `Stream` while tracing.
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, rng: Any = None) -> None:
        self.lower, self.upper = lower, upper
        self.rng = rng if isinstance(rng, Stream) else np.random.default_rng(rng)

    def forward(self, x: Any) -> Any:
        """x where x > 0, else x times a slope."""
        return activations.rrelu(x, self.lower, self.upper, self.training, self.rng)

    def extra_repr(self) -> str:
        """The bounds of the slopes."""
        return f"lower={self.lower:.4g}, upper={self.upper:.4g}"


class PReLU(Module):
    """`functional.prelu` as a module: learned slopes.

    Parameters
    ----------
    num_parameters : int, default 1
        1, or the number of channels (axis 1).
    init : float, default 0.25
        Initial value of the slopes.
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (num_parameters,)

    References
    ----------
    .. [1] K. He et al., "Delving deep into rectifiers", ICCV 2015, arXiv:1502.01852.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = float) -> None:
        self.num_parameters = num_parameters
        self.weight = Parameter(np.full(num_parameters, init, dtype))

    def forward(self, x: Any) -> Any:
        """x where x > 0, else x times a slope."""
        return activations.prelu(x, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


class ELU(_Activation):
    """`functional.elu` as a module.

    Parameters
    ----------
    alpha : float, default 1.0
    """

    function = staticmethod(activations.elu)
    options = ("alpha",)

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha


class CELU(_Activation):
    """`functional.celu` as a module.

    Parameters
    ----------
    alpha : float, default 1.0
    """

    function = staticmethod(activations.celu)
    options = ("alpha",)

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha


class GELU(_Activation):
    """`functional.gelu` as a module.

    Parameters
    ----------
    approximate : str, default "none"
    """

    function = staticmethod(activations.gelu)
    options = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate


class GLU(_Activation):
    """`functional.glu` as a module.

    Parameters
    ----------
    axis : int, default -1
    """

    function = staticmethod(activations.glu)
    options = ("axis",)

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis


class Softplus(_Activation):
    """`functional.softplus` as a module.

    Parameters
    ----------
    beta : float, default 1.0
    """

    function = staticmethod(activations.softplus)
    options = ("beta",)

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta


class Hardtanh(_Activation):
    """`functional.hardtanh` as a module.

    Parameters
    ----------
    min_val : float, default -1.0
    max_val : float, default 1.0
    """

    function = staticmethod(activations.hardtanh)
    options = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        self.min_val, self.max_val = min_val, max_val


class Threshold(_Activation):
    """`functional.threshold` as a module.

    Parameters
    ----------
    threshold : float
    value : float
    """

    function = staticmethod(activations.threshold)
    options = ("threshold", "value")

    def __init__(self, threshold: float, value: float) -> None:
        self.threshold, self.value = threshold, value


class Softshrink(_Activation):
    """`functional.softshrink` as a module.

    Parameters
    ----------
    lambd : float, default 0.5
    """

    function = staticmethod(activations.softshrink)
    options = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd


class Hardshrink(_Activation):
    """`functional.hardshrink` as a module.

    Parameters
    ----------
    lambd : float, default 0.5
    """

    function = staticmethod(activations.hardshrink)
    options = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd


class Maxout(_Activation):
    """`functional.maxout` as a module.

    Parameters
    ----------
    pieces : int
    axis : int, default -1
    """

    function = staticmethod(activations.maxout)
    options = ("pieces", "axis")

    def __init__(self, pieces: int, axis: int = -1) -> None:
        self.pieces, self.axis = pieces, axis


class Softmax(_Activation):
    """`functional.softmax` as a module.

    Parameters
    ----------
    axis : int, default -1
    """

    function = staticmethod(activations.softmax)
    options = ("axis",)

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis


class LogSoftmax(_Activation):
    """`functional.log_softmax` as a module.

    Parameters
    ----------
    axis : int, default -1
    """

    function = staticmethod(activations.log_softmax)
    options = ("axis",)

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis


class Softmin(_Activation):
    """`functional.softmin` as a module.

    Parameters
    ----------
    axis : int, default -1
    """

    function = staticmethod(activations.softmin)
    options = ("axis",)

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis
