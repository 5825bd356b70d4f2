"""Blocks: how a long sequence of nodes is split into groups.

A graph of ten thousand nodes without scopes must be divided to be legible.  Consecutive nodes
usually belong together, and a good cut is one that few values cross: between two iterations of a
loop, only the carry does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

FAN = 48  # a group with at most this number of members is not split
SLACK = 0.3  # maximum distance of a cut from an even split, as a fraction of a piece


def ranges(count: int, edges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Split ``range(count)`` into pieces, for one level of groups.

    Parameters
    ----------
    count : int
    edges : iterable of (int, int)
        Dependences of members: from the operand to its user.

    Returns
    -------
    list of (start, stop)
        The number of pieces is such that groups on all levels below have about the same size.
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
    """The number of values that cross the cut before each member."""
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
