"""Sums of computed numbers that belong to the same entry, in a fixed order.

Each number is added to its entry, one array after the other.  The positions are known when the plan
is made, and one thread adds, so the bits of a result repeat.

    summed_at    for each wanted key the sum of the numbers with that key
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.ops.indexing.template import IndexSlot

from .dependency_sets import Numbers


def summed_at(parts: Sequence[tuple[Numbers, Any]], wanted: Numbers) -> Any:
    """For each wanted key the sum of the numbers with that key; zero if there are none.

    Parameters
    ----------
    parts : sequence of (keys, vector)
        Numbers, with the key of each; -1 for none. Keys that are not wanted are ignored.
    wanted : ndarray of int
        May repeat keys.

    Returns
    -------
    tensor, or None if no number is wanted
    """
    keys, first, back = np.unique(wanted, return_index=True, return_inverse=True)
    # Each key is summed at its own position, if it is wanted once.
    alone = len(keys) == len(wanted)
    place = first if alone else np.arange(len(keys))
    total: Any = None
    for of_part, value in parts:
        at = np.minimum(np.searchsorted(keys, of_part), len(keys) - 1)
        kept = np.flatnonzero(keys[at] == of_part)
        if not kept.size:
            continue
        chosen, targets = value if kept.size == len(at) else value[kept], place[at[kept]]
        if total is None:
            total = lookup("scatter")(chosen, targets, index=IndexSlot(0), shape=(len(keys),))
        else:
            total = lookup("scatter_add")(total, chosen, targets, index=IndexSlot(0))
    return total if alone or total is None else total[back]
