"""Python: where CPython and NumPy keep what the entry reads, and the addresses it calls.

Only what both publish is used: functions of their C interfaces by address, and the fields of
structures in the public headers (an array's data, lengths, strides, dtype and flags; the value of a
float, a complex number, a NumPy scalar; the items of a tuple).  Offsets are those of a 64-bit
CPython 3.11 to 3.14 with the lock (not the free-threaded build) and NumPy 2; `is_known` looks at
real objects before the first entry is made, and where one is not as expected there are no
entries.
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
ITEMS = tuple.__basicsize__  # of a tuple: where its items begin

C_CONTIGUOUS, ALIGNED = 0x1, 0x100

# ---- functions --------------------------------------------------------------------------------

PYTHON = (
    "PyComplex_FromDoubles",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyErr_Clear",
    "PyErr_NoMemory",
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
# Their places in NumPy's table of functions, numpy/__multiarray_api.h.
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

_TP_ALLOC = 47  # Py_tp_alloc, typeslots.h: the slot of a type


@functools.cache
def addresses() -> dict[str, int]:
    """Where the functions and objects that every entry uses are, by name."""
    found = {name: _address(getattr(ctypes.pythonapi, name)) for name in PYTHON}
    table = _numpy_table()
    found |= {name: table[index] for name, index in NUMPY.items()}
    return found | {name: id(x) for name, x in OBJECTS.items()}


def allocator(scalar: type) -> int:
    """The address of the function that makes a NumPy scalar of a type."""
    get = ctypes.pythonapi.PyType_GetSlot
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    return int(get(scalar, _TP_ALLOC))


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _numpy_table() -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    return (ctypes.c_size_t * 320).from_address(get(capsule, None))


# ---- is it so? ---------------------------------------------------------------------------------


@functools.cache
def is_known() -> bool:
    """Whether objects of this interpreter, and of this NumPy, are as the entry reads them."""
    plain = struct.calcsize("P") == 8 and sys.byteorder == "little" and object.__basicsize__ == 16
    locked = not sysconfig.get_config_var("Py_GIL_DISABLED")
    recent = int(np.__version__.partition(".")[0]) >= 2 and sys.implementation.name == "cpython"
    return plain and locked and recent and _objects_are_known() and _arrays_are_known()


def _words(x: Any, offset: int, count: int = 1) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(id(x) + offset))


def _objects_are_known() -> bool:
    def doubles(x: Any, count: int) -> tuple[float, ...]:
        return tuple((ctypes.c_double * count).from_address(id(x) + VALUE))

    return (
        _words(1.5, TYPE) == (id(float),)
        and doubles(1.5, 1) == doubles(np.float64(1.5), 1) == (1.5,)
        and doubles(1.5 + 2j, 2) == doubles(np.complex128(1.5 + 2j), 2) == (1.5, 2.0)
        and _words(np.int64(12345), VALUE) == (12345,)
        and ctypes.c_uint8.from_address(id(np.uint8(77)) + VALUE).value == 77
        and _words((1.5, str, None), ITEMS, 3)[1:] == (id(str), id(None))
    )


def _arrays_are_known() -> bool:
    a = np.zeros((3, 4, 5), np.float64)[::2]
    dimensions, strides = _words(a, DIMENSIONS, 2)
    number, order = np.dtype(np.float32).num, (ctypes.c_uint8 * 1).from_address
    return (
        _words(a, TYPE) == (id(np.ndarray),)
        and _words(a, DATA) == (a.ctypes.data,)
        and ctypes.c_int.from_address(id(a) + NDIM).value == 3
        and tuple((ctypes.c_int64 * 3).from_address(dimensions)) == a.shape
        and tuple((ctypes.c_int64 * 3).from_address(strides)) == a.strides
        and _words(a, DESCR) == (id(a.dtype),)
        and ctypes.c_int.from_address(id(a) + FLAGS).value & (C_CONTIGUOUS | ALIGNED) == ALIGNED
        and ctypes.c_int.from_address(id(np.dtype(np.float32)) + NUMBER).value == number
        and order(id(np.dtype(">f8")) + BYTE_ORDER)[0] == ord(">")
        and order(id(np.dtype("f8")) + BYTE_ORDER)[0] == ord("=")
    )
