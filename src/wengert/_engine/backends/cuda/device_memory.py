"""Memory of a device: how much is in use, and the error if it does not suffice.

device_info     that of the device in use
out_of_memory   the error, with the user's line and the largest arrays
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.core.device_arrays import MemoryInfo, megabytes
from wengert._engine.core.spec import Spec, shown
from wengert.errors import DeviceMemoryError, at, user_line

from .current_device import current

if TYPE_CHECKING:
    from .device import Device

__all__ = ["MemoryInfo", "device_info", "out_of_memory"]
_LISTED = 3


def device_info() -> MemoryInfo:
    """The memory of the graphics card in use.

    Returns
    -------
    MemoryInfo
        ``used``, ``reserved``, ``free`` and ``total``, in bytes.

    Raises
    ------
    BackendError
        There is no graphics card, or CuPy is not installed.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.backends import emulated_device
    >>> with emulated_device():
    ...     x = wg.device_put(np.zeros(1000))
    ...     wg.memory.device_info().used
    8000
    """
    return current().memory()


def out_of_memory(
    device: Device,
    what: str,
    specs: Iterable[Spec],
    held: Sequence[Any],
    where: str | None,
) -> DeviceMemoryError:
    """The error for an array that a device has no memory for.

    Parameters
    ----------
    what : str
        What the array is.
    specs : iterable of Spec
        Its spec, or those of several.
    held : sequence of array
        The arrays of the run.
    where : str or None
        The user's line.
    """
    listed = ", ".join(f"{shown(s)} ({megabytes(_bytes_of(s))})" for s in specs)
    info = device.memory()
    largest = sorted({id(x): x for x in held}.values(), key=lambda x: -int(x.nbytes))[:_LISTED]
    arrays = ", ".join(
        f"{shown(Spec(tuple(x.shape), x.dtype))} ({megabytes(int(x.nbytes))})" for x in largest
    )
    largest_text = f" The largest arrays of this call are {arrays}." if arrays else ""
    return DeviceMemoryError(
        f"the graphics card has no memory for {listed}, {what}: {megabytes(info.used)} of its "
        f"{megabytes(info.total)} are used by arrays and {megabytes(info.free)} are free."
        f"{largest_text} Use smaller batches, float32 or wengert.checkpoint, or delete arrays that "
        f"are no longer needed{at(where or user_line())}."
    )


def _bytes_of(spec: Spec) -> int:
    return math.prod([int(n) for n in spec.shape]) * spec.dtype.itemsize
