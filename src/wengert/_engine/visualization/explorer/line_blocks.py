"""Blocks: where to cut a long run of nodes into boxes.

A program of ten thousand lines without scopes has to fold into something.  Consecutive lines
usually belong together, and a good place to cut is one that few values cross: between two
iterations of a loop only what the loop carries does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

FAN = 48  # members that a box may have without being cut
SLACK = 0.3  # how far from even a cut may be, as a part of a piece


def ranges(count: int, edges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cut ``range(count)`` into pieces, for one level of boxes.

    Parameters
    ----------
    count : int
    edges : iterable of (int, int)
        Which member uses which: from the used to the user.

    Returns
    -------
    list of (start, stop)
        As many pieces as leave boxes of about the same size on every level below.
    """
    if count <= FAN:
        return [(0, count)]
    depth = math.ceil(math.log(count, FAN) - 1e-9)
    pieces = max(2, round(count ** (1.0 / depth)))
    crossing = _crossing(count, edges)
    size = count / pieces
    cuts = [0]
    for piece in range(1, pieces):
        ideal = piece * size
        low = max(cuts[-1] + 1, math.ceil(ideal - SLACK * size))
        high = min(count - (pieces - piece), math.floor(ideal + SLACK * size))
        choices = range(low, max(low, high) + 1)
        cuts.append(min(choices, key=lambda k: (crossing[k], abs(k - ideal))))
    return list(zip(cuts, [*cuts[1:], count], strict=True))


def _crossing(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """For each cut before a member, how many values cross it."""
    last = list(range(count))
    first = list(range(count))
    for a, b in edges:
        last[a] = max(last[a], b)
        first[a] = min(first[a], b)
    change = [0] * (count + 1)
    for a in range(count):
        if last[a] > first[a]:
            change[first[a] + 1] += 1
            if last[a] < count:
                change[last[a] + 1] -= 1
    total = 0
    for k in range(count):
        total += change[k]
        change[k] = total
    return change
