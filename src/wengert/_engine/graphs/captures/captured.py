"""Captured values of one trace: guards and fed arrays, checked together at each call.

CapturedObject  an object on a path from the function to a captured value
Captured        checks whether all guards hold, and reads the current arrays
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from wengert._engine.core.conversion_hook import is_library_module
from wengert._engine.core.device_arrays import is_numeric_array
from wengert._engine.core.lazy_import import LazyModule

from .guards import ABSENT, CaptureSource, FedNumber, Guard, Kind, SameObject, is_number

if TYPE_CHECKING:
    from wengert._engine.backends.llvm.abi import guarded_entries

    from . import records
    from .records import Records
else:  # not imported if nothing is captured
    guarded_entries = LazyModule("wengert._engine.backends.llvm.abi.guarded_entries")
    records = LazyModule("wengert._engine.graphs.captures.records")


class CapturedObject:
    """An object on a path from the function to a captured value.

    Attributes
    ----------
    value : object
    replaceable : bool
        Whether it can be replaced by another object while the function is traced.
    barred : bool
        Whether some path to it leads through an object that cannot be replaced.
    children : list of int
        The identities of the objects read from it.
    """

    __slots__ = ("barred", "children", "replaceable", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.replaceable = self.barred = False
        self.children: list[int] = []


class Captured:
    """The values that a function captured when it was traced.

    Attributes
    ----------
    guards : list of Guard
    feeds : dict from str to CaptureSource
        Arrays and numbers that are inputs of the program, by name.
    numbers : dict from str to FedNumber
        Those that are numbers.
    aliases : list of (CaptureSource, int)
        Other paths to a fed array, with its position in `feeds`.
    objects : dict from int to CapturedObject
        The objects on paths to fed arrays, by identity; emptied when they are no longer needed.
    unguarded : dict from str to str
        Names of values that can be neither fed nor compared, and why.
    """

    def __init__(
        self,
        guards: Sequence[Guard],
        feeds: dict[int, list[CaptureSource]],
        objects: dict[int, CapturedObject],
        unguarded: dict[str, str],
        numbers: Sequence[FedNumber] = (),
    ) -> None:
        self.guards = list(guards)
        self.feeds: dict[str, CaptureSource] = {}
        self.identities: dict[int, str] = {}
        self.aliases: list[tuple[CaptureSource, int]] = []
        others: dict[str, list[CaptureSource]] = {}
        for key, (first, *further) in feeds.items():
            name, k = first.name, 2
            while name in others:
                name, k = f"{first.name} ({k})", k + 1
            self.feeds[name], others[name] = first, further
            self.identities[key] = name
        self.numbers: dict[str, FedNumber] = {}
        for number in numbers:
            name, k = number.source.name, 2
            while name in self.feeds:
                name, k = f"{number.source.name} ({k})", k + 1
            self.feeds[name], self.numbers[name], others[name] = number.source, number, []
        # In the order of the leaves of a dict.
        self.feeds = {name: self.feeds[name] for name in sorted(self.feeds)}
        for k, name in enumerate(self.feeds):
            self.aliases += [(source, k) for source in others[name]]
        self.objects = objects
        self.unguarded = dict(unguarded)
        self._records: Records | None = None
        self._check: Callable[[], Sequence[Any] | None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is captured."""
        return not self.guards and not self.feeds

    @property
    def records(self) -> Records | None:
        """The records for native code; None if native code does not support the interpreter."""
        if self._records is None and guarded_entries.is_available():
            self._records = records.Records(self)
        return self._records

    def quickly(self) -> Sequence[Any] | None:
        """The fed arrays, if all captured objects are identical; None if that is not known."""
        if self.is_empty:
            return ()
        if self._check is None:
            if self.records is None:
                return None
            self._check = guarded_entries.guard_check(
                self.records.rows, self.records, len(self.feeds)
            )
        fed = self._check()
        if fed is not None and self.numbers:  # native code does not compare them with 2**63
            pairs = zip(self.feeds, fed, strict=True)
            if not all(is_number(x) for name, x in pairs if name in self.numbers):
                return None
        return fed

    def guarded(
        self, entry: Callable[..., Any], miss: Callable[..., Any], count: int, position: int
    ) -> Callable[..., Any] | None:
        """An entry point that checks the guards, and inserts the fed arrays into calls of another.

        Parameters
        ----------
        entry, miss : callable
            `entry` is called with the fed arrays if all guards hold, else `miss` without them.
        count, position : int
            The number of arguments, and the position at which the arrays are inserted.
        """
        if self.is_empty:
            return entry
        if self.records is None:
            return None
        rows, feeds = self.records.rows, len(self.feeds)
        return guarded_entries.guarded_entry(
            rows, self.records, feeds, entry, miss, count, position
        )

    def arrays(self) -> Sequence[Any] | None:
        """The current fed arrays; None if a guard fails."""
        current = self.quickly()
        if current is None:
            current = self._slowly()
            if current is not None and self._records is not None:
                self._records.refresh(self)
        return current

    def _slowly(self) -> list[Any] | None:
        for guard in self.guards:
            if not guard.holds():
                return None
        arrays = [source.read() for source in self.feeds.values()]
        for name, x in zip(self.feeds, arrays, strict=True):
            if name in self.numbers:
                if type(x) is not self.numbers[name].kind or not is_number(x):
                    return None
            elif not is_numeric_array(x):
                return None
        if any(source.read() is not arrays[k] for source, k in self.aliases):
            return None
        return arrays

    def rebase(self) -> None:
        """Make the current lengths of containers, and modules imported since, the expected ones.

        A function may append to a list or add to a dict while it is traced, which its compiled
        program does not do; without this it would be traced again at each call.
        """
        for guard in self.guards:
            if isinstance(guard, SameObject) and (
                guard.source.kind is Kind.LENGTH or _is_imported_library(guard)
            ):
                guard.expected = guard.source.read()
        if self._records is not None:
            self._records.refresh(self)

    def changed_numbers(self) -> list[CaptureSource]:
        """The numbers among the captured values that have changed to other numbers."""
        return [
            g.source
            for g in self.guards
            if isinstance(g, SameObject)
            and is_number(g.expected)
            and is_number(g.source.read())
            and g.source.kind in (Kind.ITEM, Kind.INDEX, Kind.CELL)
            and not g.holds()
        ]

    def changed(self) -> str | None:
        """The name of a captured value that has changed, or None."""
        return next((g.source.name for g in self.guards if not g.holds()), None)


def _is_imported_library(guard: SameObject) -> bool:
    """Whether a guard expects a module not to be imported, and it is one of a library."""
    if guard.source.holder is not sys.modules or guard.expected is not ABSENT:
        return False
    module = guard.source.read()
    return isinstance(module, ModuleType) and is_library_module(module)
