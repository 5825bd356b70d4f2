"""Owned: what a plain sweep gives to its caller shares memory with nothing else.

    owned    the results, with copies of those that something else may hold

Whether something else does is read from reference counts, as far as these can say: an array that
two results, a node of the tape or a constant hold has more references than the only element of a
list.  A view is copied too, as what it looks at belongs to somebody.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def owned(results: list[Any]) -> list[Any]:
    """Plain results that share memory with nothing else and can be written to."""
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
    """How many references the only array of a list has, seen from inside `_is_alone`.

    Found by asking, as the number is the interpreter's affair.
    """
    global _ALONE
    for _ALONE in range(1, 20):
        if _is_alone([np.empty(1)], 0):
            break
    return _ALONE


_ALONE = sys.maxsize
_ALONE = _references_when_alone()
