"""Handling of Ctrl-C during training.

    Interrupts    context manager: the first Ctrl-C sets a flag, the second one raises

A training step must not be interrupted while parameters are being updated, so the training loop
checks `asked` between steps.  Python handles signals in the main thread only; in other threads, and
if the program has installed its own handler, nothing is changed.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any


class Interrupts:
    """Context manager that defers the first Ctrl-C.

    Attributes
    ----------
    asked : bool
        Whether Ctrl-C was pressed.
    """

    def __init__(self, notice: str = "") -> None:
        self.asked = False
        self._notice = notice
        self._before: Any = None
        self._installed = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self._notice:
            print(f"\n{self._notice}", file=sys.stderr, flush=True)

    def __enter__(self) -> Interrupts:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._before)
            self._installed = False
