"""Appends: what the trips of a traced loop append to lists.

A trip is traced once, so what it appends is collected, stacked by the loop, and after it the list
gets the elements that Python would give it (core/loop_rows.py).

append_       a statement ``out.append(value)``
Collecting    a block in which values for some lists are collected, or refused
Rows          what a trip appended to a list, as outputs of the loop
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, owner_of_memory
from wengert._engine.core.library_code import is_immutable
from wengert._engine.core.loop_rows import LoopRow, RowBlock, rows_of, whole
from wengert._engine.core.op import lookup

from ..state import NotTraceable
from .values import PartitionedValue, spec_of


class _Frames(threading.local):
    """For each block that is being traced the lists filled in it, by identity."""

    stack: tuple[dict[int, list[Any] | str], ...] = ()


_frames = _Frames()


def append_(to: list[Any], value: object) -> None:
    """A statement ``to.append(value)``, of a list that the function has made."""
    for frame in _frames.stack[::-1]:
        into = frame.get(id(to))
        if isinstance(into, str):
            raise NotTraceable(into)
        if into is not None:
            into.append(value)
            return
    to.append(value)


class Collecting:
    """Lists that a block fills, and what it appends to each.

    Parameters
    ----------
    lists : list of list
    refusal : str, optional
        Why nothing may be appended to them in the block.
    """

    def __init__(self, lists: Sequence[Any], refusal: str | None = None) -> None:
        self.lists = [x for x in lists if type(x) is list]
        self._refusal = refusal
        self.values: list[list[Any]] = []

    @contextmanager
    def block(self) -> Iterator[None]:
        """The block; what another run of it appended is forgotten."""
        self.values = [[] for _ in self.lists]
        into = [self._refusal or v for v in self.values]
        frame: dict[int, list[Any] | str] = dict(zip(map(id, self.lists), into, strict=True))
        before = _frames.stack
        _frames.stack = (*before, frame)
        try:
            yield
        finally:
            _frames.stack = before

    def appends_any(self, arrays: Sequence[Handle], since: int) -> bool:
        """Whether a value is one of some arrays, or one made before a serial number."""
        found = [x for v in self.values for x in pytree.flatten(v)[0] if isinstance(x, Handle)]
        owners = {id(owner_of_memory(x)): x for x in found if not isinstance(x, LoopRow)}
        if not owners.keys().isdisjoint(map(id, arrays)):
            return True
        return any(x.node.spec.shape and x.node.serial < since for x in owners.values())

    @property
    def has_arrays(self) -> bool:
        """Whether some values are arrays."""
        leaves = [x for v in self.values for x in pytree.flatten(v)[0]]
        return any(isinstance(x, Handle) and x.node.spec.shape for x in leaves)

    def rows(self) -> list[Rows]:
        """What a trip appended to each list."""
        return [Rows(to, v) for to, v in zip(self.lists, self.values, strict=True) if v]


class Rows:
    """What a trip appended to a list.

    Attributes
    ----------
    numbers : list
        The arrays and numbers to be stacked by the loop.
    """

    def __init__(self, to: list[Any], values: list[Any]) -> None:
        self._to = to
        self._items = [_Item(v) for v in _compressed(values)]
        self.numeric_leaves = [x for item in self._items for x in item.numeric_leaves]

    def finish(self, stacked: list[Any], length: int) -> None:
        """Append to the list what all trips did.

        Parameters
        ----------
        stacked : list
            The results of the loop for `numbers`.
        length : int
            The number of trips.
        """
        rest = iter(stacked)
        columns = [
            item.column([next(rest) for _ in item.numeric_leaves], length) for item in self._items
        ]
        for trip in zip(*columns, strict=True):
            for value in trip:
                append_(self._to, value)


class _Item:
    """A value that a trip appends, or a run of rows.

    Attributes
    ----------
    numbers : list
    """

    def __init__(self, value: object) -> None:
        self._is_run, self._is_list = isinstance(value, _Run), False
        if isinstance(value, _Run):
            self.numeric_leaves, self._parts, self._weak = [value.array], None, [False]
            return
        together = whole(value) if isinstance(value, list) else None
        if together is not None:
            self.numeric_leaves, self._parts, self._weak, self._is_list = (
                [together],
                None,
                [False],
                True,
            )
            return
        self._parts = PartitionedValue.of(value)
        others = zip(self._parts.leaves, self._parts.numeric, strict=True)
        if not all(is_number or is_immutable(x) for x, is_number in others):
            raise NotTraceable(f"it appends a {type(value).__name__}")
        self.numeric_leaves = self._parts.numeric_leaves
        self._weak = [spec.weak for spec in self._parts.specs]

    def column(self, stacked: list[Any], length: int) -> list[Any]:
        """The values of all trips."""
        if self._is_run:
            array = stacked[0]
            if length == 0:
                return []
            inner = array.shape[1]
            flat = array.reshape((length * inner, *array.shape[2:]))
            return list(rows_of(RowBlock(length * inner, flat)))
        blocks = [RowBlock(length, x, w) for x, w in zip(stacked, self._weak, strict=True)]
        if self._is_list:
            inner = int(stacked[0].shape[1])
            return [list(rows_of(RowBlock(inner, (blocks[0], k)))) for k in range(length)]
        columns = [list(rows_of(b)) for b in blocks]
        assert self._parts is not None
        return [self._parts.rebuild([c[k] for c in columns]) for k in range(length)]


class _Run:
    """Rows that follow one another, as one array."""

    def __init__(self, array: Any) -> None:
        self.array = array


def _compressed(values: list[Any]) -> list[Any]:
    """The values; several of one shape and dtype become one array."""
    if len(values) == 1:
        return values
    together = whole(values)
    if together is None:
        specs = {(s.shape, s.dtype) if (s := spec_of(v)) is not None else None for v in values}
        if len(specs) != 1 or None in specs or not any(isinstance(v, Handle) for v in values):
            return values
        together = lookup("stack")(*values, axis=0)
    return [_Run(together)]
