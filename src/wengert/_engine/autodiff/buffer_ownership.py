"""Ownership: the arrays that an eager pass returns share memory with nothing else.

    owned    the results, with copies of those that something else may refer to

Whether something else refers to an array is decided by its reference count: an array that two
results, a node of the tape or a constant refer to has more references than one that only a list
refers to.  Views are always copied.  A result without axes is returned as NumPy's scalar, as by
NumPy's functions and by compiled functions.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def owned(results: list[Any]) -> list[Any]:
    """Results that share memory with nothing else and may be written to."""
    for i in range(len(results)):
        if not _is_returnable(results, i):
            results[i] = results[i].copy() if results[i].ndim else results[i][()]
    return results


def _is_returnable(results: list[Any], i: int) -> bool:
    bar = results[i]
    if type(bar) is not np.ndarray:
        return True
    owns_memory = bar.base is None and bar.flags.writeable
    return owns_memory and bar.ndim > 0 and sys.getrefcount(bar) <= _UNSHARED


def _count_unshared() -> int:
    """The reference count, inside `_is_returnable`, of an array that only a list refers to.

    It depends on the interpreter, so it is measured.
    """
    global _UNSHARED
    for _UNSHARED in range(1, 20):
        if _is_returnable([np.empty(1)], 0):
            break
    return _UNSHARED


_UNSHARED = sys.maxsize
_UNSHARED = _count_unshared()
