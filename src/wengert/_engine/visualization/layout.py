"""Layered layout of a directed acyclic graph: positions of boxes and routes of edges.

The four steps of Sugiyama's method, each in a simple form:

    ranks        the longest path from the leaves; leaves, and nodes that depend on leaves only, are
                 moved down to their first use
    dummies      an edge over several ranks gets a dummy in each rank that it crosses
    order        barycenter passes down and up; the order with the fewest crossings is used
    coordinates  further passes: the boxes of a rank move to the means of their neighbors, as
                 closely as order and minimum distances allow; this is isotonic regression, which
                 is solved exactly

References: K. Sugiyama, S. Tagawa, M. Toda, IEEE Trans. SMC 11(2), 109-125, 1981.  E. R. Gansner et
al., IEEE Trans. Software Eng. 19(3), 214-230, 1993.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

Edge = tuple[int, int]
Point = tuple[float, float]

# Distances in pixels.
BOX_GAP = 26.0  # between boxes of a rank
EDGE_GAP = 12.0  # between edges that cross a rank
RANK_GAP = 46.0
ITERATIONS = 24  # passes over all ranks


class GraphLayout(NamedTuple):
    """The positions of boxes and edges.

    Attributes
    ----------
    centers : list of (float, float)
        The center of each box.
    routes : dict
        The points of each edge, from box to box.
    width, height : float
        The size of the drawing.
    """

    centers: list[Point]
    routes: dict[Edge, list[Point]]
    width: float
    height: float


class _Vertices:
    """Boxes and dummies with their ranks, sizes, and neighbors above and below."""

    def __init__(
        self, sizes: Sequence[tuple[float, float]], ranks: list[int], spine: set[Edge]
    ) -> None:
        self.rank = list(ranks)
        self.spine = spine  # edges of longest paths
        self.width = [w for w, _ in sizes]
        self.height = [h for _, h in sizes]
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        self.dummy = [False] * len(sizes)

    def add_dummy(self, rank: int) -> int:
        """Add a dummy for an edge that crosses a rank."""
        self.rank.append(rank)
        self.width.append(0.0)
        self.height.append(0.0)
        self.above.append([])
        self.below.append([])
        self.dummy.append(True)
        return len(self.rank) - 1

    def join(self, a: int, b: int) -> None:
        """Add an edge between adjacent ranks."""
        self.below[a].append(b)
        self.above[b].append(a)

    def stiffness(self, a: int, b: int) -> float:
        """The weight of an edge in the mean: the highest for long edges, then for longest paths."""
        if self.dummy[a] or self.dummy[b]:
            return 4.0 if self.dummy[a] and self.dummy[b] else 0.5
        return 1.0 if (a, b) in self.spine or (b, a) in self.spine else 0.1

    def distance(self, a: int, b: int) -> float:
        """The minimum distance between the centers of neighbors in a rank."""
        gap = EDGE_GAP if self.dummy[a] and self.dummy[b] else BOX_GAP
        return (self.width[a] + self.width[b]) / 2 + gap


def arrange(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> GraphLayout:
    """Place boxes in ranks from top to bottom.

    Parameters
    ----------
    sizes : sequence of (width, height)
        The size of each box.
    edges : sequence of (int, int)
        Each from a box to a later one.
    """
    unique = list(dict.fromkeys(edges))
    vertices = _Vertices(sizes, *_ranks(len(sizes), unique))
    chains = {edge: _chain(vertices, edge) for edge in unique}
    layers = _ordered(vertices)
    x = _coordinates(vertices, layers)
    return _layout(vertices, layers, x, chains, len(sizes))


def _ranks(n: int, edges: Sequence[Edge]) -> tuple[list[int], set[Edge]]:
    """Ranks, and the edges of longest paths.

    The rank is the length of the longest path from a leaf; then boxes with a single consumer are
    moved down to it.
    """
    rank = [0] * n
    uses: list[list[int]] = [[] for _ in range(n)]
    operands: list[list[int]] = [[] for _ in range(n)]
    for a, b in sorted(edges, key=lambda e: e[1]):
        rank[b] = max(rank[b], rank[a] + 1)
        uses[a].append(b)
        operands[b].append(a)
    spine = {(a, b) for a, b in edges if rank[b] == rank[a] + 1}
    free = [False] * n  # can move down without making edges longer: all boxes above move too
    for i in range(n):
        free[i] = all(free[a] and len(uses[a]) == 1 for a in operands[i])
    for i in range(n - 1, -1, -1):
        if free[i] and uses[i]:
            rank[i] = min(rank[b] for b in uses[i]) - 1
    return rank, spine


def _chain(vertices: _Vertices, edge: Edge) -> list[int]:
    a, b = edge
    middle = [vertices.add_dummy(r) for r in range(vertices.rank[a] + 1, vertices.rank[b])]
    chain = [a, *middle, b]
    for one, two in pairwise(chain):
        vertices.join(one, two)
    return chain


# ---- order -------------------------------------------------------------------------------------


def _ordered(vertices: _Vertices) -> list[list[int]]:
    """The boxes and dummies of each rank from left to right, with few crossings."""
    layers: list[list[int]] = [[] for _ in range(max(vertices.rank, default=-1) + 1)]
    for i in _by_depth(vertices):
        layers[vertices.rank[i]].append(i)
    best, fewest = [list(layer) for layer in layers], _crossings(vertices, layers)
    for iteration in range(ITERATIONS):
        if not fewest:
            break
        down = iteration % 2 == 0
        rows = range(1, len(layers)) if down else range(len(layers) - 2, -1, -1)
        for r in rows:
            _sort_by_neighbors(layers, r, vertices.above if down else vertices.below, down)
        _swap_neighbors(vertices, layers)
        count = _crossings(vertices, layers)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    return best


def _by_depth(vertices: _Vertices) -> list[int]:
    """All boxes and dummies, depth first from the bottom: connected ones are close together."""
    order: dict[int, None] = {}
    stack = [i for i in range(len(vertices.rank)) if not vertices.below[i]][::-1]
    while stack:
        i = stack.pop()
        if i not in order:
            order[i] = None
            stack.extend(reversed(vertices.above[i]))
    return list(order)


def _sort_by_neighbors(
    layers: list[list[int]], r: int, neighbors: list[list[int]], down: bool
) -> None:
    fixed = layers[r - 1 if down else r + 1]
    position = {i: k for k, i in enumerate(fixed)}
    keys = {}
    for k, i in enumerate(layers[r]):
        positions = [position[j] for j in neighbors[i]]
        # A box without neighbors keeps its position.
        keys[i] = sum(positions) / len(positions) if positions else k * len(fixed) / len(layers[r])
    layers[r].sort(key=keys.__getitem__)


def _swap_neighbors(vertices: _Vertices, layers: list[list[int]]) -> None:
    """Exchange adjacent boxes wherever that removes crossings."""
    position = {i: k for layer in layers for k, i in enumerate(layer)}
    for layer in layers:
        for k in range(len(layer) - 1):
            a, b = layer[k], layer[k + 1]
            now = _between(vertices, a, b, position)
            if _between(vertices, b, a, position) < now:
                layer[k], layer[k + 1] = b, a
                position[a], position[b] = k + 1, k


def _between(vertices: _Vertices, a: int, b: int, position: dict[int, int]) -> int:
    """Crossings of the edges of two adjacent boxes, a to the left of b."""
    total = 0
    for neighbors in (vertices.above, vertices.below):
        right = sorted(position[j] for j in neighbors[b])
        total += sum(bisect_left(right, position[i]) for i in neighbors[a])
    return total


def _crossings(vertices: _Vertices, layers: list[list[int]]) -> int:
    """The number of crossing pairs of edges: inversions, counted by insertion."""
    total = 0
    for upper, lower in pairwise(layers):
        position = {i: k for k, i in enumerate(lower)}
        seen: list[int] = []
        for i in upper:
            ends = sorted(position[j] for j in vertices.below[i])
            total += sum(len(seen) - bisect_left(seen, e + 1) for e in ends)
            for e in ends:
                insort(seen, e)
    return total


# ---- coordinates -------------------------------------------------------------------------------


def _coordinates(vertices: _Vertices, layers: list[list[int]]) -> list[float]:
    x = [0.0] * len(vertices.rank)
    for layer in layers:
        at = 0.0
        for k, i in enumerate(layer):
            at += vertices.distance(layer[k - 1], i) if k else 0.0
            x[i] = at
    for iteration in range(ITERATIONS):
        down = iteration % 2 == 0
        for r in range(len(layers)) if down else range(len(layers) - 1, -1, -1):
            layer = layers[r]
            targets, weights = [], []
            for i in layer:
                near = vertices.above[i] if down else vertices.below[i]
                near = near or vertices.above[i] + vertices.below[i]
                if iteration >= ITERATIONS - 4:  # the last iterations use neighbors on both sides
                    near = vertices.above[i] + vertices.below[i]
                edges = [vertices.stiffness(i, j) for j in near]
                if near:
                    target = sum(w * x[j] for w, j in zip(edges, near, strict=True)) / sum(edges)
                else:
                    target = x[i]
                targets.append(target)
                weights.append(max(edges, default=0.1))
            for i, value in zip(layer, _spaced(vertices, layer, targets, weights), strict=True):
                x[i] = value
    return x


def _spaced(
    vertices: _Vertices, layer: list[int], targets: list[float], weights: list[float]
) -> list[float]:
    """The positions nearest to the targets with the same order and the minimum distances.

    Least squares under x[k+1] - x[k] >= distance: with the distances subtracted this is isotonic
    regression, which the pool-adjacent-violators algorithm solves exactly.
    """
    offsets = [0.0]
    for a, b in pairwise(layer):
        offsets.append(offsets[-1] + vertices.distance(a, b))
    blocks: list[list[float]] = []  # mean, weight, count
    for target, weight, offset in zip(targets, weights, offsets, strict=False):
        blocks.append([target - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, w, count = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * w) / (last[1] + w)
            last[1] += w
            last[2] += count
    flat = [mean for mean, _, count in blocks for _ in range(int(count))]
    return [z + offset for z, offset in zip(flat, offsets, strict=False)]


def _layout(
    vertices: _Vertices,
    layers: list[list[int]],
    x: list[float],
    chains: dict[Edge, list[int]],
    n: int,
) -> GraphLayout:
    y = [0.0] * len(x)
    top = 0.0
    for layer in layers:
        tallest = max(vertices.height[i] for i in layer)
        for i in layer:
            y[i] = top + tallest / 2
            if vertices.dummy[i]:
                vertices.height[i] = tallest
        top += tallest + RANK_GAP
    left = min((x[i] - vertices.width[i] / 2 for i in range(len(x))), default=0.0)
    right = max((x[i] + vertices.width[i] / 2 for i in range(len(x))), default=0.0)
    routes = {}
    for edge, (start, *middle, end) in chains.items():
        route = [(x[start] - left, y[start])]
        for i in middle:  # straight through the rank, between its boxes
            half = vertices.height[i] / 2
            route += [(x[i] - left, y[i] - half), (x[i] - left, y[i] + half)]
        routes[edge] = [*route, (x[end] - left, y[end])]
    centers = [(x[i] - left, y[i]) for i in range(n)]
    return GraphLayout(centers, routes, right - left, max(0.0, top - RANK_GAP))
