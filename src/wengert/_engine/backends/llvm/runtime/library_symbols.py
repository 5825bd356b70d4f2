"""Addresses of functions of libraries, and the number of threads of SciPy's BLAS.

    special       a special function by SciPy's name and its operand types: "jv", "dd"
    loop          the inner loop of a SciPy ufunc
    address_of    any of them by its symbol in an LLVM module: "blas.dgemm", "lapack.dgesv",
                  "special.gammaln", "argsort.stable.f8", "random.random_standard_normal_fill"
    extension     a compiled module by its full name: "scipy.linalg.cython_blas"

SciPy's Cython modules export their functions in a table `__pyx_capi__` of capsules, whose names are
C declarations.  NumPy's C API has a table for each dtype, with its sorting functions; its random
distributions are functions of a C library.  None of them needs Python or the GIL.

Native programs need addresses of BLAS and LAPACK, which two compiled modules export.  Importing
them the usual way runs `scipy.linalg` first: 0.15 s, for a program that is compiled in 0.05 s.
They do not depend on it, so they are loaded from their files and removed from `sys.modules`: a
later import of SciPy's package behaves as always, and finds the same module.

    blas_symbols      wengert_blas_enter(i64 flops, i64 threads), wengert_blas_leave()
    blas_functions    the addresses of BLAS's functions for this, if it has them

A product of 128 x 128 matrices takes 68 us on one thread, 55 us on two idle cores, and some
milliseconds on a busy machine, because the two threads wait for each other at each step and one of
them is not scheduled (256 x 256: 34 ms, and 1.5 ms on one thread).  So several threads are used
from `blas_parallel_flops` operations on (tuning.py), and never more than are set for BLAS already.

The number of threads is a setting of the whole library.  If calls from several Python threads
overlap, the first sets it and the last restores it.  SciPy's wheels contain OpenBLAS, whose
functions are found through the library that SciPy links to; with another BLAS (MKL, Accelerate)
nothing is changed.  This is a separate native module because most programs call no BLAS.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

import numpy as np

from wengert._engine.core.message_order import MpiLibrary
from wengert._engine.core.thread_state import lock

from ..ir import execution_engine
from ..ir.execution_engine import foreign
from ..ir.ir_builder import Function, ModuleBuilder, Section
from ..tuning import thresholds
from . import runtime_library
from .os_calls import emit_locks, load, store

_LOCK = lock()


def extension(name: str) -> ModuleType:
    """A compiled module of SciPy.

    Parameters
    ----------
    name : str
        Its full name.

    Returns
    -------
    module
        Imported in the usual way if it cannot be loaded alone.

    Examples
    --------
    >>> "dgemm" in extension("scipy.linalg.cython_blas").__pyx_capi__
    True
    """
    with _LOCK:
        package = name.rpartition(".")[0]
        # `import scipy` may set the search path of libraries (Windows), so it comes first.
        if package not in sys.modules and os.name == "posix":
            found = _from_file(name)
            if found is not None:
                return found
        return importlib.import_module(name)


def _from_file(name: str) -> ModuleType | None:
    """The module loaded from its file; None if that fails."""
    top, *folders, short = name.split(".")
    base = importlib.util.find_spec(top)
    for folder in (base.submodule_search_locations or []) if base else []:
        file = PathFinder.find_spec(short, [os.path.join(folder, *folders)])
        if file is None or file.origin is None:
            continue
        spec = importlib.util.spec_from_file_location(name, file.origin)
        if spec is None or spec.loader is None:
            continue
        try:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        except ImportError:
            return None
        finally:
            sys.modules.pop(name, None)  # compiled modules add themselves
        return module
    return None


_MODULES = {
    "blas": "scipy.linalg.cython_blas",
    "lapack": "scipy.linalg.cython_lapack",
    "special": "scipy.special.cython_special",
}
_TYPE_CODES = {
    "double": "d",
    "float": "f",
    "long": "l",
    "Py_ssize_t": "l",
    "int": "i",
    "__pyx_t_double_complex": "D",
    "__pyx_t_float_complex": "F",
}


@functools.cache
def _table(library: str) -> dict[str, Any]:
    """The capsules of a library, which is loaded at the first use."""
    module = _MODULES[library]
    load = extension if "linalg" in module else importlib.import_module
    return dict(load(module).__pyx_capi__)


def _opened(capsule: Any) -> tuple[int, str]:
    """The address in a capsule, and the C declaration."""
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    name = name_of(capsule)
    return int(pointer_of(capsule, name)), name.decode()


@functools.cache
def _specials() -> dict[tuple[str, str], tuple[str, int]]:
    """The name in the table and the address, for each name and operand types."""
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for key, capsule in _table("special").items():
        address, declaration = _opened(capsule)
        result, _, rest = declaration.partition("(")
        types = [t.strip() for t in rest.rstrip(")").split(",") if "__pyx_skip" not in t]
        if result.strip() not in _TYPE_CODES or not all(t in _TYPE_CODES for t in types):
            continue  # results are returned by pointer
        name = key
        if key.startswith("__pyx_fuse_"):
            name = key.removeprefix("__pyx_fuse_").lstrip("0123456789_")
        codes = "".join(_TYPE_CODES[t] for t in types)
        found.setdefault((name, codes), (key, address))
    return found


def special(name: str, types: str) -> tuple[str, int] | None:
    """The symbol and the address of a special function; None if there is none.

    Parameters
    ----------
    name : str
        As in scipy.special: "gammaln", "jv".
    types : str
        The type codes of its operands: d, f, D, F for double, float, and complex; l for integers.

    Notes
    -----
    The C functions take one more argument, an int that must be 0; the result has the precision of
    the operands.
    """
    found = _specials().get((name, types))
    return None if found is None else (f"special.{found[0]}", found[1])


def loop(ufunc: np.ufunc, dtypes: tuple[Any, ...]) -> tuple[str, int, int] | None:
    """The inner loop of a SciPy ufunc for given dtypes; None if there is none.

    Returns
    -------
    symbol : str
    function, data : int
        The address of ``void loop(char **args, npy_intp *dims, npy_intp *steps, void *data)``, and
        its `data`.

    Notes
    -----
    They are read from the ufunc object (numpy/ufuncobject.h), after its argument counts.
    """
    signature = "".join(d.char for d in dtypes)
    names = [t.replace("->", "") for t in ufunc.types]
    counts = tuple((ctypes.c_int * 3).from_address(id(ufunc) + 16))
    if signature not in names or counts != (ufunc.nin, ufunc.nout, ufunc.nargs):
        return None
    k = names.index(signature)
    table = (ctypes.c_void_p * 2).from_address(id(ufunc) + 32)
    function, data = [ctypes.c_void_p.from_address(int(t or 0) + 8 * k).value for t in table]
    if not function or not data:
        return None
    return f"ufunc.{ufunc.__name__}.{signature}", function, data


@functools.cache
def of_flags() -> dict[str, int]:
    """C's function that clears the floating-point exception flags, if it is exported."""
    if os.name != "posix":
        return {}
    function = getattr(ctypes.CDLL(None), "feclearexcept", None)
    return {} if function is None else {"feclearexcept": _address_of(function)}


def _address_of(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


# The index in NumPy's C API of the function that returns the table of a dtype, and the index of the
# argsort functions in that table; both are part of the ABI of NumPy 2.
_TABLE_OF_DTYPE, _FIRST_ARGSORT = 365, 36
SORTS = ("quicksort", "heapsort", "stable")


@functools.cache
def _argsort(kind: str, dtype: str) -> int:
    """``int argsort(values, positions, count, NULL)``, for contiguous arrays."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    api = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    functions = ctypes.cast(get(api, None), ctypes.POINTER(ctypes.c_void_p))
    table_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(functions[_TABLE_OF_DTYPE])
    table = ctypes.cast(table_of(np.dtype(dtype)), ctypes.POINTER(ctypes.c_void_p))
    return int(table[_FIRST_ARGSORT + SORTS.index(kind)] or 0)


@functools.cache
def _distribution(name: str) -> int:
    """A function of numpy/random/distributions.h, if this build of NumPy exports it."""
    library = ctypes.CDLL(importlib.import_module("numpy.random._generator").__file__)
    try:
        return _address_of(getattr(library, name))
    except AttributeError as error:
        raise KeyError(name) from error


def address_of(symbol: str) -> int:
    """The address of an external function, by its symbol in an LLVM module: ``blas.dgemm``.

    Raises
    ------
    KeyError
        There is no such function.
    """
    library, _, name = symbol.partition(".")
    if library == "mpi":
        return MpiLibrary.address_of(name)
    if library == "argsort":
        return _argsort(*name.split("."))
    if library == "random":
        return _distribution(name)
    return _opened(_table(library)[name])[0]


# ---- threads of BLAS -----------------------------------------------------------------------------


_SETTERS = (
    "scipy_openblas_set_num_threads",
    "scipy_openblas_set_num_threads64_",
    "openblas_set_num_threads",
)
_NAMES = ("wengert_blas_enter", "wengert_blas_leave", "wengert_blas_start")
_USERS, _BEFORE = 1, 2  # words of the state; the first is its lock
_BLAS_LOCK = lock()


def blas_symbols() -> dict[str, int]:
    """Addresses by name, to be passed to `execution_engine.Code` with programs that declare them.

    Examples
    --------
    >>> sorted(blas_symbols())
    ['wengert_blas_enter', 'wengert_blas_leave', 'wengert_blas_start']
    """
    if foreign() is not None:
        return dict.fromkeys(_NAMES, 0)
    with _BLAS_LOCK:
        return dict(_started())


@functools.cache
def _started() -> dict[str, int]:
    module = ModuleBuilder()
    emit_blas_threads(module, bool(blas_functions()))
    text = module.text(execution_engine.heading())  # negligible compared to a BLAS call
    addresses = runtime_library.loaded("", blas_functions(), _NAMES, cold=text)
    runtime_library.call_in_child(addresses["wengert_blas_start"])
    return addresses


@functools.cache
def blas_functions() -> dict[str, int]:
    """The addresses of "blas_set" and "blas_get"; empty if BLAS has no such blas_functions."""
    module = extension("scipy.linalg.cython_blas")
    try:
        library = ctypes.CDLL(str(module.__file__))  # and the libraries that it links to
    except OSError:
        return {}
    for setter in _SETTERS:
        getter = setter.replace("_set_", "_get_")
        if hasattr(library, setter) and hasattr(library, getter):
            pair = {"blas_set": setter, "blas_get": getter}
            return {
                name: ctypes.cast(library[symbol], ctypes.c_void_p).value or 0
                for name, symbol in pair.items()
            }
    return {}


def emit_blas_threads(module: ModuleBuilder, available: bool) -> None:
    """Emit the blas_functions; they do nothing if BLAS cannot set its number of threads."""
    arguments = [("i64", "flops"), ("i64", "threads")]
    enter = Function(module, "wengert_blas_enter", arguments, linkage="")
    leave = Function(module, "wengert_blas_leave", [], linkage="")
    reset = Function(module, "wengert_blas_start", [], linkage="")
    if available:
        emit_locks(module)
        module.declare("blas_set", "void", ["i32"])
        module.declare("blas_get", "i32", [])
        module.parts["blas"] = "@blas = internal global [8 x i64] zeroinitializer, align 64"
        _enter(enter.body)
        _leave(leave.body)
        _reset(reset.body)
    for function in (enter, leave, reset):
        function.body.write("ret void")
        module.add(function)


def _enter(s: Section) -> None:
    small = s.value(f"icmp slt i64 %flops, {thresholds.blas_parallel_flops}")
    wanted = s.value(f"trunc i64 {s.value(f'select i1 {small}, i64 1, i64 %threads')} to i32")
    smaller = s.function.module.declare("llvm.smin.i32", "i32", ["i32", "i32"])
    s.write("call void @acquire(ptr @blas)")
    users = load(s, "@blas", _USERS)
    with s.when(s.value(f"icmp eq i64 {users}, 0")) as first:
        before = first.value("call i32 @blas_get()")
        store(first, first.value(f"zext i32 {before} to i64"), "@blas", _BEFORE)
        # Never more than are set for BLAS already.
        chosen = first.value(f"call i32 {smaller}(i32 {wanted}, i32 {before})")
        with first.when(first.value(f"icmp ne i32 {before}, {chosen}")) as other:
            other.write(f"call void @blas_set(i32 {chosen})")
    store(s, s.value(f"add i64 {users}, 1"), "@blas", _USERS)
    s.write("call void @release(ptr @blas)")


def _leave(s: Section) -> None:
    s.write("call void @acquire(ptr @blas)")
    left = s.value(f"sub i64 {load(s, '@blas', _USERS)}, 1")
    store(s, left, "@blas", _USERS)
    with s.when(s.value(f"icmp eq i64 {left}, 0")) as last:
        before = last.value(f"trunc i64 {load(last, '@blas', _BEFORE)} to i32")
        now = last.value("call i32 @blas_get()")
        with last.when(last.value(f"icmp ne i32 {now}, {before}")) as other:
            other.write(f"call void @blas_set(i32 {before})")
    s.write("call void @release(ptr @blas)")


def _reset(s: Section) -> None:
    """In the child of a fork no BLAS call is active: restore the number of threads."""
    users = load(s, "@blas", _USERS)
    with s.when(s.value(f"icmp ne i64 {users}, 0")) as some:
        before = some.value(f"trunc i64 {load(some, '@blas', _BEFORE)} to i32")
        some.write(f"call void @blas_set(i32 {before})")
    store(s, "0", "@blas", _USERS)
    s.write("call void @release(ptr @blas)")
