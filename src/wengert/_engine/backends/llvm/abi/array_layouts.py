"""Programs for arrays that are not C-contiguous, which they read without a copy.

Programs are compiled for C-contiguous arrays.  Arrays in Fortran order and strided views are copied
in the first calls; if such calls recur, a program for that layout is compiled.

    layout_of         the layout of an array
    LayoutDispatch    called by an entry point for C order when an array has another layout
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.fork_safe_locks import lock
from wengert._engine.core.spec import Spec

from ..tuning import thresholds

_COUNTED = 256  # at most so many layouts have their calls counted


def layout_of(array: Any, spec: Spec) -> str:
    """The layout of an array: ``C``, ``F`` or ``S`` (lowering/leaves.py); ``-`` if copied."""
    if type(array) is not np.ndarray or not spec.shape:
        return "C"
    if array.dtype != spec.dtype or not array.flags.aligned or array.ndim != len(spec.shape):
        return "-"
    if array.flags.c_contiguous:
        return "C"
    if array.flags.f_contiguous:
        return "F"
    aligned = all(stride % array.itemsize == 0 for stride in array.strides)
    return "S" if aligned else "-"


class LayoutDispatch:
    """Compiles programs for layouts that recur, and forwards their calls to them.

    Parameters
    ----------
    specs : sequence of Spec
        The arguments of the C-order program.
    make : callable
        ``make(layouts)`` returns an entry point, or None.
    otherwise : callable
        Called for all other arguments.
    """

    def __init__(
        self,
        specs: Sequence[Spec],
        make: Callable[[str], Callable[..., Any] | None],
        otherwise: Callable[..., Any],
    ) -> None:
        self._specs, self._make, self._otherwise = tuple(specs), make, otherwise
        self._entries: dict[str, Callable[..., Any]] = {}
        self._counts: dict[str, int] = {}
        self._lock = lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program for the layouts of these arguments, or `otherwise`."""
        if kwargs or len(args) != len(self._specs):
            return self._otherwise(*args, **kwargs)
        layouts = "".join(map(layout_of, args, self._specs))
        if "-" in layouts or not ("F" in layouts or "S" in layouts):
            return self._otherwise(*args)
        entry = self._entries.get(layouts)
        if entry is None:
            entry = self._count_call(layouts)
        return entry(*args)

    def _count_call(self, layouts: str) -> Callable[..., Any]:
        with self._lock:
            count = self._counts.get(layouts, 0) + 1
            if len(self._counts) < _COUNTED or layouts in self._counts:
                self._counts[layouts] = count
            if count < thresholds.layout_calls or len(self._entries) >= thresholds.layout_programs:
                return self._otherwise
            if layouts not in self._entries:
                self._entries[layouts] = self._make(layouts) or self._otherwise
            return self._entries[layouts]
