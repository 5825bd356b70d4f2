"""Layers of convolutions: Conv1d, Conv2d, Conv3d and their transposes.

PyTorch's names, orders of arguments, initial values and parameters: weight of shape
(out_channels, in_channels / groups, *kernel), of a transposed one (in_channels, out_channels /
groups, *kernel), and bias of shape (out_channels,).  So its state_dicts load.

What they have in common is in convolutional.py.
"""

from __future__ import annotations

from .conv_base import Convolution, TransposedConvolution


class Conv1d(Convolution):
    """Cross-correlation over one axis: ``functional.conv1d`` with a weight and a bias to learn.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or tuple
    stride : int or tuple, default 1
    padding : int, tuple, "same" or "valid", default 0
    dilation : int or tuple, default 1
    groups : int, default 1
        Has to divide both numbers of channels.
    bias : bool, default True
    padding_mode : str, default "zeros"
        "zeros", "reflect", "replicate" or "circular": what stands around the input.
    rng : int or numpy.random.Generator, optional
        Source of the initial values.
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels / groups, *kernel_size)
    bias : Parameter, shape (out_channels,), or None

    Notes
    -----
    Both start uniform within 1 / sqrt(inputs of an output), as PyTorch's do: `kaiming_uniform` with
    a = sqrt(5).

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.Conv1d(3, 8, 5, rng=0)
    >>> layer
    Conv1d(3, 8, kernel_size=(5,), stride=(1,))
    >>> layer(np.ones((2, 3, 16))).shape
    (2, 8, 12)
    """

    axes = 1


class Conv2d(Convolution):
    """Cross-correlation over two axes: ``functional.conv2d`` with a weight and a bias to learn.

    Parameters and attributes are those of `Conv1d`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.Conv2d(3, 8, 3, padding=1, rng=0)
    >>> layer
    Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    >>> layer(np.ones((2, 3, 16, 16))).shape
    (2, 8, 16, 16)
    """

    axes = 2


class Conv3d(Convolution):
    """Cross-correlation over three axes: ``functional.conv3d`` with a weight and a bias to learn.

    Parameters and attributes are those of `Conv1d`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.Conv3d(3, 8, 3, rng=0)
    >>> layer
    Conv3d(3, 8, kernel_size=(3, 3, 3), stride=(1, 1, 1))
    >>> layer(np.ones((1, 3, 5, 6, 7))).shape
    (1, 8, 3, 4, 5)
    """

    axes = 3


class ConvTranspose1d(TransposedConvolution):
    """Transposed convolution over one axis: ``functional.conv_transpose1d`` with parameters.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or tuple
    stride, padding, output_padding : int or tuple, default 1, 0 and 0
    groups : int, default 1
        Has to divide both numbers of channels.
    bias : bool, default True
    dilation : int or tuple, default 1
    padding_mode : str
        Only "zeros".
    rng : int or numpy.random.Generator, optional
        Source of the initial values.
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (in_channels, out_channels / groups, *kernel_size)
    bias : Parameter, shape (out_channels,), or None

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.ConvTranspose1d(8, 3, 2, stride=2, rng=0)
    >>> layer
    ConvTranspose1d(8, 3, kernel_size=(2,), stride=(2,))
    >>> layer(np.ones((2, 8, 5))).shape
    (2, 3, 10)
    """

    axes = 1


class ConvTranspose2d(TransposedConvolution):
    """Transposed convolution over two axes: ``functional.conv_transpose2d`` with parameters.

    Parameters and attributes are those of `ConvTranspose1d`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.ConvTranspose2d(8, 3, 2, stride=2, rng=0)
    >>> layer
    ConvTranspose2d(8, 3, kernel_size=(2, 2), stride=(2, 2))
    >>> layer(np.ones((2, 8, 5, 6))).shape
    (2, 3, 10, 12)
    """

    axes = 2


class ConvTranspose3d(TransposedConvolution):
    """Transposed convolution over three axes: ``functional.conv_transpose3d`` with parameters.

    Parameters and attributes are those of `ConvTranspose1d`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.ConvTranspose3d(8, 3, 2, stride=2, rng=0)
    >>> layer
    ConvTranspose3d(8, 3, kernel_size=(2, 2, 2), stride=(2, 2, 2))
    >>> layer(np.ones((1, 8, 2, 3, 4))).shape
    (1, 3, 4, 6, 8)
    """

    axes = 3
