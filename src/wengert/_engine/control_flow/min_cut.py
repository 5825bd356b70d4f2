"""Minimum cuts: the cheapest set of edges whose removal separates a source from a sink.

By maximum flow: while there is a path with remaining capacity, flow is added along the
shortest one; then the saturated edges that leave the nodes reachable from the source are the cut.
Importing SciPy's takes longer than tracing a loop and its derivative, so it is implemented here.

    reached     the nodes on the side of the source
    UNLIMITED   the capacity of an edge that is never cut

J. Edmonds and R. M. Karp, *Theoretical improvements in algorithmic efficiency for network flow
problems* (1972).
"""

from __future__ import annotations

from collections.abc import Iterable

UNLIMITED = 1 << 60


def reached(edges: Iterable[tuple[int, int, int]], source: int, sink: int) -> set[int]:
    """The nodes that are reachable from the source in the residual graph of a maximum flow.

    Parameters
    ----------
    edges : iterable of (node, node, capacity)
    source, sink : int

    Raises
    ------
    ValueError
        There is no cut: a path consists of unlimited edges only.
    """
    left: dict[int, dict[int, int]] = {source: {}, sink: {}}
    for a, b, capacity in edges:
        there, back = left.setdefault(a, {}), left.setdefault(b, {})
        there[b] = min(UNLIMITED, there.get(b, 0) + capacity)
        back.setdefault(a, 0)
    while True:
        before = _paths(left, source, sink)
        if sink not in before:
            return set(before)
        path = [sink]
        while path[-1] != source:
            path.append(before[path[-1]])
        pairs = list(zip(path[1:], path, strict=False))
        flow = min(left[a][b] for a, b in pairs)
        if flow >= UNLIMITED:
            raise ValueError("a path from the source to the sink cannot be cut")
        for a, b in pairs:
            if left[a][b] < UNLIMITED:
                left[a][b] -= flow
            left[b][a] = min(UNLIMITED, left[b][a] + flow)


def _paths(left: dict[int, dict[int, int]], source: int, sink: int) -> dict[int, int]:
    """The predecessor of each reachable node on a shortest path."""
    before = {source: source}
    front = [source]
    while front and sink not in before:
        after = []
        for a in front:
            for b, capacity in left[a].items():
                if capacity > 0 and b not in before:
                    before[b] = a
                    after.append(b)
        front = after
    return before
