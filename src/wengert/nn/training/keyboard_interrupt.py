"""Interrupting: Ctrl-C asks once, and only then insists.

    Interrupts    a block in which the first Ctrl-C is noted, and the second one raises

A step of a training must not stop in its middle, with half of the parameters changed.  So whoever
trains looks at `asked` between steps.  Signals reach the main thread of a program only; in others,
and where the program has a handler of its own, nothing is changed.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any


class Interrupts:
    """A block in which the first Ctrl-C is noted.

    Attributes
    ----------
    asked : bool
        Whether there was one.
    """

    def __init__(self, notice: str = "") -> None:
        self.asked = False
        self._notice = notice
        self._before: Any = None
        self._holds = False

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
            self._holds = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._holds:
            signal.signal(signal.SIGINT, self._before)
            self._holds = False
