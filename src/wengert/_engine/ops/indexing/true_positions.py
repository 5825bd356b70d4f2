"""The positions at which a mask is true, while their number is not known.

They are the first elements of an array of the length of the mask:

    mask         F T T F T
    rank         0 0 1 1 2      cumsum(mask) - 1: the number of each true element
    positions    1 2 4 0 0      a window of length 3

true_positions   the positions along each axis of a mask, as windows
rank_of_true     the rank of each element, and the number of true elements
compacted        the elements of an array that a mask selects, as a window
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import link, shape_of, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.uniform_arrays import zeros

from ..creation import positions
from ..elementwise.selection import where
from .slice_ends import SliceRange, as_value, clipped
from .template import IndexSlot
from .window_operators import moved_to_start
from .windows import Window

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

_INTEGER = np.dtype(np.int64)


def rank_of_true(mask: Array) -> tuple[Any, Any]:
    """The rank of each element of a mask of one axis, and the number of true elements."""
    mask = value_of(mask)
    ranks = lookup("cumsum")(lookup("cast")(mask, dtype=_INTEGER), axis=0) - 1
    return ranks, lookup("sum")(mask, axis=None)


def true_positions(mask: Array | Window) -> list[Window]:
    """The positions along each axis of a mask at which it is true.

    Parameters
    ----------
    mask : Tensor, array or Window
        Of booleans; nonzero numbers count as true.
    """
    if isinstance(mask, Window):
        for axis in mask.ranges:
            mask = moved_to_start(mask, axis)
        mask = mask.filled(False)
    mask = mask if isinstance(mask, np.ndarray) else value_of(mask)
    shape = shape_of(mask)
    flat = mask.reshape((-1,))
    if flat.dtype.kind != "b":
        flat = flat != 0
    n = shape_of(flat)[0]
    ranks, count = rank_of_true(flat)
    target = where(flat, ranks, as_value(n))
    ordered = lookup("setitem")(
        zeros(Spec((n + 1,), _INTEGER)), positions(n), target, index=IndexSlot(0)
    )[:n]
    found = []
    for k, length in enumerate(shape):
        inner = math.prod(shape[k + 1 :])
        places = ordered if isinstance(inner, int) and inner == 1 else ordered // as_value(inner)
        found.append(places if k == 0 else places % as_value(length))
    return [Window(p, {0: SliceRange(0, count)}) for p in found]


def compacted(x: Any, mask: Array) -> Window:
    """The elements of an array that a mask of its shape selects, in order; a view of the array."""
    flat = mask.reshape((-1,))
    (places,) = true_positions(flat)
    ranks, _ = rank_of_true(flat)
    last = as_value(shape_of(flat)[0]) - 1

    def take(base: Array) -> Any:
        return base.reshape((-1,))[places.whole]

    def put(base: Array, view: Array) -> Any:
        moved = view[clipped(ranks, 0, last)].reshape(shape_of(base))
        return where(mask, moved, base)

    view = take(x)
    link(view, x, take, put, shares=True)
    return Window(view, places.ranges)
