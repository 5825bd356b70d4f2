"""The memory of an emulated device: what arrays of kernels and uploads take, and its limit.

Arrays that functions of NumPy make on the device are not counted.

    EmulatedMemory    counts bytes until their arrays are freed
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from .memory_info import MemoryInfo, megabytes

_TOTAL = 1 << 36  # bytes, where no limit is given


class EmulatedMemory:
    """Counts the bytes of arrays until they are freed.

    Parameters
    ----------
    limit : int or None
        The bytes of the device.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._total = _TOTAL if limit is None else limit
        self._arrays: list[tuple[weakref.ref[Any], int]] = []

    def check(self, count: int) -> None:
        """Raise if so many bytes cannot be had."""
        if self._used() + count > self._total:
            raise MemoryError(f"{megabytes(count)} more than the emulated device has")

    def add(self, array: np.ndarray[Any, Any]) -> None:
        """Count the bytes of an array until it and all views of it are freed."""
        self._arrays.append((weakref.ref(array), array.nbytes))

    def _used(self) -> int:
        self._arrays = [(ref, count) for ref, count in self._arrays if ref() is not None]
        return sum(count for _, count in self._arrays)

    @property
    def info(self) -> MemoryInfo:
        """The bytes in use and free."""
        used = self._used()
        return MemoryInfo(used, used, self._total - used, self._total)
