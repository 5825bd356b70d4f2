"""The device in use: the graphics card of CuPy, or another one in a block.

    current    the device in use
    using      a block with another device

CuPy is imported when its card is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from .cupy_device import cupy_device
from .device import Device

AnyDevice = TypeVar("AnyDevice", bound=Device)
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
        device = cupy_device()
    return device


@contextmanager
def using(device: AnyDevice) -> Iterator[AnyDevice]:
    """Use a device in this context."""
    token = _CURRENT.set(device)
    try:
        yield device
    finally:
        _CURRENT.reset(token)
