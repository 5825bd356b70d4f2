"""Records: guards and captured arrays in the form that native code reads.

A record is six integers: the value to load (a word of an object, an entry of a dict) and whether to
compare it or pass it on as an array (backends/llvm/abi/guarded_entries.py).

    Records    the records of one `Captured`, and the objects that they point to
"""

from __future__ import annotations

import weakref
from typing import Any, Protocol

import numpy as np

from wengert._engine.backends.llvm.abi.cpython_layout import (
    DATA,
    DESCR,
    DIMENSIONS,
    NDIM,
    STRIDES,
    TYPE,
)
from wengert._engine.backends.llvm.abi.guarded_entries import (
    CELL,
    CODE,
    DEFAULTS,
    KWDEFAULTS,
    LENGTH,
    RECORD,
    Act,
    Load,
    has_versions,
    offset_of_slot,
)

from .guards import ABSENT, CaptureSource, Content, FedNumber, Guard, KeyOrder, Kind, SameObject


class Captures(Protocol):
    """The part of `Captured` that records are made from (captured.py)."""

    guards: list[Guard]
    feeds: dict[str, CaptureSource]
    numbers: dict[str, FedNumber]
    aliases: list[tuple[CaptureSource, int]]


_Row = tuple[int, int, int, int, int, int]
_OFFSETS = {
    Kind.CELL: CELL,
    Kind.CODE: CODE,
    Kind.DEFAULTS: DEFAULTS,
    Kind.KWDEFAULTS: KWDEFAULTS,
    Kind.LENGTH: LENGTH,
    Kind.TYPE: TYPE,
}


class Records:
    """The records of captured values.

    Attributes
    ----------
    rows : ndarray of int64
    feeds : int
        The number of arrays that they pass on.
    """

    def __init__(self, captured: Captures) -> None:
        self.rows, self._kept = _build_rows(captured)
        self.feeds = len(captured.feeds)

    def refresh(self, captured: Captures) -> None:
        """Update the expected pointers after guards have accepted other, equal objects."""
        rows, references = _build_rows(captured)
        if rows.shape == self.rows.shape:
            previous = self._kept
            # Both, until the records no longer point to the previous objects.
            self._kept = [references, previous]
            self.rows[...] = rows
            self._kept = references


def _build_rows(captured: Captures) -> tuple[np.ndarray[Any, Any], list[Any]]:
    rows: list[_Row] = []
    references: list[Any] = []
    scopes: dict[int, list[_Row]] = {}
    for guard in captured.guards:
        guard_rows = _rows(guard, references)
        if len(guard_rows) == 1 and _is_of_dict(guard) and has_versions():
            scopes.setdefault(id(guard.source.holder), []).append(guard_rows[0])
        else:
            rows += guard_rows
    for holder, scope_rows in scopes.items():
        # While a dict does not change, comparing its version is enough.
        rows.append((Load.VERSION, holder, len(scope_rows) + 1, Act.SAME, 0, 0))
        rows += [*scope_rows, (Load.SEEN, holder, len(scope_rows) + 1, Act.SAME, 0, 0)]
    for name, source in captured.feeds.items():
        if name in captured.numbers:
            kind = captured.numbers[name].kind
            references.append(kind)
            rows.append((*_load(source, references), Act.NUMBER, id(kind), 0))
        else:
            rows.append((*_load(source, references), Act.FEED, 0, 0))
    for source, number in captured.aliases:
        rows.append((*_load(source, references), Act.ALIAS, number, 0))
    return np.array(rows, np.int64).reshape(-1, len(RECORD)), references


def _is_of_dict(guard: Guard) -> bool:
    """Whether a guard holds as long as a dict does not change."""
    is_entry = type(guard) is KeyOrder or guard.source.kind in (Kind.ITEM, Kind.LENGTH)
    return is_entry and type(guard.source.holder) is dict


def _load(source: CaptureSource, references: list[Any]) -> tuple[int, int, int]:
    """The kind of a load, the address of the object, and the key."""
    kind, holder, key = source.kind, source.holder, source.key
    if kind in (Kind.DICT, Kind.TYPE) and isinstance(holder, weakref.ref):
        # An argument of the call, so it is alive whenever the records are read.
        holder = holder()
    else:
        references += [holder, key]
    if kind in _OFFSETS:
        return Load.WORD, id(holder), _OFFSETS[kind]
    if kind is Kind.ITEM:
        return Load.ITEM, id(holder), id(key)
    if kind is Kind.INDEX:
        return Load.INDEX, id(holder), key
    if kind is Kind.DICT:
        return Load.DICT, id(holder), 0
    assert kind is Kind.CONSTANT
    return Load.HOLDER, id(holder), 0


def _rows(guard: Guard, references: list[Any]) -> list[_Row]:
    source = guard.source
    if isinstance(guard, SameObject):
        if source.kind is Kind.LENGTH:
            return [(*_load(source, references), Act.SAME, guard.expected, 0)]
        load = _load_attribute(source, references) if source.kind is Kind.ATTRIBUTE else None
        if load is not None or source.kind is not Kind.ATTRIBUTE:
            references.append(guard.expected)
            return [(*(load or _load(source, references)), Act.SAME, _address(guard), 0)]
    if isinstance(guard, Content) and source.kind is not Kind.ATTRIBUTE:
        x, copy = guard.array, guard.bytes
        if x.flags.forc and x.strides == copy.strides and x.dtype == copy.dtype:
            return _of_array(source, x, copy, references)
    holds = guard.holds
    references.append(holds)
    return [(Load.CALL, id(holds), 0, Act.SAME, id(True), 0)]


def _address(guard: SameObject) -> int:
    """The address of the expected object; 0 where nothing is expected."""
    expected, kind = guard.expected, guard.source.kind
    missing = expected is ABSENT or (expected is None and kind in (Kind.DEFAULTS, Kind.KWDEFAULTS))
    return 0 if missing else id(expected)


def _load_attribute(source: CaptureSource, references: list[Any]) -> tuple[int, int, int] | None:
    """The load of a member of ``__slots__``; None if its offset is not known."""
    offset = offset_of_slot(source.holder, source.key)
    references.append(source.holder)
    return None if offset is None else (Load.WORD, id(source.holder), offset)


def _of_array(
    source: CaptureSource,
    x: np.ndarray[Any, Any],
    copy: np.ndarray[Any, Any],
    references: list[Any],
) -> list[_Row]:
    """Records that compare the identity of an array, its address, layout and bytes."""
    lengths, strides = np.array(x.shape, np.int64), np.array(x.strides, np.int64)
    axes = np.array(x.ndim, np.int32)
    references += [x, copy, x.dtype, lengths, strides, axes]
    address = id(x)
    count = 8 * x.ndim
    rows: list[_Row] = [
        (*_load(source, references), Act.SAME, address, 0),
        (Load.WORD, address, DATA, Act.SAME, x.ctypes.data, 0),
        (Load.WORD, address, DESCR, Act.SAME, id(x.dtype), 0),
        (Load.ADDRESS, address, NDIM, Act.BYTES, axes.ctypes.data, axes.itemsize),
    ]
    if x.ndim:
        rows += [
            (Load.WORD, address, DIMENSIONS, Act.BYTES, lengths.ctypes.data, count),
            (Load.WORD, address, STRIDES, Act.BYTES, strides.ctypes.data, count),
        ]
    if x.nbytes:
        rows.append((Load.WORD, address, DATA, Act.BYTES, copy.ctypes.data, x.nbytes))
    return rows
