"""Minimum cuts: the cheapest set of edges whose removal separates a source from a sink.

By maximum flow: while there is a path with remaining capacity, flow is added along the shortest
one; then the saturated edges that leave the nodes reachable from the source are the cut.  It is
implemented here because importing SciPy's implementation takes longer than tracing a loop and its
derivative.

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
    residual: dict[int, dict[int, int]] = {source: {}, sink: {}}
    for a, b, capacity in edges:
        forward, backward = residual.setdefault(a, {}), residual.setdefault(b, {})
        forward[b] = min(UNLIMITED, forward.get(b, 0) + capacity)
        backward.setdefault(a, 0)
    while True:
        predecessors = _shortest_paths(residual, source, sink)
        if sink not in predecessors:
            return set(predecessors)
        path = [sink]
        while path[-1] != source:
            path.append(predecessors[path[-1]])
        pairs = list(zip(path[1:], path, strict=False))
        flow = min(residual[a][b] for a, b in pairs)
        if flow >= UNLIMITED:
            raise ValueError("a path from the source to the sink cannot be cut")
        for a, b in pairs:
            if residual[a][b] < UNLIMITED:
                residual[a][b] -= flow
            residual[b][a] = min(UNLIMITED, residual[b][a] + flow)


def _shortest_paths(residual: dict[int, dict[int, int]], source: int, sink: int) -> dict[int, int]:
    """The predecessor of each reachable node on a shortest path."""
    predecessors = {source: source}
    frontier = [source]
    while frontier and sink not in predecessors:
        next_frontier = []
        for a in frontier:
            for b, capacity in residual[a].items():
                if capacity > 0 and b not in predecessors:
                    predecessors[b] = a
                    next_frontier.append(b)
        frontier = next_frontier
    return predecessors
