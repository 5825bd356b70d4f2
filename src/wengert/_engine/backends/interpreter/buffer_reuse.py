"""Buffer reuse: large arrays that are no longer needed during a run are written to again.

    into_free_memory   a step that computes into the memory of an operand, or into some set aside
    set_aside          a step that lets a value go, and remembers its memory

Both take the list of all slots, whose last element is a dictionary from (shape, dtype) to free
arrays.  An array is free if its slot has the only reference to it and it is nobody's view: a view
of it, a user's variable, a value kept by an operation would each hold a reference.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

LIMIT = 1 << 16  # bytes; below it the allocator is faster than asking who else holds the array

Held = list[Any]


def _is_free(held: Held, slot: int, shape: Any, dtype: Any) -> bool:
    if sys.getrefcount(held[slot]) > _ALONE:
        return False
    x = held[slot]
    if type(x) is not np.ndarray or x.base is not None or not x.flags.owndata:
        return False
    return bool(x.shape == shape and x.dtype == dtype and x.flags.writeable)


# How many references the only one in a list looks like from inside depends on the interpreter, so
# it is asked once.
_ALONE = 0
_ALONE = next(n for n in range(1, 20) if [_ALONE := n] and _is_free([np.empty(1)], 0, (1,), float))


def into_free_memory(
    ufunc: Callable[..., Any],
    slots: Sequence[int],
    dying: Sequence[int],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Callable[[Held], Any]:
    """A step of a ufunc.

    Parameters
    ----------
    ufunc : numpy.ufunc
    slots : sequence of int
        Where the operands are.
    dying : sequence of int
        Those whose values nobody needs afterwards, and which have the shape and dtype of the
        result.
    shape, dtype
        Of the result.
    """
    key = (shape, dtype)
    dying = tuple(dying)
    slots = tuple(slots)

    def run(held: Held) -> Any:
        for k in dying:
            if _is_free(held, k, shape, dtype):
                return ufunc(*[held[s] for s in slots], out=held[k])
        spare = held[-1].get(key)
        if spare:
            return ufunc(*[held[s] for s in slots], out=spare.pop())
        return ufunc(*[held[s] for s in slots])

    return run


def set_aside(slot: int, key: tuple[Any, ...]) -> Callable[[Held], None]:
    """A step that lets the value of a slot go, and remembers its memory if it is free."""
    shape, dtype = key

    def run(held: Held) -> None:
        if _is_free(held, slot, shape, dtype):
            held[-1].setdefault(key, []).append(held[slot])

    return run
