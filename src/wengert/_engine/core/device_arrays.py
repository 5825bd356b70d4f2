"""Arrays in the memory of a device: those with the CUDA array interface.

CuPy's arrays have it, and tensors of PyTorch and arrays of JAX that are on a graphics card. They
are arguments and results of functions compiled with ``backend="cuda"`` (backends/cuda).

is_on_device     whether an object is such an array
device_spec      its shape and dtype
host_values      its values, as a NumPy array

https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .spec import Spec

_INTERFACE = "__cuda_array_interface__"


def is_on_device(x: Any) -> bool:
    """Whether an object is an array in the memory of a device."""
    if isinstance(x, np.ndarray | np.generic) or not hasattr(type(x), _INTERFACE):
        return False
    return getattr(x, _INTERFACE, None) is not None  # PyTorch's tensors on the host have none


def device_spec(x: Any) -> Spec:
    """The shape and dtype of an array on a device."""
    facts = getattr(x, _INTERFACE)
    return Spec(tuple(facts["shape"]), np.dtype(facts["typestr"]))


def host_values(x: Any) -> Any:
    """The values of an array on a device, copied to the host; anything else unchanged."""
    if type(x) is np.ndarray or not is_on_device(x):
        return x
    for name in ("get", "cpu"):
        copy = getattr(x, name, None)
        if copy is not None:
            return np.asarray(copy())[()]
    return np.asarray(x)[()]
