"""Devices: where arrays and kernels of the backend "cuda" are.

    Device        what a program needs of one
    Launch        a loaded kernel
    number_of     an integer that may be on a device
    Failed        a run that is repeated on the host

The arrays of a device follow NumPy's protocols (NEP 13 and 18), so NumPy's functions called with
them run on the device. They are not converted to NumPy arrays unless this is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from wengert._engine.core.device_arrays import MemoryInfo

from .kernel_codegen import DeviceKernel

# Arguments, the number of threads, and (of threads that work together) the bytes of shared memory.
Launch = Callable[..., None]


class Failed(Exception):
    """A kernel found an index out of range, or another fault; the interpreter raises the error."""


class InDoubt(Failed):
    """A kernel found a matrix that it leaves to the library."""


class Device(Protocol):
    """A device.

    Attributes
    ----------
    name : str
    number : int
        Which of several devices it is.
    threads : int
        The number of threads that keep it busy.
    block : int
        The number of threads of a block, a multiple of 32.
    blocks : int
        The most blocks of a launch, which keep it busy.
    shared_bytes : int
        The shared memory that a block has unasked, beside others.
    most_shared_bytes : int
        What a block has at most, for a row that does not fit otherwise.
    """

    name: str
    number: int
    threads: int
    block: int
    blocks: int
    shared_bytes: int
    most_shared_bytes: int

    def owns(self, x: Any) -> bool:
        """Whether an object is an array of this device, or can be one without a copy."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A new array in C order, without values."""

    def put(self, x: Any) -> Any:
        """An array on the device, of values that are there or on the host."""

    def get(self, x: Any) -> np.ndarray[Any, Any]:
        """The values of an array on the host."""

    def address(self, x: Any) -> int:
        """The address of the first element of an array."""

    def contiguous(self, x: Any) -> Any:
        """The array in C order."""

    def strided(self, x: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """A view of an array; offset and strides are in elements."""

    def triangular_solution(self, a: Any, b: Any, lower: bool, trans: int, unit: bool) -> Any:
        """x with op(a) @ x = b, with equal leading axes; op: identity, transpose, adjoint."""

    def packed_factors(self, a: Any) -> tuple[Any, Any]:
        """The LU factors of one matrix, transposed, and LAPACK's pivots, counted from 1."""

    def place(self, x: Any) -> int:
        """The number of the device that an array is on."""

    def memory(self) -> MemoryInfo:
        """The memory of the device."""

    def mark(self) -> Any:
        """A point in the sequence of what the device computes, whose time is measured."""

    def seconds(self, marks: Sequence[Any]) -> list[float]:
        """The seconds between consecutive marks, when all have passed."""

    def wait(self) -> None:
        """Wait until all that was started has been computed."""

    def calling(self) -> AbstractContextManager[None]:
        """A block in which library functions raise errors as NumPy's do."""

    def load(self, kernels: Sequence[DeviceKernel]) -> list[Launch]:
        """Kernels, loaded."""


def number_of(device: Device, x: Any) -> int:
    """An integer, of an array of the device or of the host."""
    return int(device.get(x)[()]) if device.owns(x) else int(x)
