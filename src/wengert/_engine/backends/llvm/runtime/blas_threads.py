"""How many threads SciPy's BLAS uses for one call.

    symbols      wengert_blas_enter(i64 flops, i64 threads) before it, wengert_blas_leave() after
    functions    the addresses of BLAS's functions for this, if it has them

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

from wengert._engine.core.thread_state import lock

from ..ir import execution_engine
from ..ir.ir_builder import Function, ModuleBuilder, Section
from ..ir.processors import foreign
from ..tuning import thresholds
from . import runtime_library
from .library_symbols import extension
from .os_calls import emit_locks, load, store

_SETTERS = (
    "scipy_openblas_set_num_threads",
    "scipy_openblas_set_num_threads64_",
    "openblas_set_num_threads",
)
_NAMES = ("wengert_blas_enter", "wengert_blas_leave", "wengert_blas_start")
_USERS, _BEFORE = 1, 2  # words of the state; the first is its lock
_LOCK = lock()


def symbols() -> dict[str, int]:
    """Addresses by name, to be passed to `execution_engine.Code` with programs that declare them.

    Examples
    --------
    >>> sorted(symbols())
    ['wengert_blas_enter', 'wengert_blas_leave', 'wengert_blas_start']
    """
    if foreign() is not None:
        return dict.fromkeys(_NAMES, 0)
    with _LOCK:
        return dict(_started())


@functools.cache
def _started() -> dict[str, int]:
    module = ModuleBuilder()
    emit_blas_threads(module, bool(functions()))
    text = module.text(execution_engine.heading())  # negligible compared to a BLAS call
    addresses = runtime_library.loaded("", functions(), _NAMES, cold=text)
    runtime_library.call_in_child(addresses["wengert_blas_start"])
    return addresses


@functools.cache
def functions() -> dict[str, int]:
    """The addresses of "blas_set" and "blas_get"; empty if BLAS has no such functions."""
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
    """Emit the functions; they do nothing if BLAS cannot set its number of threads."""
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
