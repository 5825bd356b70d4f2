"""Ownership: the arrays that an eager pass returns share memory with nothing else.

    owned    the results, with copies of those that something else may refer to

Whether something else refers to an array is read from its reference count: an array that is held by
two results, a node of the tape or a constant has more references than the only element of a list.
Views are always copied.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def owned(results: list[Any]) -> list[Any]:
    """Results that share memory with nothing else and may be written to."""
    for i in range(len(results)):
        if not _is_alone(results, i):
            results[i] = results[i].copy()
    return results


def _is_alone(results: list[Any], i: int) -> bool:
    bar = results[i]
    if type(bar) is not np.ndarray:
        return True
    fresh_memory = bar.base is None and bar.flags.writeable
    return fresh_memory and sys.getrefcount(bar) <= _ALONE


def _references_when_alone() -> int:
    """The reference count of the only array of a list, seen from inside `_is_alone`.

    Measured, because the number depends on the interpreter.
    """
    global _ALONE
    for _ALONE in range(1, 20):
        if _is_alone([np.empty(1)], 0):
            break
    return _ALONE


_ALONE = sys.maxsize
_ALONE = _references_when_alone()
