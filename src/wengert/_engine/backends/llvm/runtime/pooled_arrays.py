"""NumPy arrays that own recycled memory.

    handler    the capsule of the memory handler for NumPy

allocator.py recycles the memory, numpy_allocator.py is its interface to NumPy, allocator_stats.py
has its settings and counters.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from .runtime_library import function

_NAME = ctypes.create_string_buffer(b"mem_handler")  # a capsule keeps the address of its name


@functools.cache
def handler() -> Any:
    """The capsule "mem_handler" for arrays whose memory is recycled (NEP 49).

    It is for `PyDataMem_SetHandler`, or for the field `mem_handler` of an array that was made
    around a block of `wengert_alloc`, and owns it.

    Examples
    --------
    >>> handler()
    <capsule object "mem_handler" at ...>
    """
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return make(function("wengert_array_handler")(), ctypes.addressof(_NAME), None)
