"""Records: guards and captured arrays in the form that native code reads.

A record is six integers: the value to load (a word of an object, an entry of a dict) and whether to
compare it or pass it on as an array (backends/llvm/abi/capture_guard_codegen.py).

    Records    the records of one `Captured`, and the objects that they point to
"""

from __future__ import annotations

import weakref
from typing import Any, Protocol

import numpy as np

from wengert._engine.backends.llvm.abi.capture_guard_codegen import (
    CELL,
    CODE,
    DEFAULTS,
    KWDEFAULTS,
    LENGTH,
    RECORD,
    Act,
    Load,
)
from wengert._engine.backends.llvm.abi.capture_guards import has_versions, offset_of_slot
from wengert._engine.backends.llvm.abi.cpython_layout import (
    DATA,
    DESCR,
    DIMENSIONS,
    NDIM,
    STRIDES,
    TYPE,
)

from .guards import Content, Guard, KeyOrder, SameObject
from .sources import ABSENT, CaptureSource, Kind


class Captures(Protocol):
    """The part of `Captured` that records are made from (captured.py)."""

    guards: list[Guard]
    feeds: dict[str, CaptureSource]
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
        self.rows, self._kept = _made(captured)
        self.feeds = len(captured.feeds)

    def refresh(self, captured: Captures) -> None:
        """Update the expected pointers after guards have accepted other, equal objects."""
        rows, kept = _made(captured)
        if rows.shape == self.rows.shape:
            before = self._kept
            self._kept = [kept, before]  # until the records no longer point to the objects before
            self.rows[...] = rows
            self._kept = kept


def _made(captured: Captures) -> tuple[np.ndarray[Any, Any], list[Any]]:
    rows: list[_Row] = []
    kept: list[Any] = []
    scopes: dict[int, list[_Row]] = {}
    for guard in captured.guards:
        made = _rows(guard, kept)
        if len(made) == 1 and _is_of_dict(guard) and has_versions():
            scopes.setdefault(id(guard.source.holder), []).append(made[0])
        else:
            rows += made
    for holder, those in scopes.items():
        # While a dict does not change, comparing its version is enough.
        rows.append((Load.VERSION, holder, len(those) + 1, Act.SAME, 0, 0))
        rows += [*those, (Load.SEEN, holder, len(those) + 1, Act.SAME, 0, 0)]
    for source in captured.feeds.values():
        rows.append((*_load(source, kept), Act.FEED, 0, 0))
    for source, number in captured.aliases:
        rows.append((*_load(source, kept), Act.ALIAS, number, 0))
    return np.array(rows, np.int64).reshape(-1, len(RECORD)), kept


def _is_of_dict(guard: Guard) -> bool:
    """Whether it holds as long as a dict does not change: of globals, or of a user."""
    known = type(guard) is KeyOrder or guard.source.kind in (Kind.ITEM, Kind.LENGTH)
    return known and type(guard.source.holder) is dict


def _load(source: CaptureSource, kept: list[Any]) -> tuple[int, int, int]:
    """The kind of a load, the address of the object, and the key."""
    kind, holder, key = source.kind, source.holder, source.key
    if kind in (Kind.DICT, Kind.TYPE) and isinstance(holder, weakref.ref):
        # Alive whenever the records are read: it is an argument of the call.
        holder = holder()
    else:
        kept += [holder, key]
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


def _rows(guard: Guard, kept: list[Any]) -> list[_Row]:
    source = guard.source
    if isinstance(guard, SameObject):
        if source.kind is Kind.LENGTH:
            return [(*_load(source, kept), Act.SAME, guard.expected, 0)]
        load = _load_attribute(source, kept) if source.kind is Kind.ATTRIBUTE else None
        if load is not None or source.kind is not Kind.ATTRIBUTE:
            kept.append(guard.expected)
            return [(*(load or _load(source, kept)), Act.SAME, _address(guard), 0)]
    if isinstance(guard, Content) and source.kind is not Kind.ATTRIBUTE:
        x, was = guard.array, guard.bytes
        if x.flags.forc and x.strides == was.strides and x.dtype == was.dtype:
            return _of_array(source, x, was, kept)
    holds = guard.holds
    kept.append(holds)
    return [(Load.CALL, id(holds), 0, Act.SAME, id(True), 0)]


def _address(guard: SameObject) -> int:
    """The address of the expected object; 0 where nothing is expected."""
    expected, kind = guard.expected, guard.source.kind
    missing = expected is ABSENT or (expected is None and kind in (Kind.DEFAULTS, Kind.KWDEFAULTS))
    return 0 if missing else id(expected)


def _load_attribute(source: CaptureSource, kept: list[Any]) -> tuple[int, int, int] | None:
    """The load of a member of ``__slots__``; None if it is not known where that is."""
    offset = offset_of_slot(source.holder, source.key)
    kept.append(source.holder)
    return None if offset is None else (Load.WORD, id(source.holder), offset)


def _of_array(
    source: CaptureSource, x: np.ndarray[Any, Any], was: np.ndarray[Any, Any], kept: list[Any]
) -> list[_Row]:
    """The identity of an array, its address, layout and bytes."""
    lengths, strides = np.array(x.shape, np.int64), np.array(x.strides, np.int64)
    axes = np.array(x.ndim, np.int32)
    kept += [x, was, x.dtype, lengths, strides, axes]
    own = id(x)
    count = 8 * x.ndim
    found: list[_Row] = [
        (*_load(source, kept), Act.SAME, own, 0),
        (Load.WORD, own, DATA, Act.SAME, x.ctypes.data, 0),
        (Load.WORD, own, DESCR, Act.SAME, id(x.dtype), 0),
        (Load.ADDRESS, own, NDIM, Act.BYTES, axes.ctypes.data, axes.itemsize),
    ]
    if x.ndim:
        found += [
            (Load.WORD, own, DIMENSIONS, Act.BYTES, lengths.ctypes.data, count),
            (Load.WORD, own, STRIDES, Act.BYTES, strides.ctypes.data, count),
        ]
    if x.nbytes:
        found.append((Load.WORD, own, DATA, Act.BYTES, was.ctypes.data, x.nbytes))
    return found
