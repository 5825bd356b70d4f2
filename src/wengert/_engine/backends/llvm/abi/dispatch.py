"""Dispatch: one entry point for several programs, by types, dtypes, ranks and layouts.

    Route             a signature, and its entry point
    dispatching       makes the function object
    layout_of         the layout of an array
    LayoutDispatch    called by an entry point for C order when an array has another layout

A compiled function has a program for each signature with which it is called.  The dispatching
entry point compares the properties of the arguments that distinguish these signatures, puts keyword
arguments in order, and calls the entry point of the program, which checks the rest.  One function
serves all compiled functions; it is compiled once.

Programs are compiled for C-contiguous arrays.  Arrays in Fortran order and strided views are copied
in the first calls; if such calls recur, a program for that layout is compiled.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.spec import Spec
from wengert._engine.core.thread_state import lock

from ..ir import execution_engine, llvm_types
from ..runtime.runtime_library import loaded
from ..tuning import thresholds
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


_COUNTED = 256  # at most so many layouts have their calls counted


def layout_of(array: Any, spec: Spec) -> str:
    """The layout of an array: ``C``, ``F`` or ``S`` (lowering/leaves.py); ``-`` if copied."""
    if type(array) is not np.ndarray or not spec.shape:
        return "C"
    if array.dtype != spec.dtype or not array.flags.aligned or array.ndim != len(spec.shape):
        return "-"
    if array.flags.c_contiguous:
        return "C"
    if array.flags.f_contiguous:
        return "F"
    aligned = all(stride % array.itemsize == 0 for stride in array.strides)
    return "S" if aligned else "-"


class LayoutDispatch:
    """Compiles programs for layouts that recur, and forwards their calls to them.

    Parameters
    ----------
    specs : sequence of Spec
        The arguments of the C-order program.
    make : callable
        ``make(layouts)`` returns an entry point, or None.
    otherwise : callable
        Called for all other arguments.
    """

    def __init__(
        self,
        specs: Sequence[Spec],
        make: Callable[[str], Callable[..., Any] | None],
        otherwise: Callable[..., Any],
    ) -> None:
        self._specs, self._make, self._otherwise = tuple(specs), make, otherwise
        self._entries: dict[str, Callable[..., Any]] = {}
        self._counts: dict[str, int] = {}
        self._lock = lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program for the layouts of these arguments, or `otherwise`."""
        if kwargs or len(args) != len(self._specs):
            return self._otherwise(*args, **kwargs)
        layouts = "".join(map(layout_of, args, self._specs))
        if "-" in layouts or not ("F" in layouts or "S" in layouts):
            return self._otherwise(*args)
        entry = self._entries.get(layouts)
        if entry is None:
            entry = self._count_call(layouts)
        return entry(*args)

    def _count_call(self, layouts: str) -> Callable[..., Any]:
        with self._lock:
            count = self._counts.get(layouts, 0) + 1
            if len(self._counts) < _COUNTED or layouts in self._counts:
                self._counts[layouts] = count
            if count < thresholds.layout_calls or len(self._entries) >= thresholds.layout_programs:
                return self._otherwise
            if layouts not in self._entries:
                self._entries[layouts] = self._make(layouts) or self._otherwise
            return self._entries[layouts]
