"""Entry points before others: dispatch by arguments, and guards of captured values.

    dispatching       the function object for several signatures, each a `Route`
    layout_of         the layout of an array
    LayoutDispatch    called by an entry point for C order when an array has another layout

A compiled function has a program for each signature with which it is called.  The dispatching
entry point compares the properties of the arguments that distinguish these signatures, puts keyword
arguments in order, and calls the entry point of the program, which checks the rest.

Programs are compiled for C-contiguous arrays.  Arrays in Fortran order and strided views are copied
in the first calls; if such calls recur, a program for that layout is compiled.

    guarded_entry, guard_check    the function objects that check records (`RECORD`)
    Load, Act                     what a record loads, and how the loaded value is used
    is_available, has_versions    whether this interpreter's objects have the expected layout
    offset_of_slot                where an object has the value of a member of ``__slots__``

A guarded entry point goes through a list of records: each loads a pointer (from a cell, a dict, a
list) and compares it with its earlier value, or loads an array to be passed on.  If all comparisons
succeed it calls the entry point of the program with its own arguments and these arrays, otherwise
another callable.

One function of each kind (dispatch.ll, capture_guards.ll) serves all programs; it is compiled once.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path
from types import MemberDescriptorType
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.cache import disk_cache
from wengert._engine.core.spec import Spec
from wengert._engine.core.thread_state import lock

from ..ir import execution_engine, llvm_types
from ..runtime.runtime_library import loaded
from ..tuning import thresholds
from . import cpython_layout
from .python_function import function_object

# ---- dispatch ------------------------------------------------------------------------------------


LAYOUT = cpython_layout.C_CONTIGUOUS | cpython_layout.F_CONTIGUOUS | cpython_layout.ALIGNED
_DISPATCH_WORDS = ("miss", "count", "routes", "PyObject_Vectorcall")
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


def dispatch_text() -> str:
    """The module of the dispatching entry point."""
    path = Path(__file__).with_name("dispatch")
    return llvm_types.read(path, head=_HEAD, layout=LAYOUT, **cpython_layout.OFFSETS)


@functools.cache
def _dispatch_address() -> int:
    text = f"{execution_engine.heading()}\n{dispatch_text()}"
    return loaded(text, {}, ("wengert_dispatch",))["wengert_dispatch"]


def dispatching(routes: Sequence[Route], miss: Callable[..., Any]) -> Callable[..., Any]:
    """A Python function that calls the entry point of the first route that matches a call.

    Parameters
    ----------
    miss : callable
        Called with the same arguments if no route matches.
    """
    words = np.array([w for route in routes for w in route.words()], np.int64)
    call = cpython_layout.c_address(ctypes.pythonapi.PyObject_Vectorcall)
    table = np.array([id(miss), len(routes), words.ctypes.data, call], np.int64)
    assert len(table) == len(_DISPATCH_WORDS)
    table.flags.writeable = words.flags.writeable = False
    return function_object(_dispatch_address(), table, words, tuple(routes), miss)


_COUNTED = 256  # at most so many layouts have their calls counted


def layout_of(array: Any, spec: Spec) -> str:
    """The layout of an array: ``C``, ``F`` or ``S`` (leaves_and_views.py); ``-`` if copied."""
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


# ---- guards of captured values -------------------------------------------------------------------


# Of the descriptor of a member: its definition, and the offset there (PyMemberDef).
_MEMBER, _OFFSET = 40, 16


@functools.cache
def _guard_addresses() -> dict[str, int]:
    names = ("wengert_guarded_enter", "wengert_guarded_check")
    whole = f"{execution_engine.heading()}\n{guards_text()}"
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
        words[name] = cpython_layout.c_address(getattr(ctypes.pythonapi, name))
    words |= {name: id(x) for name, x in OBJECTS.items()}
    table = np.array([words[name] for name in WORDS], np.int64)
    table.flags.writeable = False
    return function_object(_guard_addresses()[symbol], table, records, *owned)


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
    return "".join([*map(_word, words.split()), *map(_number, numbers.split())])


def guards_text() -> str:
    """The module: ``hold`` (checks all records), a guarded entry point, and a check."""
    pointers = ("holder", "expected")
    return llvm_types.read(
        Path(__file__).with_name("capture_guards"),
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
