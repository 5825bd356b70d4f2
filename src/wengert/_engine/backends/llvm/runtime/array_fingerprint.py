"""Fingerprints of large arrays in one pass over memory.

    fingerprint    a summary of the content of an array, which changes when an element does

It is a polynomial hash of the 8-byte words in each of 32 lanes, modulo 2**64.  The high bits of
each word are added to its low ones first: floating-point numbers such as 1 and 2 differ in high
bits only, which the multiplications by powers of the base would shift out.

NumPy's two sums (core/node.py), which are used until native code is loaded, take three times as
long.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..ir import execution_engine, llvm_files
from ..ir.ir_builder import ModuleBuilder
from .runtime_library import loaded

_NAME = "wengert_fingerprint"
_MULTIPLIER = 0x5851F42D4C957F2D  # of Knuth's linear congruential generator
_BLOCK = 256  # bytes of a trip of the loop


def text() -> str:
    """The module."""
    module = ModuleBuilder()
    module.parts.update(llvm_files.functions(__file__, multiplier=_MULTIPLIER))
    return module.text(execution_engine.heading())


@functools.cache
def _function() -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(
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
    flat = array.reshape(-1) if array.flags.c_contiguous else array.ravel(order="K")
    data = flat.view(np.uint8)
    blocks = data.size // _BLOCK
    return _function()(flat.ctypes.data, blocks), data[blocks * _BLOCK :].tobytes()
