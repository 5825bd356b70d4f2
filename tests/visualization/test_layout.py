"""The layout: ranks, crossings, spacing, routes; on given and on random graphs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wengert._engine.visualization import layout
from wengert._engine.visualization.layout import (
    BOX_GAP,
    _coordinates,
    _ordered,
    _ranks,
    _spaced,
    _Vertices,
    arrange,
)

DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 14))
    edges = [
        (a, b)
        for b in range(1, n)
        for a in sorted(draw(st.sets(st.integers(0, b - 1), max_size=3)))
    ]
    sizes = [(float(draw(st.integers(20, 140))), 38.0) for _ in range(n)]
    return sizes, edges


@given(graphs())
def test_boxes_do_not_overlap_and_edges_go_down(graph):
    sizes, edges = graph
    found = arrange(sizes, edges)
    rows = {}
    for i, (x, y) in enumerate(found.centers):
        assert sizes[i][0] / 2 - 1e-6 <= x <= found.width - sizes[i][0] / 2 + 1e-6
        assert 0 <= y <= found.height
        rows.setdefault(y, []).append((x, sizes[i][0]))
    for row in rows.values():
        for (x, w), (next_x, next_w) in pairwise(sorted(row)):
            assert next_x - x >= (w + next_w) / 2 + BOX_GAP - 1e-6
    for (a, b), route in found.routes.items():
        assert route[0] == found.centers[a] and route[-1] == found.centers[b]
        assert all(q[1] > p[1] for p, q in pairwise(route))


def test_what_feeds_one_box_only_stands_above_it():
    #  0 - 2 - 3 - 5 with 1 and 4 feeding 5 late: they come down to the rank before it
    ranks, spine = _ranks(6, [(0, 2), (2, 3), (1, 4), (3, 5), (4, 5)])
    assert ranks == [0, 1, 1, 2, 2, 3]
    assert (3, 5) in spine and (4, 5) not in spine


def test_a_leaf_with_several_uses_stands_above_the_first():
    assert _ranks(4, [(0, 1), (1, 2), (2, 3), (0, 3)])[0] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "edges",
    [
        DIAMOND,
        [(0, 4), (1, 3), (2, 5), (3, 6), (4, 6), (5, 6)],
        [(0, 2), (1, 2), (0, 3), (2, 4), (3, 4)],
    ],
    ids=["diamond", "a tree in a muddle", "shared leaf"],
)
def test_planar_graphs_are_drawn_without_crossings(edges):
    n = 1 + max(b for _, b in edges)
    sizes = [(60.0, 38.0)] * n
    places = _Vertices(sizes, *_ranks(n, edges))
    for edge in edges:
        layout._chain(places, edge)
    assert layout._crossings(places, _ordered(places)) == 0


def test_counting_crossings():
    places = _Vertices([(10.0, 10.0)] * 6, [0, 0, 0, 1, 1, 1], set())
    for a, b in [(0, 5), (1, 4), (2, 3)]:
        places.join(a, b)
    assert layout._crossings(places, [[0, 1, 2], [3, 4, 5]]) == 3
    assert layout._crossings(places, [[2, 1, 0], [3, 4, 5]]) == 0


def test_a_chain_is_a_straight_line():
    sizes = [(50.0, 38.0), (120.0, 38.0), (70.0, 38.0)]
    places = _Vertices(sizes, *_ranks(3, [(0, 1), (1, 2)]))
    places.join(0, 1)
    places.join(1, 2)
    assert np.ptp(_coordinates(places, [[0], [1], [2]])) < 1e-9


def test_spacing_is_least_squares():
    places = _Vertices([(20.0, 10.0)] * 3, [0, 0, 0], set())
    got = _spaced(places, [0, 1, 2], [0.0, 0.0, 200.0], [1.0, 1.0, 1.0])
    need = places.distance(0, 1)
    np.testing.assert_allclose(got, [-need / 2, need / 2, 200.0])
    heavy = _spaced(places, [0, 1, 2], [0.0, 0.0, 200.0], [1.0, 3.0, 1.0])
    np.testing.assert_allclose(heavy, [-need * 0.75, need * 0.25, 200.0])


def test_a_wide_and_deep_graph_takes_no_time():
    rng = np.random.default_rng(0)
    edges = [(int(a), b) for b in range(1, 400) for a in rng.integers(max(0, b - 12), b, 2)]
    assert arrange([(80.0, 38.0)] * 400, edges).height > 0
