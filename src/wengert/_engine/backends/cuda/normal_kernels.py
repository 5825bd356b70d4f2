"""Random normal numbers on a device, with the bits of NumPy's ziggurat method.

    normal_numbers    the numbers of some states
    ziggurat_of       the method for float64 or float32; None if NumPy does not export its function
    Ziggurat          its tables; `draw` is a number from given words

NumPy's ziggurat method takes one word of the generator for most numbers, further ones for some, and
rejects some. For each word it is computed what happens if a number begins there, then which words
are the first of a number (draw_chains.py):

    1. the words
    2. for each: the number of words that it takes, whether it gives a number
    3. the few that need the C library's logarithm, or an exact comparison: NumPy's own function
    4. the first words of numbers
    5. the numbers

G. Marsaglia, W. W. Tsang, "The ziggurat method for generating random variables", J. Statistical
Software 5 (2000): a word of the generator chooses one of 256 layers and a position in it. 98.8 % of
the words give a number at once; otherwise further words are drawn, and the number may be rejected.
The tables of NumPy are not exported, so they are found by calling its function with chosen words;
what needs the logarithms of the C library, the tail, is computed by that function.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..llvm.ir.llvm_types import F64
from ..llvm.ir.scalar_language import Language
from ..llvm.ir.simd_value import Lane
from ..llvm.runtime import library_symbols
from .device import Device
from .draw_chains import CHUNK, GIVEN, GIVES, TAKES, WINDOW, Chains, at, loaded
from .loaded_kernels import element_kernel, launch_of
from .random_kernels import drawn

_LAYERS = 256
_FILL = {"f8": "random_standard_normal_fill", "f4": "random_standard_normal_fill_f"}
_NUMBER = {"f8": ctypes.c_double, "f4": ctypes.c_float}
_WORD = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_HALF = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_FRACTION = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)


class _Generator(ctypes.Structure):
    """The functions of a generator: bitgen_t, in the C header numpy/random/bitgen.h."""

    _fields_ = (
        ("state", ctypes.c_void_p),
        ("word", _WORD),
        ("half", _HALF),
        ("fraction", _FRACTION),
        ("raw", _WORD),
    )


class Ziggurat:
    """The ziggurat method.

    Parameters
    ----------
    dtype : numpy.dtype
        float64, from words of 64 bits, or float32, from words of 32 bits.

    Attributes
    ----------
    bits : int
        The number of bits of a position in a layer; they follow the layer and the sign.
    widths, limits, heights : numpy.ndarray
        Of each layer: the factor of a position; the first position that needs further words; the
        density at its end, up to rounding.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype, self.bits = dtype, 52 if dtype.itemsize == 8 else 23
        self._words: list[int] = []
        self._used = 0
        single = dtype.itemsize == 4
        half = _HALF(self._next)
        word = _WORD(self._next)
        self._calls = half, word, _FRACTION(lambda state: (self._next(state) >> 11) * 2.0**-53)
        self._generator = _Generator(None, word, half, self._calls[2], word)
        address = library_symbols.address_of(f"random.{_FILL[dtype.str[1:]]}")
        kinds = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)
        self._fill = ctypes.CFUNCTYPE(None, *kinds)(address)
        wide = np.uint32 if single else np.uint64
        self.widths = np.array([self.draw([k | 1 << 9])[0] for k in range(_LAYERS)], dtype)
        self.limits = np.array([self._limit(k) for k in range(_LAYERS)], wide)
        ends = self.widths.astype(float) * 2.0**self.bits
        self.heights = np.exp(-0.5 * ends * ends)
        self.heights[0] = 1.0

    def _next(self, state: Any) -> int:
        """The next word; after the last one words that end any draw."""
        self._used += 1
        if self._used > len(self._words):
            return 1 << 20 | 100
        return self._words[self._used - 1]

    def draw(self, words: Sequence[int]) -> tuple[Any, int]:
        """A number from given words, and how many of them are used."""
        out = _NUMBER[self.dtype.str[1:]]()
        self._words, self._used = list(words), 0
        self._fill(ctypes.byref(self._generator), 1, ctypes.byref(out))
        return out.value, self._used

    def _limit(self, layer: int) -> int:
        """The first position in a layer that needs more than one word."""
        low, high = 0, 1 << self.bits
        while low < high:
            middle = (low + high) // 2
            if self.draw([layer | middle << 9])[1] == 1:
                low = middle + 1
            else:
                high = middle
        return low


@functools.cache
def ziggurat_of(dtype: np.dtype[Any]) -> Ziggurat | None:
    """The method for a dtype; None if NumPy does not export its function."""
    try:
        return Ziggurat(dtype)
    except KeyError:
        return None


_ASK = 255  # the code of a step that NumPy's function decides
# Words beyond one for each number: 0.0221 are needed on average, measured.
_EXTRA, _VARIANCE, _DEVIATIONS, _SPARE = 0.0222, 0.03, 10.0, 16
# How near the two sides of a comparison may be, relatively, for rounding to decide it.
_DOUBT = {8: 2.0**-33, 4: 2.0**-17}


def normal_numbers(
    name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]
) -> Any:
    """The numbers of some states; NotImplemented for other dtypes."""
    dtype = np.dtype(params["dtype"])
    method = ziggurat_of(dtype) if dtype.str[1:] in ("f4", "f8") else None
    shape = tuple(params["shape"])
    count = math.prod(shape)
    if method is None or not count:
        return NotImplemented
    states = device.contiguous(device.put(operands[0]))
    outer = states.shape[:-1]
    streams = math.prod(outer)
    length = count + int(_EXTRA * count + _DEVIATIONS * math.sqrt(_VARIANCE * count)) + _SPARE
    wide = np.dtype(np.uint64 if dtype.itemsize == 8 else np.uint32)
    given = {"number": params["number"], "shape": (length + WINDOW,), "dtype": wide}
    words = drawn("random_bits", device, [states.reshape(streams, -1)], given)
    steps = device.empty((streams, length), np.dtype(np.uint8))
    sizes = [np.int64(length), np.int64(length + WINDOW)]
    _launched(device, method, "steps", _step, [words, steps], sizes, streams * length)
    if not _asked(device, method, words, steps):
        return NotImplemented
    chains = Chains(device, steps)
    if int(device.get(np.min(chains.draws))) < count:
        return NotImplemented
    out = device.empty((*outer, *shape), dtype)
    arrays = [words, steps, chains.entries, chains.numbers, out]
    sizes = [np.int64(n) for n in (length, length + WINDOW, chains.chunks, count)]
    _launched(device, method, "values", _values, arrays, sizes, streams * chains.chunks)
    return out


def _asked(device: Device, method: Ziggurat, words: Any, steps: Any) -> bool:
    """Ask NumPy's function what some steps are; False if one takes too many words."""
    places = np.nonzero(steps.reshape(-1) == _ASK)[0]
    if not places.size:
        return True
    length, all_words = steps.shape[1], words.shape[1]
    starts = places // length * all_words + places % length
    like = device.empty((0,), np.dtype(np.int64))
    flat = words.reshape(-1)
    near = device.get(flat[starts[:, None] + np.arange(WINDOW, like=like)])
    made = [method.draw(row.tolist()) for row in near]
    used = np.array([n for _, n in made])
    if np.any(used > TAKES):
        return False
    values = np.array([x for x, _ in made], method.dtype)
    flat[starts] = device.put(values.view(near.dtype))
    steps.reshape(-1)[places] = device.put((used | GIVEN | GIVES).astype(np.uint8))
    return True


def _launched(
    device: Device,
    method: Ziggurat,
    what: str,
    write: Any,
    arrays: list[Any],
    sizes: list[Any],
    total: int,
) -> None:
    name = f"normal_{what}_{method.dtype.str[1:]}"
    names = [("ptr", f"array{k}") for k in range(len(arrays))]
    names += [("i64", f"size{k}") for k in range(len(sizes))]
    make = partial(element_kernel, name, names, partial(write, method))
    launch_of(device, name, make)([*arrays, *sizes, np.int64(total)], total)


class _Position:
    """The number of one word: its layer, and its position in the layer."""

    def __init__(self, method: Ziggurat, module: ModuleBuilder, s: Section, word: Name) -> None:
        self.module, self.kind = module, f"i{8 * method.dtype.itemsize}"
        self.number = "double" if method.dtype.itemsize == 8 else "float"
        self.layer = s.value(f"zext i8 {s.value(f'trunc {self.kind} {word} to i8')} to i64")
        mask = (1 << method.bits) - 1
        shifted = s.value(f"lshr {self.kind} {word}, 9")
        self.place = s.value(f"and {self.kind} {shifted}, {mask}")
        widths = _table(module, "widths", self.number, method.widths)
        width = loaded(s, widths, self.layer, self.number)
        size = s.value(f"uitofp {self.kind} {self.place} to {self.number}")
        x = s.value(f"fmul {self.number} {size}, {width}")
        sign = s.value(f"trunc {self.kind} {s.value(f'lshr {self.kind} {word}, 8')} to i1")
        minus = s.value(f"fneg {self.number} {x}")
        self.x = s.value(f"select i1 {sign}, {self.number} {minus}, {self.number} {x}")


def _table(module: ModuleBuilder, what: str, kind: str, values: np.ndarray[Any, Any]) -> Name:
    """A constant array of the module."""
    if kind in ("double", "float"):  # exact, as LLVM writes numbers: the bits of the double
        texts = [f"0x{x:016X}" for x in values.astype(np.float64).view(np.uint64).tolist()]
    else:
        texts = [str(x) for x in values.tolist()]
    listed = ", ".join(f"{kind} {x}" for x in texts)
    return module.constant(f"ziggurat.{what}.{kind}", f"[{len(texts)} x {kind}]", f"[{listed}]")


def _step(
    method: Ziggurat, module: ModuleBuilder, function: Function, s: Section, element: Name
) -> None:
    """What happens if a number begins at a word."""
    stream, place = s.value(f"udiv i64 {element}, %size0"), s.value(f"urem i64 {element}, %size0")
    index = s.value(f"add i64 {s.value(f'mul i64 {stream}, %size1')}, {place}")
    kind = f"i{8 * method.dtype.itemsize}"
    found = _Position(method, module, s, loaded(s, "%array0", index, kind))
    limits = _table(module, "limits", kind, method.limits)
    limit = loaded(s, limits, found.layer, kind)
    is_simple = s.value(f"icmp ult {kind} {found.place}, {limit}")
    code = function.slot("i8")
    s.write(f"store i8 {_signed(1 | GIVES)}, ptr {code}")
    with s.unless(is_simple) as t:
        t.write(f"store i8 {_signed(_ASK)}, ptr {code}")
        with t.when(t.value(f"icmp ne i64 {found.layer}, 0")) as inner:
            following = loaded(inner, "%array0", inner.value(f"add i64 {index}, 1"), kind)
            _wedge(method, inner, found, following, code)
    s.write(f"store i8 {s.value(f'load i8, ptr {code}')}, ptr {at(s, '%array1', element, 'i8')}")


def _wedge(method: Ziggurat, s: Section, found: _Position, word: Name, code: Name) -> None:
    """Between two layers: a second word decides whether the number is accepted."""
    shift, scale = (11, 2.0**-53) if method.dtype.itemsize == 8 else (8, 2.0**-24)
    integer = s.value(f"lshr {found.kind} {word}, {shift}")
    fraction = s.value(
        f"fmul double {s.value(f'uitofp {found.kind} {integer} to double')}, {scale!r}"
    )
    heights = _table(found.module, "heights", "double", method.heights)
    low = loaded(s, heights, found.layer, "double")
    high = loaded(s, heights, s.value(f"sub i64 {found.layer}, 1"), "double")
    scaled = s.value(f"fmul double {s.value(f'fsub double {high}, {low}')}, {fraction}")
    height = s.value(f"fadd double {scaled}, {low}")
    x = found.x
    if found.number == "float":
        x = s.value(f"fpext float {x} to double")
    language = Language(found.module)
    language.home = s
    lane = Lane(language, s, x, F64, 1)
    density = language.exp(lane * lane * language.constant(-0.5, F64))
    name = density.name
    difference = s.value(f"fsub double {height}, {name}")
    doubt = s.value(f"fmul double {name}, {_DOUBT[method.dtype.itemsize]!r}")
    minus = s.value(f"fneg double {doubt}")
    accepted = s.value(f"fcmp olt double {difference}, {minus}")
    rejected = s.value(f"fcmp ogt double {difference}, {doubt}")
    first = s.value(f"select i1 {rejected}, i8 2, i8 {_signed(_ASK)}")
    s.write(
        f"store i8 {s.value(f'select i1 {accepted}, i8 {_signed(2 | GIVES)}, i8 {first}')}, "
        f"ptr {code}"
    )


def _signed(n: int) -> int:
    """An i8, as LLVM prints constants."""
    return n - 256 if n > 127 else n


def _values(
    method: Ziggurat, module: ModuleBuilder, function: Function, s: Section, element: Name
) -> None:
    """Write the numbers of a chunk."""
    stream = s.value(f"udiv i64 {element}, %size2")
    chunk = s.value(f"urem i64 {element}, %size2")
    words, steps = (s.value(f"mul i64 {stream}, {n}") for n in ("%size1", "%size0"))
    begin = s.value(f"mul i64 {chunk}, {CHUNK}")
    end = s.smaller(s.value(f"add i64 {begin}, {CHUNK}"), "%size0")
    first = s.value(f"add i64 {begin}, {loaded(s, '%array2', element)}")
    number, following = function.slot("i64"), function.slot("i64")
    s.write(f"store i64 {loaded(s, '%array3', element)}, ptr {number}")
    s.write(f"store i64 {first}, ptr {following}")
    kind, real = (f"i{8 * method.dtype.itemsize}", "double" if method.bits == 52 else "float")
    out = s.value(f"mul i64 {stream}, %size3")
    with s.loop(begin, end) as (t, place):
        is_first = t.value(f"icmp eq i64 {place}, {t.value(f'load i64, ptr {following}')}")
        with t.when(is_first) as u:
            step = u.value(
                f"zext i8 {loaded(u, '%array1', u.value(f'add i64 {steps}, {place}'), 'i8')} to i64"
            )
            word = loaded(u, "%array0", u.value(f"add i64 {words}, {place}"), kind)
            takes = u.value(f"and i64 {step}, {TAKES}")
            u.write(f"store i64 {u.value(f'add i64 {place}, {takes}')}, ptr {following}")
            x = _Position(method, module, u, word).x
            is_given = u.value(f"icmp ne i64 {u.value(f'and i64 {step}, {GIVEN}')}, 0")
            bits = u.value(f"bitcast {kind} {word} to {real}")
            x = u.value(f"select i1 {is_given}, {real} {bits}, {real} {x}")
            k = u.value(f"load i64, ptr {number}")
            gives = u.value(f"lshr i64 {step}, 7")
            u.write(f"store i64 {u.value(f'add i64 {k}, {gives}')}, ptr {number}")
            has_place = u.value(f"icmp slt i64 {k}, %size3")
            is_number = u.value(f"icmp ne i64 {gives}, 0")
            with u.when(u.value(f"and i1 {has_place}, {is_number}")) as v:
                target = at(v, "%array4", v.value(f"add i64 {out}, {k}"), real)
                v.write(f"store {real} {x}, ptr {target}")
