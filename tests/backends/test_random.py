"""Streams of random numbers: the same numbers eager, traced and by hand; none is drawn twice."""

import copy
import pickle
import threading

import numpy as np
import pytest
from scipy import stats

import wengert as wg
from wengert._engine.ops.random import bits as ops
from wengert.errors import ArgumentError, DtypeError, ShapeError


def drawn(stream, n):
    return stream.normal(n), stream.uniform((n, 2), -1.0, 1.0), stream.integers(0, 1000, n)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_eager_and_traced_draw_the_same():
    eager, traced = wg.random.Stream(7), wg.random.Stream(7)
    graph = wg.trace(lambda x: drawn(traced, x.shape[0]))(wg.spec("n"))
    rounds = [drawn(eager, n) for n in (3, 3, 5)]
    for n, want in zip((3, 3, 5), rounds, strict=True):
        assert same(graph(np.zeros(n)), want)
    assert not same(rounds[0], rounds[1])
    assert same(drawn(traced, 4), drawn(eager, 4))  # eagerly, after the graph has drawn
    assert same(wg.random.Stream(7).normal(3), rounds[0][0])
    assert not same(wg.random.Stream(8).normal(3), rounds[0][0])


def test_by_hand_with_updates():
    stream = wg.random.Stream(1)
    a, b = stream.normal(4), stream.normal(4)
    f = wg.computation((a, b), updates=stream.updates())
    got = np.concatenate([np.ravel(f()) for _ in range(5)])
    other = wg.random.Stream(1)
    want = np.concatenate([other.normal(4).numpy() for _ in range(10)])
    assert np.array_equal(got, want)
    assert len(set(got)) == 40


def test_nothing_is_drawn_twice_by_threads():
    stream = wg.random.Stream(2)
    step = wg.trace(lambda x: stream.uniform() + x)(0.0)
    found = []

    def work():
        found.extend(float(step(0.0)) for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(found)) == 200
    other = wg.random.Stream(2)
    assert set(found) == {other.uniform().item() for _ in range(200)}


def test_distributions():
    stream = wg.random.Stream(3)
    n = 20_000
    assert stats.kstest(stream.uniform(n, 2.0, 5.0).numpy(), "uniform", (2, 3)).pvalue > 1e-4
    assert stats.kstest(stream.normal(n, 1.0, 2.0).numpy(), stats.norm(1, 2).cdf).pvalue > 1e-4
    counts = np.bincount(stream.integers(0, 7, n).numpy(), minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-4
    assert abs(np.corrcoef(stream.normal(n), stream.normal(n))[0, 1]) < 0.03


def test_dtypes_and_refusals():
    stream = wg.random.Stream([1, 2])
    assert stream.normal(2, dtype="float32").dtype == np.float32
    assert stream.uniform(2, 0.0, 2.0, dtype="float32").dtype == np.float32
    assert stream.integers(0, 9, 2, "uint8").dtype == np.uint8
    assert stream.normal().shape == ()
    with pytest.raises(DtypeError, match="float64 or float32"):
        stream.normal(2, dtype="int64")
    with pytest.raises(DtypeError, match="not an integer dtype"):
        stream.integers(0, 3, dtype="float64")
    with pytest.raises(ArgumentError, match=r"no integer in \[3, 3\)"):
        stream.integers(3, 3)
    with pytest.raises(ArgumentError, match="seed="):
        wg.random.Stream(-1)
    with pytest.raises((ShapeError, DtypeError), match=r"uint64\[3\]"):
        wg.trace(lambda s: ops.normal(s, number=0, shape=(2,), dtype=np.dtype(float)))(wg.spec(2))


def test_derivatives_pass_to_mean_and_deviation():
    stream = wg.random.Stream(4)

    def f(mean, deviation):
        return np.sum(stream.normal(5, mean, deviation))

    graph = wg.trace(wg.grad(f, (0, 1)))(1.0, 2.0)
    noise = wg.random.Stream(4).normal(5).numpy()
    mean_bar, deviation_bar = graph(0.0, 1.0)
    assert mean_bar == 5.0
    np.testing.assert_allclose(deviation_bar, noise.sum(), rtol=1e-14)


def test_the_state_is_saved_and_restored():
    stream = wg.random.Stream(5)
    graph = wg.trace(lambda x: x + stream.normal())(0.0)
    graph(0.0)
    state = np.array(stream.state)
    first = graph(0.0)
    with wg.no_grad():
        stream.state[...] = state
    assert graph(0.0) == first


def test_copies_are_streams_of_their_own():
    stream = wg.random.Stream(6)
    stream.normal()
    restored = pickle.loads(pickle.dumps(stream))
    assert np.array_equal(restored.normal(3), copy.deepcopy(stream).normal(3))
    assert wg.trace(lambda x: x + restored.normal())(0.0)(0.0) != 0.0
    twin = copy.deepcopy(stream)
    assert np.array_equal(twin.normal(3), stream.normal(3))
    graph = wg.trace(lambda x: x + twin.normal())(0.0)
    before = np.array(stream.state)
    graph(0.0)
    assert np.array_equal(stream.state, before)
    assert not np.array_equal(twin.state, before)


def test_rows_do_not_say_whether_they_share_numbers():
    stream = wg.random.Stream(9)
    with pytest.raises(wg.errors.TraceError, match="wrote to a tensor from outside"):
        wg.vmap(lambda x: x + stream.normal())(np.zeros(3))
    noise = stream.normal(3)
    out = wg.vmap(lambda x, e: x + e)(np.zeros(3), noise)
    assert np.array_equal(out, noise)


def test_an_array_of_states_gives_numbers_for_each():
    states = np.array([[1, 2, 3], [4, 5, 6]], np.uint64)
    params = {"number": 0, "shape": (4,), "dtype": np.dtype(float)}
    want = np.array([ops.normal.run(s, **params) for s in states])
    assert np.array_equal(ops.normal.run(states, **params), want)
    assert np.array_equal(wg.vmap(lambda s: ops.normal(s, **params))(states), want)


def test_positions_wrap_around():
    state = np.array([1, 2, (1 << 64) - 1], np.uint64)
    params = {"shape": (2,), "dtype": np.dtype(float)}
    ahead = ops.normal.run(state, number=1, **params)
    start = ops.normal.run(np.array([1, 2, 0], np.uint64), number=0, **params)
    assert np.array_equal(ahead, start)
