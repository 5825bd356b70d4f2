"""Linear layers, and layers that change shapes and sizes.

    linear       Linear Bilinear
    shapes       Flatten Unflatten Identity

The functions are in functional/linear_and_embedding.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ShapeError, at, user_line

from .. import functional as F
from .. import init
from ..init import check_layer_sizes
from ..module import Module
from ..parameter import Parameter
from .dropout import Dropout as Dropout

__all__ = [
    "Bilinear",
    "Flatten",
    "Identity",
    "Linear",
    "Unflatten",
]


class Linear(Module):
    """``y = x @ weight.T + bias``, with PyTorch's layout and initial values.

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
    Weight and bias are initialized uniformly between -1/sqrt(in_features) and 1/sqrt(in_features),
    which is `init.kaiming_uniform` with a gain of 1/sqrt(3).

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
        check_layer_sizes(self, in_features=in_features, out_features=out_features)
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


class Bilinear(Module):
    """``y[o] = x1 @ weight[o] @ x2 + bias[o]``.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Lengths of the last axes of x1, of x2 and of y.
    bias : bool, default True
    rng : int or numpy.random.Generator, optional
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (out_features, in1_features, in2_features)
    bias : Parameter, shape (out_features,), or None

    Notes
    -----
    Both are initialized uniformly between -1/sqrt(in1_features) and 1/sqrt(in1_features).
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        check_layer_sizes(self, in1_features=in1_features, in2_features=in2_features)
        check_layer_sizes(self, out_features=out_features)
        rng = np.random.default_rng(rng)
        bound = 1.0 / sqrt(max(1, in1_features))
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(init.uniform(shape, bound, rng, dtype))
        self.bias = Parameter(init.uniform((out_features,), bound, rng, dtype)) if bias else None

    def forward(self, x1: Any, x2: Any) -> Any:
        """``x1 @ weight[o] @ x2 + bias[o]`` for each output o."""
        one, two = shape_of(x1), shape_of(x2)
        if one[-1:] != (self.in1_features,) or two[-1:] != (self.in2_features,):
            raise ShapeError(
                f"{self!r} was given shapes {spelled(one)} and {spelled(two)}: their last axes "
                f"must have lengths {self.in1_features} and {self.in2_features}{at(user_line())}."
            )
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Identity(Module):
    """The identity, a placeholder for another layer.

    Parameters
    ----------
    *args, **kwargs
        Ignored.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        """x."""
        return x


class Flatten(Module):
    """Merge adjacent axes, by default all but the first.

    Parameters
    ----------
    start_axis, end_axis : int, default 1 and -1
        The first and the last axis to merge.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.Flatten()(np.ones((2, 3, 4))).shape, nn.Flatten(0, 1)(np.ones((2, 3, 4))).shape
    ((2, 12), (6, 4))
    """

    def __init__(self, start_axis: int = 1, end_axis: int = -1) -> None:
        self.start_axis, self.end_axis = start_axis, end_axis

    def forward(self, x: Any) -> Any:
        """x with the axes merged."""
        shape = shape_of(x)
        if len(shape) == 1 and (self.start_axis, self.end_axis) == (1, -1):
            return np.reshape(x, (shape[0], 1))
        first, last = self._axis(self.start_axis, shape), self._axis(self.end_axis, shape)
        if first > last:
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}: axis {first} is after axis {last}"
                f"{at(user_line())}."
            )
        return np.reshape(x, (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :]))

    def _axis(self, axis: int, shape: tuple[Any, ...]) -> int:
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}, which has no axis {axis}"
                f"{at(user_line())}."
            )
        return axis % len(shape)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"


class Unflatten(Module):
    """Split an axis into several.

    Parameters
    ----------
    axis : int
    sizes : sequence of int
        Lengths of the new axes; one may be -1, and is inferred.
    """

    def __init__(self, axis: int, sizes: Sequence[int]) -> None:
        self.axis, self.sizes = axis, tuple(sizes)

    def forward(self, x: Any) -> Any:
        """x with the axis split."""
        shape = shape_of(x)
        axis = self.axis if self.axis >= 0 else len(shape) + self.axis
        if not 0 <= axis < len(shape):
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}, which has no axis {self.axis}"
                f"{at(user_line())}."
            )
        product = prod(n for n in self.sizes if n != -1)
        n = shape[axis]
        if isinstance(n, int) and (n % product if -1 in self.sizes else n != product):
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}: an axis of length {n} cannot be split "
                f"into lengths {self.sizes}{at(user_line())}."
            )
        sizes = [n // product if k == -1 else k for k in self.sizes]
        return np.reshape(x, (*shape[:axis], *sizes, *shape[axis + 1 :]))

    def extra_repr(self) -> str:
        """Axis and lengths."""
        return f"axis={self.axis}, sizes={self.sizes}"
