"""Convolution functions with PyTorch's names and orders of arguments.

    conv1d conv2d conv3d                                    cross-correlations with kernels
    conv_transpose1d conv_transpose2d conv_transpose3d      their transposes

What they have in common, and what is checked, is in convolve.py.
"""

from __future__ import annotations

from typing import Any

from .conv_nd import convolve, transposed
from .window_options import Option

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]


def conv1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Option = 1,
    padding: Any = 0,
    dilation: Option = 1,
    groups: int = 1,
) -> Any:
    """The cross-correlation of channels with kernels over one axis, as PyTorch's.

    Parameters
    ----------
    x : array or Tensor, shape (samples, inputs, length)
        Or one sample, without the first axis.
    weight : array or Tensor, shape (outputs, inputs / groups, k)
    bias : array or Tensor, shape (outputs,), optional
    stride : int or tuple, default 1
        How far the kernel is moved from one output to the next.
    padding : int, tuple, "same" or "valid", default 0
        How many zeros stand on each side; "same" keeps lengths.
    dilation : int or tuple, default 1
        How far apart neighbouring elements of the kernel are.
    groups : int, default 1
        Channels are in so many groups, each convolved by itself.

    Returns
    -------
    array or Tensor, shape (samples, outputs, length)
        Of n elements along an axis (n + 2 padding - dilation (kernel - 1) - 1) // stride + 1.

    Raises
    ------
    ShapeError
        Shapes do not fit; the message says what is expected.
    ArgumentError
        An option outside what it can be.

    Notes
    -----
    Costs two operations for each sample, output, input of its group, element of the kernel and
    place [1]_.

    References
    ----------
    .. [1] V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep learning",
       arXiv:1603.07285.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.conv1d(np.ones((2, 3, 5)), np.ones((4, 3, 3)), padding=1).shape
    (2, 4, 5)
    """
    return convolve(x, weight, bias, stride, padding, dilation, groups, 1, "conv1d")


def conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Option = 1,
    padding: Any = 0,
    dilation: Option = 1,
    groups: int = 1,
) -> Any:
    """The cross-correlation of channels with kernels over two axes, as PyTorch's.

    Parameters, result and errors are those of `conv1d`, but `x` has the shape
    (samples, inputs, height, width) and `weight` (outputs, inputs / groups, k, l).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.conv2d(np.ones((2, 3, 5, 6)), np.ones((4, 3, 3, 3)), padding=1).shape
    (2, 4, 5, 6)
    """
    return convolve(x, weight, bias, stride, padding, dilation, groups, 2, "conv2d")


def conv3d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Option = 1,
    padding: Any = 0,
    dilation: Option = 1,
    groups: int = 1,
) -> Any:
    """The cross-correlation of channels with kernels over three axes, as PyTorch's.

    Parameters, result and errors are those of `conv1d`, but `x` has the shape
    (samples, inputs, depth, height, width) and `weight` (outputs, inputs / groups, k, l, m).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.conv3d(np.ones((1, 2, 3, 4, 5)), np.ones((4, 2, 3, 3, 3)), padding=1).shape
    (1, 4, 3, 4, 5)
    """
    return convolve(x, weight, bias, stride, padding, dilation, groups, 3, "conv3d")


def conv_transpose1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Option = 1,
    padding: Option = 0,
    output_padding: Option = 0,
    groups: int = 1,
    dilation: Option = 1,
) -> Any:
    """The transposed convolution over one axis, as PyTorch's: the gradient of `conv1d` by x.

    Parameters
    ----------
    x : array or Tensor, shape (samples, inputs, length)
        Or one sample, without the first axis.
    weight : array or Tensor, shape (inputs, outputs / groups, k)
    bias : array or Tensor, shape (outputs,), optional
    stride : int or tuple, default 1
        How far apart the elements of x are put.
    padding : int or tuple, default 0
        How much is taken away on each side of the result.
    output_padding : int or tuple, default 0
        How much longer the result is, on one side; less than the stride or the dilation.
    groups : int, default 1
    dilation : int or tuple, default 1

    Returns
    -------
    array or Tensor, shape (samples, outputs, length)
        Of n elements along an axis
        (n - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.

    Raises
    ------
    ShapeError
        Shapes do not fit; the message says what is expected.
    ArgumentError
        An option outside what it can be.

    Notes
    -----
    Costs as much as the convolution that it is the transpose of: section 4 of [1]_.

    References
    ----------
    .. [1] V. Dumoulin, F. Visin, "A guide to convolution arithmetic for deep learning",
       arXiv:1603.07285.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.conv_transpose1d(np.ones((2, 4, 5)), np.ones((4, 3, 2)), stride=2).shape
    (2, 3, 10)
    """
    given = (stride, padding, output_padding, groups, dilation)
    return transposed(x, weight, bias, *given, 1, "conv_transpose1d")


def conv_transpose2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Option = 1,
    padding: Option = 0,
    output_padding: Option = 0,
    groups: int = 1,
    dilation: Option = 1,
) -> Any:
    """The transposed convolution over two axes, as PyTorch's: the gradient of `conv2d` by x.

    Parameters, result and errors are those of `conv_transpose1d`, but `x` has the shape
    (samples, inputs, height, width) and `weight` (inputs, outputs / groups, k, l).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.conv_transpose2d(np.ones((2, 4, 5, 6)), np.ones((4, 3, 2, 2)), stride=2).shape
    (2, 3, 10, 12)
    """
    given = (stride, padding, output_padding, groups, dilation)
    return transposed(x, weight, bias, *given, 2, "conv_transpose2d")


def conv_transpose3d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Option = 1,
    padding: Option = 0,
    output_padding: Option = 0,
    groups: int = 1,
    dilation: Option = 1,
) -> Any:
    """The transposed convolution over three axes, as PyTorch's: the gradient of `conv3d` by x.

    Parameters, result and errors are those of `conv_transpose1d`, but `x` has the shape
    (samples, inputs, depth, height, width) and `weight` (inputs, outputs / groups, k, l, m).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.conv_transpose3d(np.ones((1, 4, 2, 3, 4)), np.ones((4, 2, 2, 2, 2)), stride=2).shape
    (1, 2, 4, 6, 8)
    """
    given = (stride, padding, output_padding, groups, dilation)
    return transposed(x, weight, bias, *given, 3, "conv_transpose3d")
