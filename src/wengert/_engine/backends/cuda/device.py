"""Devices: where arrays and kernels of the backend "cuda" are.

    Device        what a program needs of one
    Launch        a loaded kernel
    current       the device in use: a graphics card, or one that is emulated

The arrays of a device follow NumPy's protocols (NEP 13 and 18), so NumPy's functions called with
them run on the device. They are not converted to NumPy arrays unless this is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from .kernel_codegen import Kernel

Launch = Callable[[Sequence[Any], int], None]  # arguments, and the number of threads


class Device(Protocol):
    """A device.

    Attributes
    ----------
    name : str
    threads : int
        The number of threads that keep it busy: reductions are divided into so many parts.
    """

    name: str
    threads: int

    def owns(self, x: Any) -> bool:
        """Whether an object is an array of this device, or can be one without a copy."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A new array in C order, without values."""

    def put(self, x: Any) -> Any:
        """An array on the device, of values that are there or on the host."""

    def get(self, x: Any) -> np.ndarray[Any, Any]:
        """The values of an array on the host."""

    def contiguous(self, x: Any) -> Any:
        """The array in C order."""

    def strided(
        self, x: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> Any:
        """A view of an array; offset and strides are in elements."""

    def load(self, kernels: Sequence[Kernel]) -> list[Launch]:
        """Kernels, loaded."""


_CURRENT: ContextVar[Device | None] = ContextVar("device", default=None)


def current() -> Device:
    """The device in use.

    Raises
    ------
    BackendError
        There is none; the message says what is missing.
    """
    device = _CURRENT.get()
    if device is None:
        from .cupy_device import cupy_device  # CuPy is imported when a device is used

        device = cupy_device()
    return device


@contextmanager
def using(device: Device) -> Iterator[Device]:
    """Use a device in this context."""
    token = _CURRENT.set(device)
    try:
        yield device
    finally:
        _CURRENT.reset(token)
