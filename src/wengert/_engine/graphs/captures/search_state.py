"""Search state: what one search for captured values has found so far.

Each value is searched once; further paths to it only add guards.

SearchState    guards, objects and arrays found, and the queue of tasks
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any

from wengert._engine.core.conversion_hook import is_immutable, is_library_module
from wengert._engine.core.device_arrays import is_numeric_array

from .captured import CapturedObject
from .guards import Guard, SameObject, is_number
from .sources import ABSENT, CaptureSource, Kind, Location


class SearchState:
    """What one search has found so far.

    Parameters
    ----------
    names : frozenset of str
        The known names of attributes that the code reads.
    any_attribute : bool
        Whether it may read attributes with other names.
    absent : bool
        Whether it may continue if an attribute does not exist.
    variable : collection of Location
        Parts of objects whose values are numbers that have changed; they may become inputs.
    """

    def __init__(
        self,
        names: frozenset[str],
        any_attribute: bool,
        absent: bool,
        variable: Collection[Location] = (),
    ) -> None:
        self._variable = variable
        self._numbers: dict[Location, tuple[CaptureSource, Any, CapturedObject]] = {}
        self._wanted, self._all = names, any_attribute
        self.names: set[str] = set()
        self.any_attribute, self.absent, self._absent = any_attribute, absent, absent
        self._guards: list[Guard] = []
        self._found: dict[int, CapturedObject] = {}
        self._arrays: dict[int, list[CaptureSource]] = {}
        self._unguarded: dict[str, str] = {}
        self._tasks: deque[Callable[[], None]] = deque()
        self._seen_classes: set[type] = set()
        self._opaque = 0

    def _visit(
        self,
        value: Any,
        source: CaptureSource,
        parent: CapturedObject | None,
        barred: bool = False,
        weak: bool = False,
    ) -> None:
        """Add the source of a value, and search the value once."""
        if value is ABSENT or is_immutable(value):
            if source.kind is Kind.CONSTANT:
                return
            is_variable = bool(self._variable) and source.location in self._variable
            if is_variable and is_number(value) and parent is not None and not barred:
                self._numbers[source.location] = source, value, parent
                return
            self._guards.append(SameObject(source, value))
            return
        key = id(value)
        is_new = key not in self._found
        captured = self._found.setdefault(key, CapturedObject(value))
        captured.barred |= barred or (parent is not None and not parent.replaceable)
        if parent is not None:
            parent.children.append(key)
        if is_numeric_array(value):
            self._arrays.setdefault(key, []).append(source)
            return
        if source.kind is not Kind.CONSTANT:
            self._guards.append(SameObject(source, value))
        if is_new:
            self._expand(captured, source, weak)

    def _later(self, task: Callable[..., None], *args: Any) -> None:
        self._tasks.append(functools.partial(task, *args))

    def _expand(self, captured: CapturedObject, source: CaptureSource, weak: bool) -> None:
        """Search the contents of a value."""
        raise NotImplementedError

    def _entries(
        self, captured: CapturedObject, entries: dict[str, Any], prefix: str, names: frozenset[Any]
    ) -> None:
        """Visit the entries of a namespace with these names."""
        all_names = self._all and not isinstance(captured.value, ModuleType)
        if self._absent:
            length_source = CaptureSource(Kind.LENGTH, entries, None, prefix.rstrip("."))
            self._guards.append(SameObject(length_source, len(entries)))
        for name in sorted(entries) if all_names else sorted(names & entries.keys()):
            value = entries[name]
            if isinstance(value, ModuleType) and is_library_module(value):
                continue
            self._visit(value, CaptureSource(Kind.ITEM, entries, name, prefix + name), captured)
