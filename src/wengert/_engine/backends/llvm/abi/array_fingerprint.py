"""Fingerprints of large arrays in one pass over memory.

    fingerprint    a summary of the content of an array, which changes when an element does

It is a polynomial hash of the 8-byte words in each of 32 lanes, modulo 2**64.  The high bits of
each word are added to its low ones first: floating-point numbers such as 1 and 2 differ in high
bits only, which the multiplications by powers of the base would shift out.

NumPy's two sums (core/node.py), which are used until native code is loaded, take three times as
long.  The functions take the array itself, whose layout is known where native code is loaded
(abi/cpython_layout.py): reading its address by ctypes takes as long as hashing 10,000 numbers.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..ir import execution_engine, llvm_types
from ..ir.ir_builder import ModuleBuilder
from ..runtime.runtime_library import loaded
from .cpython_layout import DATA

_NAME = "wengert_fingerprint"
MULTIPLIER = 0x5851F42D4C957F2D  # of Knuth's linear congruential generator
BLOCK_BYTES = 256  # of a trip of the loop


def text() -> str:
    """The module."""
    module = ModuleBuilder()
    module.parts.update(functions())
    return module.text(execution_engine.heading())


def functions() -> dict[str, str]:
    """The functions, by name."""
    return llvm_types.functions(__file__, multiplier=MULTIPLIER, data=DATA)


@functools.cache
def _function() -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_int64)(
        loaded(text(), {}, [_NAME])[_NAME]
    )


def fingerprint(array: np.ndarray[Any, Any]) -> Hashable:
    """A summary of the content of an array.

    Examples
    --------
    >>> x = np.ones(1000)
    >>> before = fingerprint(x)
    >>> x[7] = 2.0
    >>> fingerprint(x) == before
    False
    """
    if not array.flags.c_contiguous:
        array = array.ravel(order="K")
    blocks, rest = divmod(array.nbytes, BLOCK_BYTES)
    return _function()(array, blocks), rest_of(array, rest)


def rest_of(array: np.ndarray[Any, Any], count: int) -> bytes:
    """The last bytes of an array in C order."""
    return array.reshape(-1).view(np.uint8)[array.nbytes - count :].tobytes() if count else b""
