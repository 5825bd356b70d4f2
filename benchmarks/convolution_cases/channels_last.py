"""JAX's convolutions as its experts write them on processors: channels last.

XLA's convolution of a processor takes NHWC as it is and transposes NCHW at each call, and its
gradient of a ``reduce_window`` is slow where a reshape and a maximum do the same.  Arrays are made
so beforehand, as those of every library, and what is compared is turned back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LETTERS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def last(x: Any) -> Any:
    """Samples, or their cotangents: channels from the second place to the last."""
    return np.ascontiguousarray(np.moveaxis(np.asarray(x), 1, -1))


def first(x: Any) -> Any:
    """The inverse of `last`."""
    return np.moveaxis(np.asarray(x), -1, 1)


def kernel_last(w: Any) -> Any:
    """Weights: output and input channels from the first places to the last."""
    return np.ascontiguousarray(np.moveaxis(np.asarray(w), (0, 1), (-1, -2)))


def kernel_first(w: Any) -> Any:
    """The inverse of `kernel_last`."""
    return np.moveaxis(np.asarray(w), (-1, -2), (0, 1))


def linear_last(w: Any, channels: int) -> Any:
    """Weights of a linear layer of flat pictures, whose numbers come with channels last."""
    rows = np.asarray(w)
    side = int(np.sqrt(rows.shape[1] // channels))
    return last(rows.reshape(-1, channels, side, side)).reshape(rows.shape)


def linear_first(w: Any, channels: int) -> Any:
    """The inverse of `linear_last`."""
    rows = np.asarray(w)
    side = int(np.sqrt(rows.shape[1] // channels))
    return first(rows.reshape(-1, side, side, channels)).reshape(rows.shape)


def layer(j: Any) -> Any:
    """Convolution with as many places as before, rectifier, largest of 2 x 2."""

    def run(x: Any, w: Any, b: Any) -> Any:
        y = j.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LETTERS[2])
        n, height, width, channels = y.shape
        y = j.nn.relu(y + b).reshape(n, height // 2, 2, width // 2, 2, channels)
        return y.max((2, 4))

    return run
