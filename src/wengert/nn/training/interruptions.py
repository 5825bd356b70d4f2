"""What interrupts a training: Ctrl-C, and the first NaN or infinity, whose operation is found.

    Interrupts  context manager: the first Ctrl-C sets a flag, the second one raises
    StepReplay  saves what is needed to replay the last steps, and replays them

A training step must not be interrupted while parameters are being updated, so the training loop
checks `asked` between steps.  Python handles signals in the main thread only; in other threads, and
if the program has installed its own handler, nothing is changed.

When a loss is NaN, the parameters may have become NaN in that step or in an earlier one.  So the
state of the training is captured from time to time, and later batches are kept.  When a loss is not
finite, the state is restored, and the steps since then are run again, uncompiled and with
`wengert.debug` on, until an operation produces the first NaN.  The cost is a copy of the state
every 100 steps, or every 32 MB of batches.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from wengert._engine.core.pytree import flatten
from wengert._engine.diagnostics.debug import Switch
from wengert.errors import NotFiniteError


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


STEPS, BYTES = 100, 32_000_000


class StepReplay:
    """Records the last steps, and replays them.

    Parameters
    ----------
    capture : callable
        Returns the state of the training.
    restore : callable
        Restores such a state.
    measures : bool, default True
        Whether to add the sizes of arguments; otherwise `grow` is called, with sizes that are the
        same in all processes.
    """

    def __init__(
        self, capture: Callable[[], Any], restore: Callable[[Any], None], measures: bool = True
    ) -> None:
        self._capture, self._restore, self._measures = capture, restore, measures
        self._state: Any = None
        self._done: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._size = 0

    def before(self, begins: bool, act: Callable[..., Any], *arguments: Any) -> None:
        """Record a call before it is made: an uncompiled function and its arguments.

        Parameters
        ----------
        begins : bool
            Whether it begins a step; only then the state is complete.
        act : callable
        *arguments
        """
        full = len(self._done) >= STEPS or self._size >= BYTES
        if self._state is None or (full and begins):
            self._state, self._done, self._size = self._capture(), [], 0
        self._done.append((act, arguments))
        if self._measures:
            arrays = (leaf for leaf in flatten(arguments)[0] if isinstance(leaf, np.ndarray))
            self.grow(sum(a.nbytes for a in arrays))

    def grow(self, size: int) -> None:
        """Add the size in bytes of the arguments that were recorded last."""
        self._size += size

    def forget(self) -> None:
        """Discard the record, because the state was changed otherwise."""
        self._state = None

    def find(
        self,
        infinite: bool,
        wrap: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda act: act,
    ) -> str:
        """Replay the last steps until the first NaN, and return a description of it.

        Afterwards the state is that before the step that produced it. `wrap` is applied to each
        function before it is called.
        """
        self._restore(self._state)
        try:
            with np.errstate(all="ignore"), Switch(nan=True, inf=infinite):
                for number, (act, arguments) in enumerate(self._done):
                    position = number
                    wrap(act)(*arguments)
        except NotFiniteError as error:
            found = str(error)
            self._restore(self._state)
            with np.errstate(all="ignore"):
                for act, arguments in self._done[:position]:
                    act(*arguments)
            return found
        self._restore(self._state)
        return ""
