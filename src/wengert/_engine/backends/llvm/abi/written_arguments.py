"""Written arguments: entry points of functions that modify their array arguments in place.

The entry point of such a program returns the results followed by the new values of the arguments
that the function modifies.  The entry point made here calls it, copies these values into the
arguments, and returns the results.  It serves calls whose modified arguments are writable,
C-contiguous arrays that share no memory with other arguments; a run that fails modifies nothing.
One function serves all programs; it is compiled once.

    writing_entry    the function object
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import execution_engine, llvm_types
from ..runtime.runtime_library import loaded
from . import cpython_layout
from .python_function import FASTCALL, Definition

_FUNCTIONS = ("PyObject_Vectorcall", "PyTuple_GetSlice", "Py_DecRef", "Py_IncRef")
_OBJECTS: dict[str, Any] = {"ndarray": np.ndarray, "none": None}
_WORDS = (
    "target", "miss", "missed", "arguments", "results", "is_tuple", "written", "sizes", "places",
    *_FUNCTIONS, *_OBJECTS,
)  # fmt: skip
_FLAGS = cpython_layout.C_CONTIGUOUS | cpython_layout.ALIGNED | cpython_layout.WRITEABLE


def text() -> str:
    """The module."""
    words = "".join(
        f"  %at.{name} = getelementptr i64, ptr %table, i64 {k}\n"
        f"  %{name} = load {_kind(name)}, ptr %at.{name}\n"
        for k, name in enumerate(_WORDS)
    )
    return llvm_types.read(__file__, words=words, wanted_flags=_FLAGS, **cpython_layout.OFFSETS)


@functools.cache
def _address() -> int:
    name = "wengert_write_arguments"
    return loaded(f"{execution_engine.heading()}\n{text()}", {}, (name,))[name]


def _kind(name: str) -> str:
    return "i64" if name in ("arguments", "results", "is_tuple", "written") else "ptr"


def writing_entry(
    target: Callable[..., Any],
    miss: Callable[..., Any],
    missed: object,
    itemsizes: Sequence[int],
    written: Sequence[int],
    results: int,
    is_tuple: bool,
) -> Callable[..., Any]:
    """An entry point that writes the last items of another one's results into arguments.

    Parameters
    ----------
    target : callable
        Returns a tuple: the results, then one new value for each written argument.
    miss : callable
        Called with the same arguments if this entry point, or `target`, does not support them.
    missed : object
        What `target` returns for calls that it does not support.
    itemsizes : sequence of int
        The bytes of an element of each argument; 0 if it is not an array.
    written : sequence of int
        The positions of the arguments that are written to.
    results : int
        The number of results.
    is_tuple : bool
        Whether the results are returned as a tuple; otherwise the only one, or None.
    """
    sizes, places = np.array(itemsizes, np.int64), np.array(written, np.int64)
    own = {
        "target": id(target), "miss": id(miss), "missed": id(missed), "arguments": len(sizes),
        "results": results, "is_tuple": int(is_tuple), "written": len(places),
        "sizes": sizes.ctypes.data, "places": places.ctypes.data,
    }  # fmt: skip
    for name in _FUNCTIONS:
        own[name] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    own |= {name: id(x) for name, x in _OBJECTS.items()}
    table = np.array([own[name] for name in _WORDS], np.int64)
    table.flags.writeable = sizes.flags.writeable = places.flags.writeable = False
    definition = Definition(b"entry", _address(), FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    # The table comes first, where the entry point looks for it.
    owned = (table, definition, sizes, places, target, miss, missed)
    made: Callable[..., Any] = new(ctypes.addressof(definition), owned, None)
    return made
