"""Loops with memory for few states: schedules are the best there are, derivatives stay the same."""

import functools
import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

import wengert as wg
from wengert._engine.control_flow.checkpoint_schedule import (
    advances,
    recomputed,
    reversal,
    stored_by_count,
    stored_by_distance,
)
from wengert._engine.control_flow.residuals import UNLIMITED, reached
from wengert.errors import ArgumentError


@functools.cache
def fewest(length, slots):
    """The fewest steps by trying all ways."""
    if length < 2:
        return 0
    if slots == 1:
        return length * (length - 1) // 2
    ways = (m + fewest(length - m, slots - 1) + fewest(m, slots) for m in range(1, length))
    return min(ways)


@pytest.mark.parametrize("slots", range(1, 8))
def test_no_schedule_takes_fewer_steps(slots):
    for length in range(60):
        actions = list(reversal(length, slots, 1))
        assert sum(a.steps for a in actions) == fewest(length, slots) == advances(length, slots)
        backwards = [a.begin + a.steps for a in actions if a.backwards]
        assert backwards == list(reversed(range(length)))
        assert max((a.slot for a in actions), default=0) < slots


@pytest.mark.sample(2)
@pytest.mark.parametrize("block", [1, 2, 3, 7])
@pytest.mark.parametrize("kept", [stored_by_count, stored_by_distance])
def test_the_backward_pass_from_what_is_left(kept, block):
    for length, slots in itertools.product(range(80), range(1, 6)):
        places = kept(length, slots, block)
        assert len(places) <= slots
        actions = list(reversal(length, slots, block, places))
        steps = [a.steps + a.backwards for a in actions]
        assert sum(steps) == recomputed(length, slots, block, places)
        ends = [a.begin + a.steps + a.backwards for a in actions if a.backwards]
        assert ends == sorted(ends, reverse=True) and ends[:1] == [length][: len(ends)]
        assert all(a.backwards <= block and a.slot < slots for a in actions)
        assert sum(a.backwards for a in actions) == length
        if kept is stored_by_count:
            first = places[-1]
            assert recomputed(length, slots, block) - first == recomputed(
                length, slots, block, places
            )


def test_a_million_steps_with_a_thousand_states():
    million = 10**6
    assert recomputed(million, 1000, 1000, stored_by_count(million, 1000, 1000)) == million
    assert recomputed(million, 1000, 1000, stored_by_distance(million, 1000, 1000)) == million
    assert recomputed(million, 100, 100, stored_by_count(million, 100, 100)) < 2.5 * million
    assert recomputed(million, 100, 100, stored_by_distance(million, 100, 100)) < 2.51 * million
    assert advances(million, 1000) / million < 2.5


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


def slow(slots):
    return pytest.param(slots, marks=pytest.mark.slow)


ROOMS = [1, slow(2), 5, 100, "24 B", slow("1 kB"), "1.5 KiB"]


def ways(f, *args):
    """The same by the interpreter and in native code."""
    return [wg.trace(f)(*args)(*args), wg.jit(f)(*args)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("slots", ROOMS)
def test_gradients_are_the_same(slots):
    for n in (0, 1, 2, 30):
        want = wg.grad(lorenz)(POINT, n)
        for got in ways(wg.grad(lambda p, n=n: lorenz(p, n, slots)), POINT):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


@pytest.mark.sample(3)
@pytest.mark.parametrize("slots", [1, 2, 3, 50])
def test_loops_of_unknown_length(slots):
    for got in ways(wg.grad(lambda a: newton(a, slots)), 2.0):
        np.testing.assert_allclose(got, wg.grad(newton)(2.0), rtol=1e-12)
    f = wg.jit(wg.grad(lambda x, n: powers(x, n, slots)))
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


def counted_by_itself(x, memory=None):
    """A loop whose number of steps is computed."""
    count = (np.abs(x[0]) * 3.0 + 3.0).astype(int)
    return wg.fori_loop(0, count, lambda i, c: np.sin(c) * x + 0.1 * i, x, memory=memory).sum()


def ending_by_itself(x, memory=None):
    """A loop that ends when its condition does not hold."""

    def step(c):
        return np.sin(c[0]) * 1.1 + 0.1 * x, c[1] + 0.3 + 0.1 * np.abs(x[1])

    return wg.while_loop(lambda c: c[1] < 2.0, step, (x, x[0]), memory=memory)[0].sum()


@pytest.mark.sample(1)
@pytest.mark.parametrize("loop", [counted_by_itself, ending_by_itself])
def test_all_derivatives_of_loops_of_unknown_length(loop):
    x, v = np.array([0.3, 0.7, -0.2]), np.array([1.0, -2.0, 0.5])
    rows = np.stack([x, -2.0 * x, x + 1.0])

    def derivatives(x, rows, memory):
        def f(x):
            return loop(x, memory)

        def along(x):
            return wg.jvp(f, (x,), (v,))[1]

        slope = wg.grad(f)

        def back(x):
            return slope(x) @ v

        return (
            wg.grad(back)(x),
            wg.grad(along)(x),
            wg.jvp(slope, (x,), (v,))[1],
            wg.hessian(f)(x) @ v,
            wg.grad(lambda x: wg.grad(back)(x) @ v)(x),
            wg.jvp(wg.grad(back), (x,), (v,))[1],
            wg.vmap(slope)(rows),
            wg.vmap(wg.grad(back))(rows),
            wg.vmap(lambda x: wg.jvp(slope, (x,), (v,))[1])(rows),
            wg.grad(lambda rows: np.sum(wg.grad(lambda r: np.sum(wg.vmap(f)(r)))(rows) ** 2))(rows),
        )

    wanted = derivatives(x, rows, None)
    for k in range(1, 4):
        np.testing.assert_allclose(wanted[k], wanted[0], 1e-12)
    each = np.stack([wg.grad(loop)(row) for row in rows])
    np.testing.assert_allclose(wanted[6], each, 1e-12)
    graph = wg.trace(lambda x, rows: derivatives(x, rows, 3))(x, rows)
    native = wg.jit(lambda x, rows: wg.vmap(wg.hessian(lambda x: loop(x, 3)))(rows) @ v)
    for found in (derivatives(x, rows, 3), graph(x, rows)):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, 1e-11, 1e-13)
    np.testing.assert_allclose(native(x, rows), wanted[7], 1e-11, 1e-13)


def test_the_backward_pass_keeps_no_more_than_there_is_memory_for():
    graph = wg.trace(wg.grad(lambda p: lorenz(p, 1000, 10)))(POINT)
    lines = [n for n in graph.nodes if n.op.kind == "control"]
    assert [n.op.name for n in lines] == ["scan", "checkpointed", "replay"]
    stacked = [s for n in lines for s in n.spec if s.shape[:1] == (1000,)]
    assert len(stacked) == 3  # ys, again ys, and the cotangent of the xs


@pytest.mark.parametrize("slots", [0, -1, 1.5, "2 B", "many", "3", None])
def test_what_is_no_room(slots):
    if slots is None:
        assert lorenz(POINT, 3, slots) == lorenz(POINT, 3)
        return
    with pytest.raises(ArgumentError, match=r"memory=.*test_memory.py"):
        lorenz(POINT, 3, slots)


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


def recurrent(p, n, memory=None):
    """Of states too large for registers, and of steps that are no arithmetic on a few numbers."""
    a = np.linspace(-1.0, 1.0, 100).reshape(10, 10) / 6.0

    def step(c, h):
        s, k = c
        s = np.tanh(a @ s + p[:10] * h) + 0.1 * np.sort(s)
        return (s, k + 1), np.sum(s) * h + k

    (s, _), ys = wg.scan(
        step, (np.ones(10) * p[0], 0.0), np.linspace(0.1, 1.0, n) * p[1], memory=memory
    )
    return np.sum(s) + np.sum(ys**2)


def settling(p, memory=None):
    a = np.linspace(-1.0, 1.0, 100).reshape(10, 10) / 6.0

    def step(c):
        s, k = c
        return np.tanh(a @ s + p[:10]) + 0.1 * np.sort(s), k + 1

    s, _ = wg.while_loop(lambda c: c[1] < 37, step, (np.ones(10) * p[0], 0), memory=memory)
    return np.sum(s**2)


WIDE = np.linspace(0.3, 1.2, 12)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "slots", [1, *map(slow, (2, 3, 5, 6)), 7, 36, slow(100), slow("500 B"), "2 kB"]
)
def test_states_that_are_arrays(slots):
    for n in (0, 1, 2, 17):
        value, want = wg.value_and_grad(recurrent)(WIDE, n)
        got = wg.jit(wg.value_and_grad(lambda p, n=n: recurrent(p, n, slots)))(WIDE)
        np.testing.assert_allclose(got[0], value, rtol=1e-12)
        np.testing.assert_allclose(got[1], want, rtol=1e-11, atol=1e-13)
    got = wg.jit(wg.grad(lambda p: settling(p, slots)))(WIDE)
    np.testing.assert_allclose(got, wg.grad(settling)(WIDE), rtol=1e-11)


def test_the_loop_forwards_runs_once():
    for f, args in (
        (lambda p: lorenz(p, 1000, 10), (POINT,)),
        (lambda a: newton(a, 10), (2.0,)),
        (lambda p: settling(p, 3), (WIDE,)),
    ):
        for g in (wg.grad(f), wg.value_and_grad(f)):
            graph = wg.trace(g)(*args).simplify()
            names = [n.op.name for n in graph.nodes if n.op.name in ("scan", "while", "replay")]
            left_by = [n for n in graph.nodes if n.op.name == "checkpointed"]
            assert names == ["replay"] and len(left_by) == 1
            got, want = graph(*args), g(*args)
            pairs = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
            for a, b in pairs:
                np.testing.assert_allclose(a, b, rtol=1e-12)


def test_rows_that_nobody_needs_are_not_stacked():
    def f(p):
        return wg.scan(lambda s, _: (np.sin(s * p), s), p, None, length=500, memory=5)[0]

    graph = wg.trace(wg.grad(f))(0.7).simplify()
    (line,) = [n for n in graph.nodes if n.op.name == "checkpointed"]
    assert [s.shape for s in line.spec] == [(), (5, 8)]
    np.testing.assert_allclose(wg.jit(wg.grad(f))(0.7), wg.grad(f)(0.7), rtol=1e-12)


@pytest.mark.parametrize("slots", [1, 2, 3, 7, 8])
def test_what_a_loop_leaves_is_as_the_schedule_says(slots):
    """Natively: the rows of the snapshots are the states before the steps that it names."""
    block = 3

    def states(stop):
        x = 2.0
        for _ in range(stop):
            yield x
            x = x * x * 0.25 + 0.5

    def loop(a, stop):
        step = lambda c: (c[0] + 1, c[1] * c[1] * 0.25 + 0.5)  # noqa: E731
        return wg.while_loop(lambda c: c[0] < stop, step, (0, a), memory=slots)[1]

    graph = wg.trace(wg.grad(loop))(2.0, np.int64(5))
    (line,) = [n for n in graph.nodes if n.op.name == "checkpointed"]
    params = {**line.params, "slots": slots, "block": block}
    leave = wg.jit(lambda a, n: line.op(n, np.int64(0), a, **params)[-1])
    for stop in (1, 2, 10, 11, 24, 25, 300):
        rows = leave(2.0, np.int64(stop))
        found = list(states(stop))
        for row, k in zip(rows, stored_by_distance(stop, slots, block), strict=False):
            assert row[:8].view(np.int64) == k and row[8:].view(np.float64) == found[k]


def test_explain_counts_the_steps_that_are_taken_again():
    explanation = wg.explain(wg.grad(lambda p: lorenz(p, 1000, 10)))(POINT)
    (note,) = explanation.note("checkpoints")
    assert (
        f"{recomputed(1000, 10, 10, stored_by_count(1000, 10, 10))} steps, 2.25 for each"
        in note.message
    )
    (note,) = wg.explain(wg.grad(lambda a: newton(a, 10)))(2.0).note("checkpoints")
    assert "each of up to 100 steps once" in note.message


def test_taylor_series_of_a_traced_gradient():
    def powers(x, memory):
        return wg.fori_loop(0, 9, lambda i, c: np.sin(c) * x + 0.1, x, memory=memory)

    def terms(memory):
        graph = wg.trace(wg.grad(lambda x: powers(x, memory)))(0.7)
        return wg.jet(graph, (0.7,), ([1.0, 0.0, 0.0],))[1]

    np.testing.assert_allclose(terms(3), terms(None), rtol=1e-12)
