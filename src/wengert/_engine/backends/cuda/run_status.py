"""The status of a run: a word on the device, which kernels that fail write to.

It is an object of its own, which the runs of bodies share: a run that referred to itself would keep
its arrays in memory until Python's garbage collector runs.

    RunStatus    the status of a run and of its bodies
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .device import Device, Failed, InDoubt
from .matrix_kernels import IN_DOUBT


class RunStatus:
    """Where kernels of a run, and of the bodies of its loops, say that they have failed.

    Parameters
    ----------
    device : Device
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._array: Any = None

    @property
    def array(self) -> Any:
        """The array, for arguments of kernels."""
        if self._array is None:
            self._array = self._device.put(np.zeros(1, np.int64))
        return self._array

    def check(self) -> None:
        """Raise an error if a kernel has failed, for which the host waits for all of them.

        Raises
        ------
        Failed, InDoubt
        """
        found = 0 if self._array is None else self._device.get(self._array)[0]
        if found:
            raise InDoubt if found == IN_DOUBT else Failed
