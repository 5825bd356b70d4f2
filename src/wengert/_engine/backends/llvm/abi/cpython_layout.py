"""The memory layout of CPython's and NumPy's objects, and the addresses of their functions.

Only public interfaces are used: C API functions by address, and fields of structures declared in
public headers (an array's data, lengths, strides, dtype and flags; the value of a float, a complex
number, a NumPy scalar; the items of a tuple).  Offsets are those of 64-bit CPython 3.11 to 3.14
with the GIL (not the free-threaded build) and NumPy 2; `is_known` verifies them on real objects
before the first entry point is made.  If one differs, no entry points are made.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
import sysconfig
from typing import Any

import numpy as np

# ---- offsets in bytes -----------------------------------------------------------------------

TYPE = 8
VALUE = 16  # of a float, a complex number, a NumPy scalar
DATA, NDIM, DIMENSIONS, STRIDES, DESCR, FLAGS = 16, 24, 32, 40, 56, 64  # of an array
BYTE_ORDER, NUMBER = 26, 28  # of a dtype
ITEMS = tuple.__basicsize__  # the first item of a tuple

C_CONTIGUOUS, F_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400
# Placeholders of the LLVM text files (ir/llvm_types.py).
OFFSETS = {
    **{"type": TYPE, "data": DATA, "ndim": NDIM, "descr": DESCR, "flags": FLAGS},
    **{"number": NUMBER, "items": ITEMS, "dimensions": DIMENSIONS, "strides": STRIDES},
}

# ---- functions --------------------------------------------------------------------------------

PYTHON = (
    "PyComplex_FromDoubles",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyErr_Clear",
    "PyErr_NoMemory",
    "PyErr_Occurred",
    "PyFloat_FromDouble",
    "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong",
    "PyLong_FromUnsignedLongLong",
    "PyMem_RawFree",
    "PyMem_RawMalloc",
    "PyObject_CallObject",
    "PyObject_Vectorcall",
    "PyTuple_New",
    "Py_DecRef",
    "Py_IncRef",
)
# Their indices in NumPy's C API table, numpy/__multiarray_api.h.
NUMPY = {"PyArray_NewFromDescr": 94, "PyDataMem_SetHandler": 304}
OBJECTS: dict[str, Any] = {
    "ndarray": np.ndarray,
    "float": float,
    "int": int,
    "complex": complex,
    "True": True,
    "False": False,
    "np.True": np.True_,
    "np.False": np.False_,
}

_TP_ALLOC = 47  # Py_tp_alloc, typeslots.h: the slot of a type's allocator


@functools.cache
def addresses() -> dict[str, int]:
    """The addresses of the functions and objects that every entry point uses, by name."""
    words = {name: c_address(getattr(ctypes.pythonapi, name)) for name in PYTHON}
    table = _numpy_table()
    words |= {name: table[index] for name, index in NUMPY.items()}
    return words | {name: id(x) for name, x in OBJECTS.items()}


def allocator(scalar: type) -> int:
    """The address of the function that allocates NumPy scalars of a type."""
    get = ctypes.pythonapi.PyType_GetSlot
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    return int(get(scalar, _TP_ALLOC))


def c_address(function: Any) -> int:
    """The address of a function of ctypes."""
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _numpy_table() -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    return (ctypes.c_size_t * 320).from_address(get(capsule, None))


# ---- verification ------------------------------------------------------------------------------


@functools.cache
def is_known() -> bool:
    """Whether objects of this interpreter and of this NumPy have the expected layout."""
    plain = struct.calcsize("P") == 8 and sys.byteorder == "little" and object.__basicsize__ == 16
    has_gil = not sysconfig.get_config_var("Py_GIL_DISABLED")
    recent = int(np.__version__.partition(".")[0]) == 2 and sys.implementation.name == "cpython"
    return plain and has_gil and recent and _objects_are_known() and _arrays_are_known()


def _read(x: Any, offset: int, kind: Any, count: int = 1) -> tuple[Any, ...]:
    """Fields of an object, which the caller keeps alive."""
    return tuple((kind * count).from_address(id(x) + offset))


def _word(x: Any, offset: int) -> int:
    return int(_read(x, offset, ctypes.c_int64)[0])


def _objects_are_known() -> bool:
    double, byte = ctypes.c_double, ctypes.c_uint8
    return (
        _word(1.5, TYPE) == id(float)
        and _read(1.5, VALUE, double) == _read(np.float64(1.5), VALUE, double) == (1.5,)
        and _read(1.5 + 2j, VALUE, double, 2) == (1.5, 2.0)
        and _read(np.complex128(1.5 + 2j), VALUE, double, 2) == (1.5, 2.0)
        and _word(np.int64(12345), VALUE) == 12345
        and _read(np.uint8(77), VALUE, byte) == (77,)
        and _read((1.5, str, None), ITEMS, ctypes.c_int64, 3)[1:] == (id(str), id(None))
    )


def _arrays_are_known() -> bool:
    a = np.zeros((3, 4, 5), np.float64)[::2]
    lengths, strides = (
        tuple((ctypes.c_int64 * 3).from_address(_word(a, k))) for k in (DIMENSIONS, STRIDES)
    )
    flags = _read(a, FLAGS, ctypes.c_int)[0]
    single, swapped = np.dtype(np.float32), np.dtype(">f8")
    return (
        (_word(a, TYPE), _word(a, DATA)) == (id(np.ndarray), a.ctypes.data)
        and _read(a, NDIM, ctypes.c_int) == (3,)
        and (lengths, strides) == (a.shape, a.strides)
        and _word(a, DESCR) == id(a.dtype)
        and flags & (C_CONTIGUOUS | ALIGNED | WRITEABLE) == ALIGNED | WRITEABLE
        and _read(single, NUMBER, ctypes.c_int) == (single.num,)
        and _read(single, BYTE_ORDER, ctypes.c_char) == (b"=",)
        and _read(swapped, BYTE_ORDER, ctypes.c_char) == (b">",)
    )
