"""NumPy's ziggurat method for normal numbers, as tables and as a function of some words.

G. Marsaglia, W. W. Tsang, "The ziggurat method for generating random variables", J. Statistical
Software 5 (2000): a word of the generator chooses one of 256 layers and a position in it. 98.8 % of
the words give a number at once; otherwise further words are drawn, and the number may be rejected.
The tables of NumPy are not exported, so they are found by calling its function with chosen words;
what needs the logarithms of the C library, the tail, is computed by that function.

    ziggurat_of    the method for float64 or float32; None if NumPy does not export its function
    Ziggurat       its tables; `draw` is a number from given words
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..llvm.runtime import library_symbols

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
