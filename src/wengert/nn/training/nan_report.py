"""Finds the operation that produced the first NaN or infinity in training.

    StepReplay  saves what is needed to replay the last steps, and replays them

When a loss is NaN, the parameters may have become NaN in that step or in an earlier one.  So the
state of the training is captured from time to time, and later batches are kept.  When a loss is not
finite, the state is restored, and the steps since then are run again, uncompiled and with
`wengert.debug` on, until an operation produces the first NaN.  The cost is a copy of the state
every 100 steps, or every 32 MB of batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.pytree import flatten
from wengert._engine.diagnostics.debug import Switch
from wengert.errors import NotFiniteError

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
