"""Arrays in the memory of a device: those with the CUDA array interface, or with DLPack.

CuPy's arrays have both, and tensors of PyTorch and arrays of JAX that are on a graphics card. They
are arguments and results of functions compiled with ``backend="cuda"`` (backends/cuda).

is_on_device      whether an object is such an array
is_numeric_array  whether it is one of numbers, on a device or of NumPy
device_spec       its shape and dtype
host_values       its values, as a NumPy array
refuse_on_device  the error where an array of the host is needed

https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html
https://dmlc.github.io/dlpack/latest/python_spec.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.errors import ConversionError, DtypeError, at, user_line

from .spec import Spec

_INTERFACE, _DLPACK = "__cuda_array_interface__", "__dlpack_device__"
_CUDA, _MANAGED = 2, 13  # kinds of devices of DLPack


def is_on_device(x: Any) -> bool:
    """Whether an object is an array in the memory of a device."""
    cls = type(x)
    if isinstance(x, np.ndarray | np.generic):
        return False
    if hasattr(cls, _INTERFACE):
        try:
            return getattr(x, _INTERFACE, None) is not None  # PyTorch's tensors on the host: None
        except RuntimeError:  # PyTorch's tensors that require gradients, on the device
            return True
    if not hasattr(cls, _DLPACK) or cls.__module__.startswith("wengert"):
        return False
    return x.__dlpack_device__()[0] in (_CUDA, _MANAGED)


def is_numeric_array(x: Any) -> bool:
    """Whether an object is an array of numbers that a program may take, of NumPy or a device."""
    if type(x) is np.ndarray:
        return x.dtype.kind in "biufc" and x.dtype.isnative
    return is_on_device(x)


def device_spec(x: Any) -> Spec:
    """The shape and dtype of an array on a device.

    Raises
    ------
    ConversionError
        It is a tensor of PyTorch that requires a gradient.
    DtypeError
        Its elements are not numbers of NumPy's dtypes.
    """
    name = f"a {type(x).__name__} of {type(x).__module__.partition('.')[0]}"
    if hasattr(type(x), _INTERFACE):
        try:
            facts = getattr(x, _INTERFACE)
        except RuntimeError as error:
            raise ConversionError(
                f"{name} cannot be passed on: {str(error).rstrip('.')}. Pass x.detach()"
                f"{at(user_line())}."
            ) from error
        shape, text = facts["shape"], facts["typestr"]
    else:
        shape, text = x.shape, str(x.dtype).rpartition(".")[2]
    try:
        dtype = np.dtype(text)
    except TypeError:
        dtype = np.dtype("V")
    if dtype.kind not in "biufc":
        raise DtypeError(
            f"{name} has the dtype {getattr(x, 'dtype', text)}, which NumPy does not have. Convert "
            f"it, for example to float32{at(user_line())}."
        )
    return Spec(tuple(shape), dtype)


def host_values(x: Any) -> Any:
    """The values of an array on a device, copied to the host; anything else unchanged."""
    if type(x) is np.ndarray or not is_on_device(x):
        return x
    for name in ("get", "cpu"):
        copy = getattr(x, name, None)
        if copy is not None:
            return np.asarray(copy())[()]
    return np.asarray(x)[()]


def refuse_on_device(x: Any, what: str) -> None:
    """Raise an error if `x` is an array on a device; `what` names it.

    Raises
    ------
    ConversionError
        It is on a device.
    """
    if is_on_device(x):
        raise ConversionError(
            f"{what} is an array in the memory of a graphics card, where only compiled functions "
            "compute. Compile the outermost function, such as wengert.jit(wengert.grad(f), "
            f"backend='cuda'), or pass a copy on the host, wengert.device_get(x){at(user_line())}."
        )
