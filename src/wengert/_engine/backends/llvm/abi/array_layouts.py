"""Programs for arrays that are not in C order, which are read in place and not copied.

A program is compiled for arrays in C order.  An array in Fortran order, or a part of another array,
is copied in the first calls; if such calls come again, a program for that layout is compiled.

    layout_of         the layout of an array
    LayoutDispatch    the callable that an entry point for C order calls for other layouts
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.fork_safe_locks import lock
from wengert._engine.core.spec import Spec

from ..tuning import thresholds

_COUNTED = 256  # layouts whose calls are counted


def layout_of(array: Any, spec: Spec) -> str:
    """The layout of an array: ``C``, ``F``, ``S`` (lowering/leaves.py); ``-`` for a copy."""
    if type(array) is not np.ndarray or not spec.shape:
        return "C"
    if array.dtype != spec.dtype or not array.flags.aligned or array.ndim != len(spec.shape):
        return "-"
    if array.flags.c_contiguous:
        return "C"
    if array.flags.f_contiguous:
        return "F"
    whole = all(stride % array.itemsize == 0 for stride in array.strides)
    return "S" if whole else "-"


class LayoutDispatch:
    """Hands calls on to programs for the layouts that come again and again.

    Parameters
    ----------
    specs : sequence of Spec
        Of the arguments.
    make : callable
        ``make(layouts)`` gives an entry, or None.
    otherwise : callable
        What takes all else.
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
        """Call the program for this layout, or the general one."""
        if kwargs or len(args) != len(self._specs):
            return self._otherwise(*args, **kwargs)
        layouts = "".join(map(layout_of, args, self._specs))
        if "-" in layouts or not ("F" in layouts or "S" in layouts):
            return self._otherwise(*args)
        entry = self._entries.get(layouts)
        if entry is None:
            entry = self._found(layouts)
        return entry(*args)

    def _found(self, layouts: str) -> Callable[..., Any]:
        with self._lock:
            count = self._counts.get(layouts, 0) + 1
            if len(self._counts) < _COUNTED or layouts in self._counts:
                self._counts[layouts] = count
            if count < thresholds.layout_calls or len(self._entries) >= thresholds.layout_programs:
                return self._otherwise
            if layouts not in self._entries:
                self._entries[layouts] = self._make(layouts) or self._otherwise
            return self._entries[layouts]
