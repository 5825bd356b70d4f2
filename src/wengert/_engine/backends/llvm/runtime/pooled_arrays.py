"""NumPy arrays that own recycled memory.

    handler    the capsule of NumPy's memory handler

The allocator is allocator.py, its interface to NumPy numpy_allocator.py, its settings and counters
are in allocator_stats.py.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from .runtime_library import function

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
