"""Layers that add elements at the ends of the spatial axes, over 1, 2 and 3 axes.

    ZeroPad          zeros
    ConstantPad      a value
    ReflectionPad    the elements reflected at the first and last one
    ReplicationPad   the first and last elements
    CircularPad      the elements of the other end

The computation is in functional/padding_rearrangement.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..functional.conv import AXES
from ..functional.padding_rearrangement import pad
from .conv import Spatial

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Spatial):
    """Base of the layers: widths, and the mode of `functional.pad`."""

    mode = "constant"
    value: Any = None

    def __init__(self, padding: int | Sequence[int]) -> None:
        one = isinstance(padding, int | np.integer)
        widths = (padding,) * (2 * self.axes) if one else tuple(padding)  # type: ignore[arg-type]
        if len(widths) != 2 * self.axes:
            raise ArgumentError(
                f"{type(self).__name__}: padding must be an integer or {2 * self.axes} integers, a "
                f"pair for each axis, the last axis first; got {padding!r}{at(user_line())}."
            )
        self.padding = widths

    def forward(self, x: Any) -> Any:
        """x with more elements along its spatial axes."""
        shape = shape_of(x)
        if len(shape) not in (self.axes + 1, self.axes + 2):
            raise ShapeError(
                f"{self!r}: expected shape (samples, channels, {AXES[self.axes]}), or one sample "
                f"without the first axis, got {spelled(shape)}{at(user_line())}."
            )
        return pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """The widths, and the value."""
        return f"{self.padding}" + ("" if self.value is None else f", value={self.value}")


class _ZeroPad(_Pad):
    """Zeros at both ends of <over>.

    Parameters
    ----------
    padding : int or sequence of int
        One width for all ends, or pairs (before, after), those of the last axis first.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.ZeroPad<n>d(1)(np.ones((2, 3, <3>))).shape
    (2, 3, <5>)
    """


class _ConstantPad(_Pad):
    """A value at both ends of <over>.

    Parameters
    ----------
    padding : int or sequence of int
        One width for all ends, or pairs (before, after), those of the last axis first.
    value : float

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.ConstantPad<n>d(1, 0.5)(np.ones((2, 3, <3>))).shape
    (2, 3, <5>)
    """

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


class _ReflectionPad(_Pad):
    """The elements reflected at the ends at both ends of <over>.

    Parameters
    ----------
    padding : int or sequence of int
        One width for all ends, or pairs (before, after), those of the last axis first.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.ReflectionPad<n>d(1)(np.ones((2, 3, <3>))).shape
    (2, 3, <5>)
    """

    mode = "reflect"


class _ReplicationPad(_Pad):
    """The first and last elements at both ends of <over>.

    Parameters
    ----------
    padding : int or sequence of int
        One width for all ends, or pairs (before, after), those of the last axis first.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.ReplicationPad<n>d(1)(np.ones((2, 3, <3>))).shape
    (2, 3, <5>)
    """

    mode = "replicate"


class _CircularPad(_Pad):
    """The elements of the other end at both ends of <over>.

    Parameters
    ----------
    padding : int or sequence of int
        One width for all ends, or pairs (before, after), those of the last axis first.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.CircularPad<n>d(1)(np.ones((2, 3, <3>))).shape
    (2, 3, <5>)
    """

    mode = "circular"


class ZeroPad1d(_ZeroPad):
    """`functional.pad` in the mode "constant" as a layer."""

    axes = 1


class ZeroPad2d(_ZeroPad):
    """`functional.pad` in the mode "constant" as a layer."""

    axes = 2


class ZeroPad3d(_ZeroPad):
    """`functional.pad` in the mode "constant" as a layer."""

    axes = 3


class ConstantPad1d(_ConstantPad):
    """`functional.pad` in the mode "constant" as a layer."""

    axes = 1


class ConstantPad2d(_ConstantPad):
    """`functional.pad` in the mode "constant" as a layer."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """`functional.pad` in the mode "constant" as a layer."""

    axes = 3


class ReflectionPad1d(_ReflectionPad):
    """`functional.pad` in the mode "reflect" as a layer."""

    axes = 1


class ReflectionPad2d(_ReflectionPad):
    """`functional.pad` in the mode "reflect" as a layer."""

    axes = 2


class ReflectionPad3d(_ReflectionPad):
    """`functional.pad` in the mode "reflect" as a layer."""

    axes = 3


class ReplicationPad1d(_ReplicationPad):
    """`functional.pad` in the mode "replicate" as a layer."""

    axes = 1


class ReplicationPad2d(_ReplicationPad):
    """`functional.pad` in the mode "replicate" as a layer."""

    axes = 2


class ReplicationPad3d(_ReplicationPad):
    """`functional.pad` in the mode "replicate" as a layer."""

    axes = 3


class CircularPad1d(_CircularPad):
    """`functional.pad` in the mode "circular" as a layer."""

    axes = 1


class CircularPad2d(_CircularPad):
    """`functional.pad` in the mode "circular" as a layer."""

    axes = 2


class CircularPad3d(_CircularPad):
    """`functional.pad` in the mode "circular" as a layer."""

    axes = 3
