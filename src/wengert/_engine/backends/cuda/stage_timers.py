"""Timers of the stages of a run, read on the device.

The device records marks between stages, and the host waits for them at the end of the run.

StageTimers    the seconds and the memory of each stage, in order
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .device import Device


class StageTimers:
    """The seconds and the memory of each stage of a run.

    Attributes
    ----------
    held : list of int
        The bytes of arrays of the run after each stage.
    """

    def __init__(self) -> None:
        self._marks: list[Any] = []
        self.held: list[int] = []
        self._inputs: set[int] = set()

    def begin(self, device: Device) -> None:
        """Begin a run; an earlier one, which is repeated, is forgotten."""
        self._device, self._marks, self.held = device, [device.mark()], []

    def end(self, arrays: Mapping[Any, Any]) -> None:
        """End a stage, with the arrays that the run holds then."""
        self._marks.append(self._device.mark())
        own = {id(x): x for x in arrays.values() if self._device.owns(x)}
        self.held.append(sum(int(x.nbytes) for x in own.values()))

    def seconds(self) -> list[float]:
        """The seconds of each stage."""
        return self._device.seconds(self._marks)
