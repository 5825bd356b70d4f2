"""Copy on return: results that share memory with no other array.

A result of a run may be an input, a view of a variable, the same array as another result, or an
array with overlapping elements (`np.broadcast_to`); writing to it would change something else.
Reference counts tell whether an array or its base has other references, which is cheaper than an
analysis of the graph; only such arrays are copied.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_SCALARS: dict[type, type] = {float: np.float64, complex: np.complex128, bool: np.bool_}


def own(results: list[Any]) -> list[Any]:
    """Copy every array of a list that has other references; convert Python numbers to NumPy's.

    The caller must have no other reference to the results.
    """
    for i in range(len(results)):
        kind = type(results[i])
        if kind is np.ndarray:
            if not _is_alone(results, i):
                results[i] = results[i].copy()
        elif kind in _SCALARS:
            results[i] = _SCALARS[kind](results[i])
    return results


def _is_alone(results: list[Any], i: int) -> bool:
    if sys.getrefcount(results[i]) > _ALONE or not results[i].flags.writeable:
        return False
    base = results[i].base
    if base is None:
        return True
    if type(base) is not np.ndarray or base.base is not None:
        return False
    # A view: its base must have no other reference, and not be much larger.
    return sys.getrefcount(base) <= _BASE and 2 * results[i].nbytes >= base.nbytes


def _found(limit: str, results: list[Any]) -> int:
    """The reference count of an array with a single reference, as seen inside `_is_alone`."""
    for n in range(1, 20):
        globals()[limit] = n
        if _is_alone(results, 0):
            return n
    raise AssertionError("unknown behavior of reference counts in this Python interpreter")


_ALONE = _BASE = 0
_ALONE = _found("_ALONE", [np.empty(1)])
_BASE = _found("_BASE", [np.empty(2).reshape(1, 2)])
