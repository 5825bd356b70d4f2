"""Capture guards: entry points that first compare captured values, and pass captured arrays.

A guarded entry point calls the entry point of a program.  It goes through a list of records: each
loads a pointer (from a cell, a dict, a list) and compares it with its earlier value, or loads an
array to be passed on.  If all comparisons succeed it calls the entry point with its own arguments
and these arrays, otherwise another callable.  One function serves all programs
(capture_guards.ll).

    guarded_entry, guard_check    the function objects
    is_available, has_versions    whether this interpreter's objects have the expected layout
    offset_of_slot                where an object has the value of a member of ``__slots__``

Code that checks the records of capture guards, compiled once per process.

RECORD      the fields of a record
Load, Act   what a record loads, and how the loaded value is used
text        the module
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from enum import IntEnum
from types import MemberDescriptorType
from typing import Any

import numpy as np

from wengert._engine.cache import disk_cache

from ..ir import execution_engine, llvm_types
from ..runtime.runtime_library import loaded
from . import cpython_layout
from .python_function import FASTCALL, Definition

# Of the descriptor of a member: its definition, and the offset there (PyMemberDef).
_MEMBER, _OFFSET = 40, 16


@functools.cache
def _addresses() -> dict[str, int]:
    names = ("wengert_guarded_enter", "wengert_guarded_check")
    whole = f"{execution_engine.heading()}\n{text()}"
    if disk_cache.enabled():
        return loaded(whole, {}, names)
    # Without optimization a call takes up to a tenth more instructions, and the first one of a
    # process, which keeps nothing for the next, 15 ms less.
    return loaded("", {}, names, cold=whole)


@functools.cache
def is_available() -> bool:
    """Whether cells, functions, dicts and lists have the layout that records assume."""
    if not cpython_layout.is_known():
        return False
    content, items, names = object(), [1.5, str, None], {"a": 1, "b": 2, "c": 3}

    def fun(a: object = content, *, b: object = None) -> object:
        return content

    def bare() -> None:
        pass

    def word(x: Any, offset: int) -> int:
        return int(ctypes.c_int64.from_address(id(x) + offset).value)

    assert fun.__closure__ is not None
    return (
        word(fun.__closure__[0], CELL) == id(content)
        and word(fun, CODE) == id(fun.__code__)
        and word(fun, DEFAULTS) == id(fun.__defaults__)
        and word(fun, KWDEFAULTS) == id(fun.__kwdefaults__)
        and word(bare, DEFAULTS) == word(bare, KWDEFAULTS) == 0
        and word(items, LENGTH) == len(items)
        and word(names, LENGTH) == len(names)
        and int(ctypes.c_int64.from_address(word(items, ELEMENTS) + 8).value) == id(str)
    )


@functools.cache
def has_versions() -> bool:
    """Whether each change of a dict changes the version number that records read."""
    if sys.version_info >= (3, 13) or not is_available():
        return False
    names: dict[str, Any] = {"a": 1.5, "b": None}
    numbers = []
    for value in (1.5, 2.5, 3.5):
        numbers.append(int(ctypes.c_uint64.from_address(id(names) + VERSION).value))
        assert int(ctypes.c_uint64.from_address(id(names) + VERSION).value) == numbers[-1]
        names["a"] = value + 1.0
    return len(set(numbers)) == len(numbers)


def offset_of_slot(x: Any, name: str) -> int | None:
    """Where an object has the value of a member of ``__slots__``, in bytes; None if not known."""
    descriptor = getattr(type(x), name, None)
    if not isinstance(descriptor, MemberDescriptorType) or not is_available():
        return None
    member = ctypes.c_void_p.from_address(id(descriptor) + _MEMBER).value
    assert member is not None
    offset = int(ctypes.c_int64.from_address(member + _OFFSET).value)
    if not 0 < offset < type(x).__basicsize__:
        return None
    found = ctypes.c_void_p.from_address(id(x) + offset).value
    missing = object()
    value = getattr(x, name, missing)
    return offset if found == (None if value is missing else id(value)) else None


def guarded_entry(
    records: np.ndarray[Any, Any],
    owner: Any,
    feeds: int,
    target: Callable[..., Any],
    miss: Callable[..., Any],
    arguments: int,
    position: int,
) -> Callable[..., Any]:
    """An entry point that checks records, then calls another one with the arrays they load.

    Parameters
    ----------
    records : ndarray of int64
        One row for each record (`RECORD`); writable, to change the expected values.
    owner : object
        Keeps alive all objects that the records point to.
    feeds : int
        The number of arrays that they load.
    target, miss : callable
        If all records hold, `target` is called with the arguments and the arrays; else `miss` is
        called with the arguments.
    arguments, position : int
        The number of arguments, and before which of them the arrays are inserted.
    """
    own = {"target": id(target), "miss": id(miss), "arguments": arguments, "position": position}
    made: Callable[..., Any] = _function_object(
        "wengert_guarded_enter", own, records, feeds, (owner, target, miss)
    )
    return made


def guard_check(
    records: np.ndarray[Any, Any], owner: Any, feeds: int
) -> Callable[[], tuple[Any, ...] | None]:
    """A function that returns the arrays loaded by records, or None if one does not hold."""
    own = dict.fromkeys(("target", "miss", "arguments", "position"), 0)
    made: Callable[[], tuple[Any, ...] | None] = _function_object(
        "wengert_guarded_check", own, records, feeds, (owner,)
    )
    return made


def _function_object(
    symbol: str,
    own: dict[str, int],
    records: np.ndarray[Any, Any],
    feeds: int,
    owned: tuple[Any, ...],
) -> Any:
    words = {**own, "records": records.ctypes.data, "count": len(records), "feeds": feeds}
    for name in FUNCTIONS:
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)
        words[name] = int(address.value or 0)
    words |= {name: id(x) for name, x in OBJECTS.items()}
    table = np.array([words[name] for name in WORDS], np.int64)
    table.flags.writeable = False
    definition = Definition(b"entry", _addresses()[symbol], FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    # The entry point looks for the table in the first item.
    return new(ctypes.addressof(definition), (table, definition, records, *owned), None)


RECORD = ("load", "holder", "key", "act", "expected", "extra")  # int64 each
FUNCTIONS = (
    "PyObject_Vectorcall",
    "PyDict_GetItemWithError",
    "PyErr_Clear",
    "PyErr_Occurred",
    "PyObject_GenericGetDict",
    "PyObject_CallNoArgs",
    "PyTuple_New",
    "Py_DecRef",
    "Py_IncRef",
)
OBJECTS: dict[str, Any] = {"ndarray": np.ndarray, "None": None}
_OWN = ("target", "miss", "records", "count", "feeds", "arguments", "position")
WORDS = {name: k for k, name in enumerate((*_OWN, *FUNCTIONS, *OBJECTS))}

# Offsets in bytes: the content of a cell, the code of a function, the length of a dict or list, the
# elements of a list; the defaults of a function (null for None); the version of a dict (PEP 509;
# changes with each change of the dict, until Python 3.12).
CELL, CODE, LENGTH, ELEMENTS = 16, 48, 16, 24
DEFAULTS, KWDEFAULTS = 56, 64
VERSION = 24


class Load(IntEnum):
    """What a record loads."""

    HOLDER = 0  # the holder itself
    WORD = 1  # the word at an offset in bytes
    ITEM = 2  # the entry of a dict
    INDEX = 3  # the element of a list
    DICT = 4  # the __dict__ of the holder
    CALL = 5  # the result of calling the holder
    ADDRESS = 6  # the address at an offset in bytes
    VERSION = 7  # nothing; if a dict has the expected version, the next `key` records are skipped
    SEEN = 8  # nothing; stores the version of the dict as expected value `key` records before


class Act(IntEnum):
    """How a loaded value is used."""

    SAME = 0  # must be the expected pointer
    FEED = 1  # must be an array, and is passed to the program
    ALIAS = 2  # must be the array that is passed at an index
    BYTES = 3  # the bytes at this address must be the expected ones
    NUMBER = 4  # must be an object of the expected class, and is passed to the program


def _word(name: str) -> str:
    """The instructions that load a word of the table as %name."""
    k = WORDS[name]
    label = name.replace("None", "none")
    return (
        f"  %at.{label} = getelementptr i64, ptr %table, i64 {k}\n"
        f"  %{label} = load ptr, ptr %at.{label}\n"
    )


def _number(name: str) -> str:
    k = WORDS[name]
    return (
        f"  %at.{name} = getelementptr i64, ptr %table, i64 {k}\n"
        f"  %{name} = load i64, ptr %at.{name}\n"
    )


def _field(k: int, kind: str = "i64") -> str:
    name = RECORD[k]
    return (
        f"  %at.{name} = getelementptr i64, ptr %record, i64 {k}\n"
        f"  %{name} = load {kind}, ptr %at.{name}\n"
    )


_HOLD = "PyDict_GetItemWithError PyErr_Clear PyErr_Occurred PyObject_GenericGetDict"
_HOLD += " PyObject_CallNoArgs Py_DecRef Py_IncRef ndarray records"
_ENTER, _CHECK = "target miss PyObject_Vectorcall Py_DecRef", "PyTuple_New Py_DecRef Py_IncRef None"


def _loads(words: str, numbers: str) -> str:
    """The instructions that load words and integers of the table."""
    return "".join([*map(_word, words.split()), *map(_number, numbers.split())])


def text() -> str:
    """The module: ``hold`` (checks all records), a guarded entry point, and a check."""
    pointers = ("holder", "expected")
    return llvm_types.read(
        __file__,
        hold_words=_loads(_HOLD, "count"),
        enter_words=_loads(_ENTER, "feeds arguments position"),
        check_words=_loads(_CHECK, "feeds"),
        fields="".join(
            _field(k, "ptr" if name in pointers else "i64") for k, name in enumerate(RECORD)
        ),
        record_words=len(RECORD),
        record_bytes=8 * len(RECORD),
        version=VERSION,
        length=LENGTH,
        elements=ELEMENTS,
        **cpython_layout.OFFSETS,
    )
