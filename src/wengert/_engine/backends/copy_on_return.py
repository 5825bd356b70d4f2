"""Copy on return: results that no other array or cache shares memory with.

What a run returns may be an input itself, a view of a variable, twice the same array, or an array
without memory of its own (`np.broadcast_to`); writing to it would change something else.  Whether
anybody else holds an array, or the array it is a view of, is asked of the interpreter (reference
counts), which costs less than looking through the graph; only what is held elsewhere is copied.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_SCALARS: dict[type, type] = {float: np.float64, complex: np.complex128, bool: np.bool_}


def own(results: list[Any]) -> list[Any]:
    """Make every array of a list the caller's own; Python numbers as NumPy's, as eager.

    Whoever calls this must hold no other reference to the results.
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
    # A view: nobody else may look at the array below it, and it must not keep alive much more.
    return sys.getrefcount(base) <= _BASE and 2 * results[i].nbytes >= base.nbytes


def _found(limit: str, results: list[Any]) -> int:
    """How many references the only holder of an array is, as seen from inside `_is_alone`."""
    for n in range(1, 20):
        globals()[limit] = n
        if _is_alone(results, 0):
            return n
    raise AssertionError("reference counts of this interpreter are not understood")


_ALONE = _BASE = 0
_ALONE = _found("_ALONE", [np.empty(1)])
_BASE = _found("_BASE", [np.empty(2).reshape(1, 2)])
