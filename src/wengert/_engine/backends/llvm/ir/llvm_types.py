"""NumPy's dtypes as LLVM types, and their constants.

A boolean is an i1 in a register and one byte in memory.  A complex number is two numbers in
registers, adjacent in memory.  In LLVM signedness is a property of instructions, not of types, so
it is taken from the dtype.  longdouble has no SIMD values: operations on it are host callbacks.

LLVM IR in files: functions that depend on the machine, but not on the program.

    read         the text of the file `NAME.ll` beside a module, with values for its $names
    functions    its functions by name, for `ModuleBuilder.parts`; the file has nothing else

Most files are named like their module.  tests/backends/llvm/test_llvm_files.py verifies them with
LLVM.
"""

from __future__ import annotations

import functools
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

Dtype = np.dtype[Any]

BOOL = np.dtype(np.bool_)
I32, I64 = np.dtype(np.int32), np.dtype(np.int64)
U8, U32, U64 = np.dtype(np.uint8), np.dtype(np.uint32), np.dtype(np.uint64)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
C64, C128 = np.dtype(np.complex64), np.dtype(np.complex128)

_REGISTER = {"b1": "i1", "f2": "half", "f4": "float", "f8": "double"}
_SUPPORTED = frozenset("b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split())
_SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}


@functools.cache
def is_supported(dtype: Dtype) -> bool:
    """Whether SIMD values may have this dtype: native byte order, and not longdouble."""
    return dtype.isnative and dtype.str[1:] in _SUPPORTED


@functools.cache
def in_register(dtype: Dtype) -> str:
    """The LLVM type of one value; of a complex dtype, that of its parts."""
    code = dtype.str[1:]
    if dtype.kind == "c":
        return "float" if code == "c8" else "double"
    return _REGISTER.get(code) or f"i{8 * dtype.itemsize}"


@functools.cache
def in_memory(dtype: Dtype) -> str:
    """The LLVM type of one value in memory."""
    return "i8" if dtype.kind == "b" else in_register(dtype)


def of_width(scalar: str, width: int) -> str:
    """The LLVM type of a vector of a given width."""
    return scalar if width <= 1 else f"<{width} x {scalar}>"


def suffix(scalar: str, width: int) -> str:
    """The suffix of LLVM's intrinsics for a type: ``.v8f64``."""
    code = _SUFFIX.get(scalar, scalar)
    return f".{code}" if width <= 1 else f".v{width}{code}"


def part_of(dtype: Dtype) -> Dtype:
    """The real dtype of the parts of a complex one; a real dtype itself."""
    return dtype if dtype.kind != "c" else F32 if dtype.itemsize == 8 else F64


def literal(value: Any, dtype: Dtype) -> str:
    """A number of a real dtype as an LLVM constant."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return str(int(value))
    with np.errstate(all="ignore"):
        if dtype.itemsize == 2:
            return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
        rounded = float(np.float32(value)) if dtype.itemsize == 4 else float(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"


def constant_rows(columns: Any, as_bytes: bool) -> tuple[str, str]:
    """The type and the text of a constant: the rows of a table, given by its columns.

    Parameters
    ----------
    as_bytes : bool
        Whether the text may be a string, which LLVM reads seven times faster than numbers, of which
        a table may have thousands; it depends on the order of bytes, and is not printed in C.
    """
    rows = np.ascontiguousarray(columns.T)
    if as_bytes and sys.byteorder == "little":
        text = rows.tobytes().hex("\\").upper()
        return f"[{rows.nbytes} x i8]", f'c"\\{text}"'
    kind = in_register(rows.dtype)
    listed = ", ".join([f"{kind} {literal(x, rows.dtype)}" for x in rows.ravel()])
    return f"[{rows.size} x {kind}]", f"[{listed}]"


def read(module_file: str | Path, **values: Any) -> str:
    """The text of the file beside a module.

    Parameters
    ----------
    module_file : str or Path
        The module's ``__file__``, or the path of the file without its suffix.
    **values
        The replacement of each ``$name`` in the file.

    Raises
    ------
    KeyError
        A name has no value.
    """
    text = Path(module_file).with_suffix(".ll").read_text(encoding="utf-8")
    for name in sorted(values, reverse=True):  # "$length_of" before "$length"
        text = text.replace(f"${name}", str(values[name]))
    if "$" in text:
        raise KeyError(text[text.index("$") :].split(None, 1)[0])
    return text


def functions(module_file: str, **values: Any) -> dict[str, str]:
    """The functions of a file that contains nothing else, by name."""
    found = [f"define {text.rstrip()}" for text in read(module_file, **values).split("define ")[1:]]
    return {text.split("@", 1)[1].split("(", 1)[0]: text for text in found}
