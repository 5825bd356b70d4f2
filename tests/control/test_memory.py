"""Loops with room for few states: schedules are the best there are, derivatives stay the same."""

import functools

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

import wengert as wg
from wengert.control.cuts import UNLIMITED, reached
from wengert.control.schedule import advances, reversal
from wengert.errors import ArgumentError


@functools.cache
def fewest(length, room):
    """The fewest steps by trying all ways."""
    if length < 2:
        return 0
    if room == 1:
        return length * (length - 1) // 2
    ways = (m + fewest(length - m, room - 1) + fewest(m, room) for m in range(1, length))
    return min(ways)


@pytest.mark.parametrize("room", range(1, 8))
def test_no_schedule_takes_fewer_steps(room):
    for length in range(60):
        actions = list(reversal(length, room))
        assert sum(a.steps for a in actions) == fewest(length, room) == advances(length, room)
        backwards = [a.begin + a.steps for a in actions if a.backwards]
        assert backwards == list(reversed(range(length)))
        assert max((a.slot for a in actions), default=0) < room


def test_a_million_steps_with_a_thousand_states():
    assert advances(10**6, 1000) / 10**6 < 2.5
    assert advances(10**6, 10**6) == 10**6 - 1


def lorenz(p, n, memory=None):
    def rate(s):
        x, y, z = s[0], s[1], s[2]
        return np.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])

    def step(s, h):
        s = s + h * rate(s + 0.5 * h * rate(s))
        return s, s[0] * h

    s, ys = wg.scan(step, np.ones(3), np.full(n, 0.01) * p[0] / 10.0, memory=memory)
    return np.sum(s) + np.sum(ys**2)


def newton(a, memory=None):
    def step(c):
        k, x = c
        return k + 1, 0.5 * (x + a / x)

    far = lambda c: np.abs(c[1] * c[1] - a) > 1e-13  # noqa: E731
    return wg.while_loop(far, step, (0, a + 3.0), memory=memory)[1]


def powers(x, n, memory=None):
    return wg.fori_loop(0, n, lambda i, y: np.sin(y * x) + 0.01 * i, 1.0, memory=memory)


POINT = np.array([10.0, 28.0, 8.0 / 3.0])
ROOMS = [1, 2, 5, 100, "24 B", "1 kB", "1.5 KiB"]


def ways(f, *args):
    """The same by the interpreter and in native code."""
    return [wg.trace(f)(*args)(*args), wg.jit(f)(*args)]


@pytest.mark.parametrize("room", ROOMS)
def test_gradients_are_the_same(room):
    for n in (0, 1, 2, 30):
        want = wg.grad(lorenz)(POINT, n)
        for got in ways(wg.grad(lambda p, n=n: lorenz(p, n, room)), POINT):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("room", [1, 2, 3, 50])
def test_loops_of_unknown_length(room):
    for got in ways(wg.grad(lambda a: newton(a, room)), 2.0):
        np.testing.assert_allclose(got, wg.grad(newton)(2.0), rtol=1e-12)
    f = wg.jit(wg.grad(lambda x, n: powers(x, n, room)))
    for n in (0, 1, 7, 40):
        np.testing.assert_allclose(f(0.7, n), wg.grad(powers)(0.7, n), rtol=1e-12)


def test_further_derivatives():
    f = lambda p: lorenz(p, 12, 3)  # noqa: E731
    want = wg.hessian(lambda p: lorenz(p, 12))(POINT)
    for h in (wg.jacfwd(wg.grad(f)), wg.jacrev(wg.grad(f)), wg.hessian(f)):
        for got in ways(h, POINT):
            np.testing.assert_allclose(got, want, rtol=1e-10)
    rows = np.stack([POINT, POINT * 1.1])
    want = wg.vmap(wg.grad(lambda p: lorenz(p, 12)))(rows)
    for got in ways(wg.vmap(wg.grad(f)), rows):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_the_way_back_keeps_no_more_than_there_is_room_for():
    graph = wg.trace(wg.grad(lambda p: lorenz(p, 1000, 10)))(POINT)
    lines = [n for n in graph.nodes if n.op.kind == "control"]
    assert [n.op.name for n in lines] == ["scan", "replay"]
    stacked = [s for n in lines for s in n.spec if s.shape[:1] == (1000,)]
    assert len(stacked) == 2  # ys, and the cotangent of the xs


@pytest.mark.parametrize("room", [0, -1, 1.5, "2 B", "many", "3", None])
def test_what_is_no_room(room):
    if room is None:
        assert lorenz(POINT, 3, room) == lorenz(POINT, 3)
        return
    with pytest.raises(ArgumentError, match=r"memory=.*test_memory.py"):
        lorenz(POINT, 3, room)


def test_cuts_are_the_cheapest():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(2, 12))
        edges = [
            (int(a), int(b), int(c)) for a, b, c in rng.integers([0, 0, 1], [n, n, 20], (40, 3))
        ]
        edges = [e for e in edges if e[0] != e[1] and e[1] != 0 and e[0] != 1]
        capacity = np.zeros((n, n), np.int32)
        for a, b, c in edges:
            capacity[a, b] += c
        near = reached(edges, 0, 1)
        flow = csgraph.maximum_flow(sparse.csr_matrix(capacity), 0, 1).flow_value
        assert 1 not in near
        assert sum(c for a, b, c in edges if a in near and b not in near) == flow
    with pytest.raises(ValueError, match="cannot be cut"):
        reached([(0, 2, UNLIMITED), (2, 1, UNLIMITED)], 0, 1)
