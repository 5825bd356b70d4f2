"""Code that checks the records of capture guards, compiled once per process.

RECORD      the fields of a record
Load, Act   what a record loads, and how the loaded value is used
text        the module
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from ..ir import llvm_files
from . import cpython_layout

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
    return llvm_files.read(
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
