"""Transfers between the memory of the host and that of a device.

device_put    an array, or a nest of arrays, on the device
device_get    the same on the host
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.device_arrays import device_spec, device_value, host_values, is_on_device
from wengert._engine.core.handle import Handle
from wengert._engine.core.spec import Spec
from wengert.errors import ArgumentError, TraceError, at, user_line

from .current_device import current
from .device import Device
from .device_memory import out_of_memory


def device_put(x: Any) -> Any:
    """Copy arrays to the memory of the current graphics card.

    Parameters
    ----------
    x : array_like or pytree
        Arrays and numbers; arrays of PyTorch, JAX or CuPy that are on the card are not copied.

    Returns
    -------
    cupy.ndarray, or a pytree of them
        Arguments for functions compiled with ``backend="cuda"``.

    Raises
    ------
    ArgumentError
        A leaf is not a numeric array.
    BackendError
        CuPy is not installed, or there is no graphics card.

    See Also
    --------
    device_get : the inverse.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.backends import emulated_device
    >>> with emulated_device():
    ...     x = wg.device_put(np.arange(3.0))
    ...     wg.device_get(x)
    array([0., 1., 2.])
    """
    device = current()
    leaves, structure = pytree.flatten(x)
    return pytree.unflatten(structure, [_put(device, leaf) for leaf in leaves])


def device_get(x: Any) -> Any:
    """Copy arrays from the memory of a device to the host.

    Parameters
    ----------
    x : array or pytree
        Arrays on a device are copied when their values have been computed; other leaves are
        returned as they are.

    Returns
    -------
    numpy.ndarray, or a pytree of them

    See Also
    --------
    device_put : the inverse.
    """
    leaves, structure = pytree.flatten(x)
    return pytree.unflatten(structure, [host_values(leaf) for leaf in leaves])


def _put(device: Device, leaf: Any) -> Any:
    if isinstance(leaf, Handle):
        state = device_value(leaf.node)
        if state is not None and state.device is device:
            return state.array.copy()  # the array of the tensor is never written to
    array = _checked(leaf)
    try:
        return device.put(array)
    except MemoryError as error:
        spec = Spec(tuple(array.shape), array.dtype)
        raise out_of_memory(device, "an argument of device_put", [spec], [], None) from error


def _checked(leaf: Any) -> Any:
    if is_on_device(leaf):
        device_spec(leaf)
        return leaf
    if isinstance(leaf, Handle):
        if leaf.node.is_traced:
            raise TraceError(
                "device_put was given a value of a graph that is being built. Leave it out: a "
                f"function compiled with backend='cuda' runs on the device{at(user_line())}."
            )
        leaf = leaf.node.value
    array = np.asarray(leaf)
    if array.dtype.kind not in "biufc":
        raise ArgumentError(
            f"device_put was given a {type(leaf).__name__} of dtype {array.dtype}, which is not "
            f"numeric. Pass arrays of numbers{at(user_line())}."
        )
    return array
