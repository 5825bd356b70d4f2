"""Culprits: where the first NaN or infinity of a training comes from.

    StepReplay  keeps what is needed to go through the last steps once more, and finds it

By the time that a loss is NaN, the step that it belongs to has made the parameters NaN as well, or
an earlier one has.  So now and then what decides the training is captured, and the batches since
then are kept; when a loss is not finite all is put back, and these steps are run again, uncompiled
and with `wengert.debug` on, until an operation gives the first NaN.  The cost is a copy of the
state for every hundred steps, or every 32 MB of batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.pytree import flatten
from wengert._engine.diagnostics.nan_switch import Switch
from wengert.errors import NotFiniteError

STEPS, BYTES = 100, 32_000_000


class StepReplay:
    """The last steps, so that they can be run again.

    Parameters
    ----------
    capture : callable
        Gives the state of the training.
    restore : callable
        Puts it back.
    """

    def __init__(self, capture: Callable[[], Any], restore: Callable[[Any], None]) -> None:
        self._capture, self._restore = capture, restore
        self._state: Any = None
        self._done: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._size = 0

    def before(self, begins: bool, act: Callable[..., Any], *arguments: Any) -> None:
        """Note what is about to be done: a function, uncompiled, and its arguments.

        Parameters
        ----------
        begins : bool
            Whether it begins a step, so that the state is all there is.
        act : callable
        *arguments
        """
        full = len(self._done) >= STEPS or self._size >= BYTES
        if self._state is None or (full and begins):
            self._state, self._done, self._size = self._capture(), [], 0
        self._done.append((act, arguments))
        arrays = (leaf for leaf in flatten(arguments)[0] if isinstance(leaf, np.ndarray))
        self._size += sum(a.nbytes for a in arrays)

    def forget(self) -> None:
        """Start again: the state was changed from outside."""
        self._state = None

    def find(self, infinite: bool) -> str:
        """Run the last steps again until the first NaN; what was found, in words.

        Afterwards everything is as it was before the step that gave it.
        """
        self._restore(self._state)
        try:
            with np.errstate(all="ignore"), Switch(nan=True, inf=infinite):
                for number, (act, arguments) in enumerate(self._done):
                    position = number
                    act(*arguments)
        except NotFiniteError as error:
            found = str(error)
            self._restore(self._state)
            with np.errstate(all="ignore"):
                for act, arguments in self._done[:position]:
                    act(*arguments)
            return found
        self._restore(self._state)
        return ""
