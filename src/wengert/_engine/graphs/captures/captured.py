"""Captured: guards and fed arrays of one trace, checked together at each call.

CapturedObject  an object on a way from the function to what it captures
Captured        whether all guards hold, and the arrays as they are now
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.lazy_import import LazyModule

from .guards import Guard, SameObject
from .sources import CaptureSource, Kind

if TYPE_CHECKING:
    from wengert._engine.backends.llvm.abi import capture_guards

    from . import records
    from .records import Records
else:  # where nothing is captured, neither is needed
    capture_guards = LazyModule("wengert._engine.backends.llvm.abi.capture_guards")
    records = LazyModule("wengert._engine.graphs.captures.records")


class CapturedObject:
    """An object on a way from the function to what it captures.

    Attributes
    ----------
    value : object
    replaceable : bool
        Whether another one can stand in its place while the function is traced.
    barred : bool
        Whether it is reached through something that cannot be replaced.
    children : list of int
        The identities of the objects that are read of it.
    """

    __slots__ = ("barred", "children", "replaceable", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.replaceable = self.barred = False
        self.children: list[int] = []


class Captured:
    """What a function captured when it was traced.

    Attributes
    ----------
    guards : list of Guard
    feeds : dict from str to Source
        Arrays that are inputs of the program, by the name of how they are reached.
    aliases : list of (Source, int)
        Other ways to an array that is fed, with its number.
    found : dict from int to CapturedObject
        The objects that lead to fed arrays, by identity; empty once they are not needed.
    unguarded : dict from str to str
        What can be neither fed nor compared, and why.
    """

    def __init__(
        self,
        guards: Sequence[Guard],
        feeds: dict[int, list[CaptureSource]],
        found: dict[int, CapturedObject],
        unguarded: dict[str, str],
    ) -> None:
        self.guards = list(guards)
        self.feeds: dict[str, CaptureSource] = {}
        self.identities: dict[int, str] = {}
        self.aliases: list[tuple[CaptureSource, int]] = []
        others: dict[str, list[CaptureSource]] = {}
        for key, (first, *rest) in feeds.items():
            name, k = first.name, 2
            while name in others:
                name, k = f"{first.name} ({k})", k + 1
            self.feeds[name], others[name] = first, rest
            self.identities[key] = name
        # In the order in which a dict of them gives its leaves.
        self.feeds = {name: self.feeds[name] for name in sorted(self.feeds)}
        for k, name in enumerate(self.feeds):
            self.aliases += [(source, k) for source in others[name]]
        self.found = found
        self.unguarded = dict(unguarded)
        self._records: Records | None = None
        self._check: Callable[[], Sequence[Any] | None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look at."""
        return not self.guards and not self.feeds

    @property
    def records(self) -> Records | None:
        """What native code goes through; None where there is none for this interpreter."""
        if self._records is None and capture_guards.is_available():
            self._records = records.Records(self)
        return self._records

    def quickly(self) -> Sequence[Any] | None:
        """The fed arrays, if all that was captured is the very same; None if that is not known."""
        if self.is_empty:
            return ()
        if self._check is None:
            if self.records is None:
                return None
            self._check = capture_guards.guard_check(
                self.records.rows, self.records, len(self.feeds)
            )
        return self._check()

    def guarded(
        self, entry: Callable[..., Any], miss: Callable[..., Any], count: int, position: int
    ) -> Callable[..., Any] | None:
        """An entry for calls with `count` arguments, before one that takes fed arrays, too.

        Parameters
        ----------
        entry, miss : callable
            Called with the fed arrays if all guards hold, else without them.
        count, position : int
            How many arguments there are, and before which the arrays are inserted.
        """
        if self.is_empty:
            return entry
        if self.records is None:
            return None
        rows, feeds = self.records.rows, len(self.feeds)
        return capture_guards.guarded_entry(rows, self.records, feeds, entry, miss, count, position)

    def arrays(self) -> Sequence[Any] | None:
        """The fed arrays as they are now; None if something else has changed."""
        found = self.quickly()
        if found is None:
            found = self._slowly()
            if found is not None and self._records is not None:
                self._records.refresh(self)
        return found

    def _slowly(self) -> list[Any] | None:
        for guard in self.guards:
            if not guard.holds():
                return None
        arrays = [source.read() for source in self.feeds.values()]
        for x in arrays:
            if type(x) is not np.ndarray or x.dtype.kind not in "biufc" or not x.dtype.isnative:
                return None
        if any(source.read() is not arrays[k] for source, k in self.aliases):
            return None
        return arrays

    def rebase(self) -> None:
        """Expect containers to be as long as they are now.

        A function that appends to a list or enters into a dict while it is traced does so once; it
        would be traced again at each call if the list counted as another one.
        """
        for guard in self.guards:
            if guard.source.kind is Kind.LENGTH and isinstance(guard, SameObject):
                guard.expected = guard.source.read()
        if self._records is not None:
            self._records.refresh(self)

    def changed(self) -> str | None:
        """The name of something that is not what it was, or None."""
        return next((g.source.name for g in self.guards if not g.holds()), None)
