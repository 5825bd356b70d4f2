"""Buffer reuse: large arrays that are no longer needed during a run are overwritten.

    into_free_memory   a step that computes into the memory of an operand, or into a free array
    set_aside          a step that frees a value and keeps its memory for reuse

Both take the list of all slots, whose last element is a dictionary from (shape, dtype) to free
arrays.  An array is free if its slot has the only reference to it and it is not a view: a view of
it, a user's variable, a value kept by an operation would each have a reference.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

LIMIT = 1 << 16  # bytes; below it the allocator is faster than the check of references

Held = list[Any]


def _is_free(held: Held, slot: int, shape: Any, dtype: Any) -> bool:
    if sys.getrefcount(held[slot]) > _ALONE:
        return False
    x = held[slot]
    if type(x) is not np.ndarray or x.base is not None or not x.flags.owndata:
        return False
    return bool(x.shape == shape and x.dtype == dtype and x.flags.writeable)


# The reference count of an array with a single reference depends on the Python interpreter: it is
# measured once.
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
        The slots of the operands.
    dying : sequence of int
        The slots of operands with their last use here, and with the shape and dtype of the
        result.
    shape, dtype
        Those of the result.
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
    """A step that clears a slot, and keeps its array for reuse if it is free."""
    shape, dtype = key

    def run(held: Held) -> None:
        if _is_free(held, slot, shape, dtype):
            held[-1].setdefault(key, []).append(held[slot])

    return run
