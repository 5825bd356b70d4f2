"""Python function objects of entry points, also of those that modify their arguments.

    make_entry         the function object of a program
    writing_entry      that of a program that modifies its array arguments
    function_object    any of machine code

The function object holds a tuple: the table of addresses (ports.py), the machine code, and the
callables of the slow paths.  The garbage collector does not clear tuples, so these live as long as
the function can be called.

Routines that all entry points share are compiled once per process and called by address; inlined,
they would be most of the code and compile time of each entry point:

    new           allocates an array, with the recycling allocator if it is large
    drop          releases objects after a failure
    make_tuple    makes the tuple of results

The entry point of a program that modifies arguments returns the results followed by the new values
of the arguments.  `writing_entry` calls it, copies these values into the arguments, and returns the
results.  It serves calls whose modified arguments are writable, C-contiguous arrays that share no
memory with other arguments; a run that fails modifies nothing.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, BackendError, at, user_line

from ..ir import execution_engine, llvm_types
from ..ir.execution_engine import Code
from ..ir.ir_builder import ModuleBuilder
from ..runtime.runtime_library import loaded
from ..tuning import thresholds
from . import cpython_layout
from .cpython_layout import ITEMS
from .entry_builder import EntryBuilder
from .ports import SHARED, WORDS, CallInterface, TableLayout

FASTCALL = 0x80 | 0x02  # METH_FASTCALL | METH_KEYWORDS, methodobject.h

_OPEN = np.zeros(1, np.int64)
_OPEN.flags.writeable = False


class Definition(ctypes.Structure):
    """PyMethodDef of CPython's C API."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def function_object(
    address: int, table: Any, *owned: Any, name: str = "entry", doc: str | None = None
) -> Callable[..., Any]:
    """A Python function of machine code, which keeps its table and other objects alive."""
    text = None if doc is None else doc.encode()
    definition = Definition(name.encode(), address, FASTCALL, text)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    # The machine code looks for the table in the first item.
    made: Callable[..., Any] = new(ctypes.addressof(definition), (table, definition, *owned), None)
    return made


def is_available() -> bool:
    """Whether entry points can be made for this interpreter: CPython with the GIL, NumPy 2."""
    return cpython_layout.is_known()


def make_entry(
    program: CallInterface,
    code: Code,
    miss: Callable[..., Any],
    failed: Callable[..., Any],
    callback_error: Callable[[], Any] | None = None,
    *,
    handler: Any = None,
    gate: Any = None,
    symbol: str = "entry",
    name: str = "entry",
    doc: str | None = None,
) -> Callable[..., Any]:
    """A Python function that runs a program with the overhead of one C call.

    Parameters
    ----------
    program : CallInterface
        The one passed to `entry_text`, or one with the same text.
    code : Code
        The module with the entry point, in memory.
    miss : callable
        Called with the same arguments, including keywords, if they are not those that the program
        was compiled for; its result or exception is that of the call. May be another entry point.
    failed : callable
        Called with the same arguments if the run has no result (status 1 or an unknown status).
    callback_error : callable, optional
        Called without arguments if a host callback has stored an exception (status 2), to raise
        it; by default `failed` is called.
    handler : capsule, optional
        NumPy memory handler (NEP 49) that allocates large results.
    gate : numpy.ndarray, optional
        One int64. While it is nonzero all calls go to `miss`: this disables the entry point while
        operations are recorded, or permanently.
    symbol : str
        The name of the entry point in the module.
    name, doc : str
        Of the function object.

    Returns
    -------
    builtin_function_or_method
        Takes one positional argument for each of ``program.inputs``; other calls go to `miss`.

    Raises
    ------
    BackendError
        The interpreter is not supported; `is_available` can be asked beforehand.

    Notes
    -----
    Thread-safe and reentrant. Exceptions are raised only by the given callables, and by NumPy if
    results cannot be allocated.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.backends import backend
    >>> graph = wg.trace(np.square)(wg.spec("n"))
    >>> square = backend("llvm").entry(graph, single=True, otherwise=print)
    >>> square(np.array([1.0, 2.0, 3.0]))
    array([1., 4., 9.])
    >>> square([1.0, 2.0])  # a list takes the slow path, here print
    [1.0, 2.0]
    """
    if not is_available():
        raise BackendError(
            "native entry points require CPython with the GIL, 64 bits, and NumPy 2; the objects "
            "of this interpreter have another memory layout. Call the program through Python"
            f"{at(user_line())}."
        )
    callables = {
        "miss": miss, "failed": failed, "callback_error": callback_error, "handler": handler
    }  # fmt: skip
    own = {name: 0 if x is None else id(x) for name, x in callables.items()}
    gate = _OPEN if gate is None else gate
    if gate.dtype != np.int64 or not gate.flags.aligned or gate.size != 1:
        raise ArgumentError(
            f"a gate must be an array of one int64; {gate.dtype}{list(gate.shape)} was given. "
            f"Use np.zeros(1, np.int64){at(user_line())}."
        )
    own["gate"] = gate.ctypes.data
    table, owners = TableLayout(program).filled({**own, **shared()}, program)
    owned = (code, *callables.values(), gate, *owners)
    return function_object(code.address(symbol), table, *owned, name=name, doc=doc)


_NAMES = {name: f"wengert_entry_{name}" for name in SHARED}


@functools.cache
def shared() -> dict[str, int]:
    """The addresses of the functions, by name."""
    # Compiled without optimization: they mostly call other functions.
    found = loaded("", {}, _NAMES.values(), cold=text())
    return {name: found[symbol] for name, symbol in _NAMES.items()}


def text() -> str:
    """The module of the functions."""
    module = ModuleBuilder()
    _new(module)
    _drop(module)
    _make_tuple(module)
    return module.text(execution_engine.heading())


def _new(module: ModuleBuilder) -> None:
    """ptr new(ptr table, ptr dtype, i32 ndim, ptr lengths, i64 bytes); null if it raised."""
    arguments = [("ptr", "dtype"), ("i32", "ndim"), ("ptr", "lengths"), ("i64", "bytes")]
    builder = EntryBuilder(module, _NAMES["new"], [("ptr", "table"), *arguments], "ptr", WORDS)
    handler = builder.word("handler")
    large = builder.value(f"icmp sge i64 %bytes, {thresholds.pooled_result_bytes}")
    has_handler = builder.value(f"icmp ne ptr {handler}, null")
    builder.branch(builder.value(f"and i1 {large}, {has_handler}"), "pool", "plain")
    builder.label("plain")
    builder.write(f"ret ptr {_empty(builder)}")
    builder.label("pool")
    before = builder.made("PyDataMem_SetHandler", "none", f"ptr {handler}")
    made = _empty(builder)
    builder.call("PyErr_Clear", "void")  # MemoryError is raised again below
    ours = builder.call("PyDataMem_SetHandler", "ptr", f"ptr {before}")
    builder.call("Py_DecRef", "void", f"ptr {before}")
    builder.call("Py_DecRef", "void", f"ptr {ours}")
    created, restored = (builder.value(f"icmp ne ptr {x}, null") for x in (made, ours))
    builder.unless(builder.value(f"and i1 {created}, {restored}"), "bad")
    builder.write(f"ret ptr {made}")
    builder.label("bad")
    builder.call("Py_DecRef", "void", f"ptr {made}")
    builder.call("PyErr_NoMemory", "ptr")
    builder.go("none")
    builder.label("none")
    builder.write("ret ptr null")
    module.add(builder.function)


def _empty(builder: EntryBuilder) -> str:
    """A new uninitialized array; null, with an exception, if it cannot be allocated."""
    builder.call("Py_IncRef", "void", "ptr %dtype")  # the call takes a reference
    array = (f"ptr {builder.word('ndarray')}", "ptr %dtype", "i32 %ndim", "ptr %lengths")
    defaults = ("ptr null", "ptr null", "i32 0", "ptr null")  # strides, data, flags, prototype
    return builder.call("PyArray_NewFromDescr", "ptr", *array, *defaults)


def _drop(module: ModuleBuilder) -> None:
    """void drop(ptr table, ptr objects, i64 count): release objects; null is skipped."""
    arguments = [("ptr", "table"), ("ptr", "objects"), ("i64", "count")]
    builder = EntryBuilder(module, _NAMES["drop"], arguments, "void", WORDS)
    release = builder.word("Py_DecRef")
    with builder.section.loop("0", "%count") as (body, k):
        place = body.value(f"getelementptr ptr, ptr %objects, i64 {k}")
        body.write(f"call void {release}(ptr {body.value(f'load ptr, ptr {place}')})")
    builder.write("ret void")
    module.add(builder.function)


def _make_tuple(module: ModuleBuilder) -> None:
    """ptr make_tuple(ptr table, ptr objects, i64 count): a tuple that takes the references."""
    arguments = [("ptr", "table"), ("ptr", "objects"), ("i64", "count")]
    builder = EntryBuilder(module, _NAMES["make_tuple"], arguments, "ptr", WORDS)
    made = builder.made("PyTuple_New", "none", "i64 %count")
    items = builder.at(made, ITEMS)
    with builder.section.loop("0", "%count") as (body, k):
        source = body.value(f"getelementptr ptr, ptr %objects, i64 {k}")
        target = body.value(f"getelementptr ptr, ptr {items}, i64 {k}")
        body.write(f"store ptr {body.value(f'load ptr, ptr {source}')}, ptr {target}")
    builder.write(f"ret ptr {made}")
    builder.label("none")
    builder.write("ret ptr null")
    module.add(builder.function)


# ---- written arguments ---------------------------------------------------------------------------


_FUNCTIONS = ("PyObject_Vectorcall", "PyTuple_GetSlice", "Py_DecRef", "Py_IncRef")
_OBJECTS: dict[str, Any] = {"ndarray": np.ndarray, "none": None}
_TABLE_WORDS = (
    "target", "miss", "missed", "arguments", "results", "is_tuple", "written", "sizes", "places",
    *_FUNCTIONS, *_OBJECTS,
)  # fmt: skip
_FLAGS = cpython_layout.C_CONTIGUOUS | cpython_layout.ALIGNED | cpython_layout.WRITEABLE


def writing_text() -> str:
    """The module."""
    words = "".join(
        f"  %at.{name} = getelementptr i64, ptr %table, i64 {k}\n"
        f"  %{name} = load {_kind(name)}, ptr %at.{name}\n"
        for k, name in enumerate(_TABLE_WORDS)
    )
    return llvm_types.read(__file__, words=words, wanted_flags=_FLAGS, **cpython_layout.OFFSETS)


@functools.cache
def _writing_address() -> int:
    name = "wengert_write_arguments"
    return loaded(f"{execution_engine.heading()}\n{writing_text()}", {}, (name,))[name]


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
        own[name] = cpython_layout.c_address(getattr(ctypes.pythonapi, name))
    own |= {name: id(x) for name, x in _OBJECTS.items()}
    table = np.array([own[name] for name in _TABLE_WORDS], np.int64)
    table.flags.writeable = sizes.flags.writeable = places.flags.writeable = False
    return function_object(_writing_address(), table, sizes, places, target, miss, missed)
