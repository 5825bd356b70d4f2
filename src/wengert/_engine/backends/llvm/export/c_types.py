"""Types and constants of LLVM as those of C99.

Integers are unsigned, so that arithmetic wraps around; signed operations convert their operands.  A
boolean is an int that is 0 or 1, an address a `char *`.  A vector is several values, one for each
lane.

    CType         a type: of one value, of a vector, of an array, or of several values
    kind_of      a type from its text
    literal      a constant
    split        a list at the commas that no brackets enclose
"""

from __future__ import annotations

import functools
import re
import struct
from dataclasses import dataclass

import numpy as np

from wengert.errors import BackendError

from .c_vectors import are_vectors, c_vector, is_vector, suffix_of, vector_literal


class _Scalars(dict[str, tuple[str, int]]):
    """The type of C and the size of each type of one value, vectors of GNU C among them."""

    def __missing__(self, kind: str) -> tuple[str, int]:
        return c_vector(kind)


SCALARS = _Scalars(
    {
        "i1": ("int", 1),
        "i8": ("uint8_t", 1),
        "i16": ("uint16_t", 2),
        "i32": ("uint32_t", 4),
        "i64": ("uint64_t", 8),
        "i128": ("wg_wide", 16),
        "float": ("float", 4),
        "double": ("double", 8),
        "ptr": ("char *", 8),
    }
)
SIGNED = {"i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t"}
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_ARRAY = re.compile(r"\[(\d+) x (.*)\]")
_OPENING, _CLOSING = "([{<", ")]}>"


@dataclass(frozen=True)
class CType:
    """A type.

    Attributes
    ----------
    scalars : tuple of str
        The LLVM types of its values: one, those of the lanes of a vector, or of the members.
    count : int
        The length of an array; 0 for other types.
    is_several : bool
        Whether it is a vector or has members.
    """

    scalars: tuple[str, ...]
    count: int = 0
    is_several: bool = False

    @property
    def scalar(self) -> str:
        """The LLVM type of its first value."""
        return self.scalars[0]

    @property
    def c(self) -> str:
        """The type of C for one value, or the struct for several."""
        if self.is_several:
            return f"struct {self.struct}"
        return SCALARS[self.scalar][0]

    @property
    def struct(self) -> str:
        """The name of the struct for several values."""
        names = [suffix_of(s) if is_vector(s) else s for s in self.scalars]
        return "wg_" + "_".join(names)

    @property
    def size(self) -> int:
        """The bytes in memory of all values."""
        return sum(SCALARS[s][1] for s in self.scalars) * max(self.count, 1)


def kind_of(text: str) -> CType:
    """A type from its text.

    Raises
    ------
    BackendError
        C99 has no such type.
    """
    return _kind_of(text, are_vectors())


@functools.lru_cache(maxsize=1024)
def _kind_of(text: str, vectors: bool) -> CType:
    text = text.strip()
    if text in SCALARS:
        return CType((text,))
    match = _VECTOR.fullmatch(text)
    if match is not None and vectors and "half" not in text:
        return CType((text,))
    if match is not None:
        return CType(kind_of(match[2]).scalars * int(match[1]), is_several=True)
    match = _ARRAY.fullmatch(text)
    if match is not None:
        return CType(kind_of(match[2]).scalars, int(match[1]))
    if text.startswith("{"):
        members = [_kind_of(m, vectors).scalar for m in split(text.strip("{} "))]
        return CType(tuple(members), is_several=True)
    if text == "half":
        raise BackendError(
            "C99 has no type for float16. Compute in float32, or export an object file, "
            "format='object'."
        )
    raise AssertionError(f"the type {text!r} has no form in C")


def split(text: str) -> list[str]:
    """A list at the commas that no brackets enclose."""
    parts, depth, start = [], 0, 0
    for k, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:k].strip())
            start = k + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def literal(text: str, scalar: str) -> str:
    """A constant of one value.

    Examples
    --------
    >>> literal("0x3FE0000000000000", "double"), literal("-1", "i64"), literal("true", "i1")
    ('0.5', 'UINT64_C(18446744073709551615)', '1')
    """
    if is_vector(scalar):
        return vector_literal("0", scalar)
    if text in ("poison", "undef", "zeroinitializer", "null"):
        return "NULL" if scalar == "ptr" else "0.0" if scalar == "double" else "0"
    if text in ("true", "false"):
        return str(int(text == "true"))
    if scalar in ("float", "double"):
        return number(_float_of(text), scalar)
    bits = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "i128": 64}[scalar]
    value = int(text) % (1 << bits)
    if scalar == "i64":
        return str(value) + "u" if value < 1 << 31 else f"UINT64_C({value})"
    if scalar == "i128":
        return f"wg_widened({value}u)"
    return f"{value}u" if bits > 1 else str(value)


def _float_of(text: str) -> float:
    if text.startswith("0x"):
        return float(struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0])
    return float(text)


def number(value: float, scalar: str) -> str:
    """A floating-point constant, by its shortest decimals."""
    if value != value:
        return "NAN" if scalar == "float" else "((double)NAN)"
    if value in (float("inf"), float("-inf")):
        name = "INFINITY" if scalar == "float" else "((double)INFINITY)"
        return name if value > 0 else f"(-{name})"
    text = str(np.float32(value)) + "f" if scalar == "float" else repr(value)
    if scalar == "float" and "." not in text and "e" not in text:
        text = f"{text[:-1]}.0f"
    return f"({text})" if text.startswith("-") else text
