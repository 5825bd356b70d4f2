"""Dispatch: one entry point for several programs, chosen by types, dtypes, ranks and layouts.

A compiled function has a program for each signature with which it is called.  The dispatching
entry point compares the properties of the arguments that distinguish these signatures, puts keyword
arguments in order, and calls the entry point of the program, which checks the rest.  One function
serves all compiled functions; it is compiled once.

    Route         a signature, and its entry point
    dispatching   makes the function object
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..ir import execution_engine, llvm_types
from ..runtime.runtime_library import loaded
from . import cpython_layout
from .python_function import FASTCALL, Definition

LAYOUT = cpython_layout.C_CONTIGUOUS | cpython_layout.F_CONTIGUOUS | cpython_layout.ALIGNED
_TABLE = ("miss", "count", "routes", "PyObject_Vectorcall")
# Words before the names: the target, the numbers of positional and of keyword arguments, and the
# length of the route in words.
_HEAD = 4


class Route(NamedTuple):
    """A signature of a call, and the entry point for it.

    Attributes
    ----------
    positional : int
        The number of positional arguments.
    names : tuple of str
        The keywords, in the order of the call.
    kinds : tuple of (type, int, int, int)
        The type of each argument and, of an array, its dtype number, rank and layout flags.
    order : tuple of int
        The arguments in the order in which the entry point takes them.
    entry : callable
    """

    positional: int
    names: tuple[str, ...]
    kinds: tuple[tuple[type, int, int, int], ...]
    order: tuple[int, ...]
    entry: Callable[..., Any]

    def words(self) -> list[int]:
        """The route as the words that native code reads."""
        words = [id(self.entry), self.positional, len(self.names), 0, *map(id, self.names)]
        for cls, *array in self.kinds:
            words += [id(cls), *array]
        words += self.order
        words[3] = len(words)
        return words


@functools.cache
def _address() -> int:
    text = llvm_types.read(__file__, head=_HEAD, layout=LAYOUT, **cpython_layout.OFFSETS)
    text = f"{execution_engine.heading()}\n{text}"
    return loaded(text, {}, ("wengert_dispatch",))["wengert_dispatch"]


def dispatching(routes: Sequence[Route], miss: Callable[..., Any]) -> Callable[..., Any]:
    """A Python function that calls the entry point of the first route that matches a call.

    Parameters
    ----------
    miss : callable
        Called with the same arguments if no route matches.
    """
    words = np.array([w for route in routes for w in route.words()], np.int64)
    call = ctypes.cast(ctypes.pythonapi.PyObject_Vectorcall, ctypes.c_void_p).value
    table = np.array([id(miss), len(routes), words.ctypes.data, call], np.int64)
    assert len(table) == len(_TABLE)
    table.flags.writeable = words.flags.writeable = False
    definition = Definition(b"entry", _address(), FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    # The entry point looks for the table in the first item.
    owned = (table, definition, words, tuple(routes), miss)
    made: Callable[..., Any] = new(ctypes.addressof(definition), owned, None)
    return made
