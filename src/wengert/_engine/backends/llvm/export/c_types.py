"""Types and constants of LLVM as those of C99.

Integers are unsigned, so that arithmetic wraps around; signed operations convert their operands.  A
boolean is an int that is 0 or 1, an address a `char *`.  A vector is several values, one for each
lane.

    CType         a type: of one value, of a vector, of an array, or of several values
    kind_of      a type from its text
    literal      a constant
    split        a list at the commas that no brackets enclose

Functions that printed C calls: memory, bits, and operations that C99 has no operator for.

    suffix    the end of the names of helpers for a type
    used      the text of those that a text calls, in order
    HELPERS   the text of each, by name
    libm      intrinsics that are functions of C's mathematical library

Loads and stores copy bytes, so that they neither depend on alignment nor on the type with which
memory was written; compilers make single instructions of them.
"""

from __future__ import annotations

import functools
import re
import struct
from dataclasses import dataclass

import numpy as np

from wengert.errors import BackendError

from .c_vectors import (
    are_vectors,
    c_vector,
    is_vector,
    suffix_of,
    type_definition,
    vector_helper,
    vector_literal,
)


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


_MEMORY = {
    "i1": ("int", "uint8_t"),
    "i8": ("uint8_t",) * 2,
    "i16": ("uint16_t",) * 2,
    "i32": ("uint32_t",) * 2,
    "i64": ("uint64_t",) * 2,
    "float": ("float",) * 2,
    "double": ("double",) * 2,
    "ptr": ("char *",) * 2,
}
_SUFFIXES = {"double": "f64", "float": "f32"}
_SIMPLE = """
static inline double wg_number_f64(uint64_t x) { double y; memcpy(&y, &x, 8); return y; }
static inline float wg_number_f32(uint32_t x) { float y; memcpy(&y, &x, 4); return y; }
static inline uint64_t wg_bits_f64(double x) { uint64_t y; memcpy(&y, &x, 8); return y; }
static inline uint32_t wg_bits_f32(float x) { uint32_t y; memcpy(&y, &x, 4); return y; }
static inline double wg_maximum_f64(double x, double y) { return x != x || x > y || (x == y && !signbit(x)) ? x : y; }
static inline double wg_minimum_f64(double x, double y) { return x != x || x < y || (x == y && signbit(x)) ? x : y; }
static inline float wg_maximum_f32(float x, float y) { return x != x || x > y || (x == y && !signbit(x)) ? x : y; }
static inline float wg_minimum_f32(float x, float y) { return x != x || x < y || (x == y && signbit(x)) ? x : y; }
static inline uint64_t wg_leading_i64(uint64_t x) { uint64_t n = 0; if (x == 0) return 64; while (!(x >> 63)) { x <<= 1; n++; } return n; }
static inline uint32_t wg_leading_i32(uint32_t x) { uint32_t n = 0; if (x == 0) return 32; while (!(x >> 31)) { x <<= 1; n++; } return n; }
static inline uint64_t wg_trailing_i64(uint64_t x) { uint64_t n = 0; if (x == 0) return 64; while (!(x & 1)) { x >>= 1; n++; } return n; }
static inline uint32_t wg_trailing_i32(uint32_t x) { uint32_t n = 0; if (x == 0) return 32; while (!(x & 1)) { x >>= 1; n++; } return n; }
static inline uint64_t wg_shifted_i64(uint64_t x, uint64_t y, uint64_t n) { n &= 63; return n ? (x << (64 - n)) | (y >> n) : y; }
static inline uint64_t wg_integer_f64(double x) { return x != x ? 0 : x >= 9223372036854775808.0 ? UINT64_C(9223372036854775807) : x < -9223372036854775808.0 ? UINT64_C(9223372036854775808) : (uint64_t)(int64_t)x; }
typedef struct { uint64_t low, high; } wg_wide;
static inline wg_wide wg_widened(uint64_t x) { wg_wide y; y.low = x; y.high = 0; return y; }
static inline wg_wide wg_wide_high(wg_wide x) { return wg_widened(x.high); }
static inline wg_wide wg_wide_sum(wg_wide x, wg_wide y) { x.low += y.low; x.high += y.high + (x.low < y.low); return x; }
static inline wg_wide wg_wide_product(wg_wide x, wg_wide y) { const uint64_t m = UINT64_C(4294967295), a = x.low & m, b = x.low >> 32, c = y.low & m, d = y.low >> 32, p = a * c, q = (p >> 32) + ((a * d) & m) + ((b * c) & m); wg_wide z; z.low = (p & m) | (q << 32); z.high = b * d + ((a * d) >> 32) + ((b * c) >> 32) + (q >> 32) + x.low * y.high + x.high * y.low; return z; }
static inline int wg_overflow_sadd_i64(uint64_t x, uint64_t y) { const uint64_t z = x + y; return (int)(((x ^ z) & (y ^ z)) >> 63); }
static inline int wg_overflow_ssub_i64(uint64_t x, uint64_t y) { const uint64_t z = x - y; return (int)(((x ^ y) & (x ^ z)) >> 63); }
static inline int wg_overflow_smul_i64(uint64_t x, uint64_t y) { const int64_t a = (int64_t)x, b = (int64_t)y; if (a == 0 || b == 0) return 0; if (a == -1) return b < -INT64_MAX; if (b == -1) return a < -INT64_MAX; return (a > 0) == (b > 0) ? (a > 0 ? a > INT64_MAX / b : a < INT64_MAX / b) : (a > 0 ? b < (-INT64_MAX - 1) / a : a < (-INT64_MAX - 1) / b); }
static inline int wg_overflow_umul_i64(uint64_t x, uint64_t y) { return x != 0 && y > UINT64_MAX / x; }
static inline void wg_copy(char *to, const char *from, uint64_t count) { if (count) memmove(to, from, (size_t)count); }
static inline void wg_fill(char *to, uint8_t value, uint64_t count) { if (count) memset(to, value, (size_t)count); }
"""  # noqa: E501
_VECTORS = """#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#endif"""
_NAME = re.compile(r"\b(wg_[a-z]\w*)\b")


def _of_memory() -> dict[str, str]:
    found = {}
    for llvm, (value, stored) in _MEMORY.items():
        kind = _SUFFIXES.get(llvm, llvm)
        space = "" if value.endswith("*") else " "
        found[f"wg_load_{kind}"] = (
            f"static inline {value}{space}wg_load_{kind}(const char *at) "
            f"{{ {stored}{space}x; memcpy(&x, at, sizeof x); return x; }}"
        )
        convert = f"({stored})" if stored != value else ""
        found[f"wg_store_{kind}"] = (
            f"static inline void wg_store_{kind}(char *at, {value}{space}y) "
            f"{{ const {stored}{space}x = {convert}y; memcpy(at, &x, sizeof x); }}"
            if not value.endswith("*")
            else f"static inline void wg_store_{kind}(char *at, char *x) "
            "{ memcpy(at, &x, sizeof x); }"
        )
    return found


def _named(line: str) -> str:
    head = line.split("(")[0] if not line.startswith("typedef") else line.rstrip(";")
    return head.split()[-1].lstrip("*")


HELPERS = {**{_named(t): t for t in _SIMPLE.strip().splitlines()}, **_of_memory()}
LIBM = {
    "fma": "fma",
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "fabs": "fabs",
    "copysign": "copysign",
    "roundeven": "rint",
}


def suffix(kind: str) -> str:
    """The end of the names of helpers for a type."""
    return suffix_of(kind) if is_vector(kind) else _SUFFIXES.get(kind, kind)


def used(text: str) -> str:
    """The helpers that a text calls, and those that these call; types come first."""
    found: dict[str, str] = {}
    types: dict[str, str] = {}
    order: list[str] = []
    _collect(text, found, types, order)
    order.sort(key=lambda n: n != "wg_wide")
    rest = [n for n in HELPERS if n in found] + [n for n in order if n not in HELPERS]
    rest.sort(key=lambda n: n != "wg_wide")
    heading = [_VECTORS] if types else []
    return "\n".join([*heading, *types.values(), *[found[n] for n in rest]])


def _collect(text: str, found: dict[str, str], types: dict[str, str], order: list[str]) -> None:
    """Add the types and helpers that a text names, those that helpers need before them."""
    for name in sorted(set(_NAME.findall(text)) - found.keys() - types.keys()):
        definition = type_definition(name)
        if definition is not None:
            types[name] = definition
            continue
        definition = HELPERS.get(name) or vector_helper(name)
        if definition is not None and name not in found:
            found[name] = definition
            _collect(definition, found, types, order)
            order.append(name)
