"""The native module of the runtime, compiled once per process, and arrays that own its memory.

    symbols    addresses of the functions that programs may declare, by name
    function   one of them, to be called from Python
    loaded     loads a module that is never unloaded: the addresses of its functions
    handler        the capsule of NumPy's memory handler, which recycles memory (allocator.py)
    set_handler    the function that makes it, or another, that of new arrays

Arrays are freed by its code until the process ends, after Python has finalized its modules, and its
sleeping threads return into it: so the code is made immortal when it is loaded.

The child of a fork has one thread, so it starts with a new thread pool, and all locks are released.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.thread_state import lock

from ..cache import cached_object
from ..ir import execution_engine
from ..ir.execution_engine import foreign
from ..ir.ir_builder import ModuleBuilder

if TYPE_CHECKING:
    from . import allocator, settings, thread_pool
else:  # most programs need no runtime
    allocator = LazyModule("wengert._engine.backends.llvm.runtime.allocator")
    settings = LazyModule("wengert._engine.backends.llvm.runtime.settings")
    thread_pool = LazyModule("wengert._engine.backends.llvm.runtime.thread_pool")

_ADDRESS, _COUNT = ctypes.c_void_p, ctypes.c_int64
# The types of result and arguments.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "wengert_alloc": (_ADDRESS, _COUNT),
    "wengert_free": (None, _ADDRESS),
    "wengert_realloc": (_ADDRESS, _ADDRESS, _COUNT),
    "wengert_parallel": (None, _ADDRESS, _ADDRESS, _COUNT, _COUNT, _COUNT, _COUNT),
    "wengert_parts": (_COUNT, _COUNT, _COUNT, _COUNT, _COUNT),
    "wengert_get_threads": (_COUNT,),
    "wengert_set_threads": (None, _COUNT),
    "wengert_team_start": (None,),
    "wengert_team_size": (_COUNT,),
    "wengert_memory_start": (None,),
    "wengert_memory_child": (None,),
    "wengert_memory_limit": (None, _COUNT),
    "wengert_memory_trim": (_COUNT, _COUNT),
    "wengert_memory_read": (None, _ADDRESS),
    "wengert_array_handler": (_ADDRESS,),
}
_THREADS = (
    *("create", "detach", "sigmask", "mutex_init", "mutex_lock", "mutex_unlock"),
    *("cond_init", "cond_wait", "cond_signal"),
)
# Functions that are optimized; the others are compiled in an eighth of the time.
_HOT = (
    *("acquire", "size_of", "link", "unlink", "wengert_alloc", "small_block", "wengert_free"),
    *("array_malloc", "array_free", "wengert_parts", "begin", "run_all", "wengert_get_threads"),
)
_FREED_BYTES = 8 << 20  # more than the small blocks of one call of usual programs
_LOCK = lock()


def text() -> str:
    """The module for this system."""
    return _module().text(execution_engine.heading())


def _module() -> ModuleBuilder:
    module = ModuleBuilder()
    allocator.emit_allocator(module)
    allocator.emit_numpy_handler(module)
    thread_pool.emit_thread_pool(module, _has_threads())
    return module


def symbols() -> dict[str, int]:
    """Addresses by name, to be passed to `execution_engine.Code` with programs that declare them.

    Examples
    --------
    >>> sorted(symbols())[:3]
    ['wengert_alloc', 'wengert_array_handler', 'wengert_free']
    """
    return dict(_addresses()) if foreign() is None else dict.fromkeys(_SIGNATURES, 0)


@functools.cache
def function(name: str) -> Any:
    """A function of the module, to be called through ctypes.

    Examples
    --------
    >>> block = function("wengert_alloc")(1000)
    >>> block % 64
    0
    >>> function("wengert_free")(block)
    """
    return ctypes.CFUNCTYPE(*_SIGNATURES[name])(_addresses()[name])


def loaded(
    text: str, needed: Mapping[str, int], names: Iterable[str], cold: str = ""
) -> dict[str, int]:
    """The addresses of functions of a module, which stays in memory until the process ends.

    Parameters
    ----------
    needed : mapping from str to int
        Addresses of external functions; those of the C library need not be given.
    names : iterable of str
        The functions whose addresses are returned.
    cold : str
        A second module, linked to the first, that is compiled without optimization.
    """
    images = [cached_object(text)] if text else []
    images += [cached_object(cold, quick=True)] if cold else []
    code = execution_engine.Code(images, needed)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    return {name: code.address(name) for name in names}


def call_in_child(*addresses: int) -> None:
    """Register native functions without arguments, to be called in the child of every fork."""
    # Called with the GIL held: there is no other thread in the child that could need it.
    calls = [ctypes.PYFUNCTYPE(None)(address) for address in addresses]
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: [call() for call in calls])


def _addresses() -> dict[str, int]:
    with _LOCK:
        return _started()


@functools.cache
def _started() -> dict[str, int]:
    hot, cold = _module().halves(_HOT, execution_engine.heading())
    addresses = loaded(hot, {}, _SIGNATURES, cold)
    calls = {name: ctypes.CFUNCTYPE(*kinds)(addresses[name]) for name, kinds in _SIGNATURES.items()}
    calls["wengert_memory_start"]()
    calls["wengert_team_start"]()
    _keep_heap()
    settings.attach_allocator(
        {name: calls[f"wengert_memory_{name}"] for name in ("read", "limit", "trim")}
    )
    settings.attach_threads(calls["wengert_set_threads"])
    call_in_child(addresses["wengert_memory_child"], addresses["wengert_team_start"])
    return addresses


def _keep_heap() -> None:
    """Let the C library keep freed memory, twice `_FREED_BYTES`, for further small blocks.

    glibc returns the end of its heap to the system if more than 128 KiB of it are free, and each
    call of a program with some arrays of tens of kilobytes gets fresh pages.  After a large block
    has been freed, it keeps twice the size of that block; no page of this one is touched.
    """
    allocate, release = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawFree
    allocate.restype, allocate.argtypes = _ADDRESS, [ctypes.c_size_t]
    release.restype, release.argtypes = None, [_ADDRESS]
    release(allocate(_FREED_BYTES))


def _has_threads() -> bool:
    process = ctypes.CDLL(None) if os.name == "posix" else None
    names = [f"pthread_{name}" for name in _THREADS] + ["sigfillset"]
    return process is not None and all(hasattr(process, name) for name in names)


# ---- arrays that own recycled memory -------------------------------------------------------------


_SET_HANDLER = 304  # the index of PyDataMem_SetHandler in NumPy's C API, since NumPy 1.22
_NAME = ctypes.create_string_buffer(b"mem_handler")  # a capsule stores the address of its name


@functools.cache
def handler() -> Any:
    """The capsule "mem_handler" for arrays whose memory is recycled (NEP 49).

    It is passed to `PyDataMem_SetHandler`, or stored in the field `mem_handler` of an array that
    was made from a block of `wengert_alloc` and owns it.

    Examples
    --------
    >>> handler()
    <capsule object "mem_handler" at ...>
    """
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return make(function("wengert_array_handler")(), ctypes.addressof(_NAME), None)


@functools.cache
def set_handler() -> Callable[[Any], Any]:
    """``PyDataMem_SetHandler``: sets the handler of new arrays in this context; returns the old.

    Examples
    --------
    >>> import numpy as np
    >>> before = set_handler()(handler())
    >>> x = np.ones(100_000)
    >>> set_handler()(before)
    <capsule object "mem_handler" at ...>
    """
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    api = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    functions = ctypes.cast(get(api, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(functions[_SET_HANDLER] or 0)
