"""NumPy arrays that own recycled memory.

    handler        the capsule of NumPy's memory handler
    set_handler    the function that makes it, or another, that of new arrays

The allocator is allocator.py, its interface to NumPy numpy_allocator.py, its settings and counters
are in allocator_stats.py.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from typing import Any

from .runtime_library import function

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
