"""Loops that overwrite arrays: what their backward pass stores, and what it restores.

Each program is compared with the eager tape of the same loop in Python, which keeps every version,
with central differences, and with itself when nothing is restored.
"""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.control_flow import vjp

RNG = np.random.default_rng(7)


def _loop(start, stop, step, body, x):
    """A loop over a range with any step."""
    trips = len(range(start, stop, step))
    return wg.fori_loop(0, trips, lambda k, y: body(start + step * k, y), x)


def _unrolled(start, stop, step, body, x):
    for i in range(start, stop, step):
        x = body(i, x)
    return x


def previous(loop, x, n):
    def body(i, x):
        x[i] = x[i] * x[i - 1]
        return x

    return loop(1, n, 1, body, x)


def following(loop, x, n):
    def body(i, x):
        x[i] = x[i + 1] * x[i]
        return x

    return loop(0, n - 1, 1, body, x)


def itself(loop, x, n):
    def body(i, x):
        x[i] = x[i] * x[i]
        return x

    return loop(0, n, 1, body, x)


def twice(loop, x, n):
    def inner(i, x):
        x[i] = wg.numpy.sin(x[i]) * x[i - 1]
        return x

    return loop(0, 2, 1, lambda k, x: loop(0, n, 1, inner, x), x)


def repeated(loop, x, n):
    places = np.array([0, 2, 2, 1, 0, 2])

    def body(i, x):
        j = wg.numpy.take(places, i)
        x[j] = x[j] + x[i] * x[j]
        return x

    return loop(0, min(n, 6), 1, body, x)


def modulo(loop, x, n):
    y = 1.0 + x * 0.5

    def body(i, x):
        x[i % 3] = x[i % 3] * y[i]
        return x

    return loop(0, n, 1, body, x)


def downwards(loop, x, n):
    def body(i, x):
        x[i - 1] = x[i - 1] * x[i]
        return x

    return loop(n - 1, 0, -2, body, x)


def wraps(loop, x, n):
    def body(i, x):
        x[i] = x[i] - x[i] * x[i - 1]
        return x

    return loop(0, n, 1, body, x)


def swapped(loop, x, n):
    def body(i, s):
        a, b = s
        a[i] = a[i] * b[i - 1]
        return b, a

    a, b = loop(0, n, 1, body, (x, x * 0.5 + 1.0))
    return a + 2.0 * b


def slices(loop, x, n):
    def body(i, x):
        x[1:] = x[1:] * x[:-1]
        x[i] = wg.numpy.tanh(x[i])
        return x

    return loop(0, n, 1, body, x)


def sums(loop, x, n):
    def body(i, s):
        x, place = s
        place = place + i
        x[place % 4] = x[place % 4] * wg.numpy.cos(x[i])
        return x, place

    return loop(0, n, 1, body, (x, wg.numpy.asarray(np.int64(3))))[0]


def no_steps(loop, x, n):
    def body(i, x):
        x[i] = x[i] * x[i]
        return x

    return loop(3, 3, 1, body, x) * x


PROGRAMS = [
    *(previous, following, itself, twice, repeated, modulo, downwards, wraps, swapped, slices),
    *(sums, no_steps),
]


def _inputs(dtype=np.float64, n=6):
    return RNG.uniform(0.5, 1.5, n).astype(dtype), RNG.normal(size=n).astype(dtype)


def _loss(program, loop, w):
    def f(x):
        y = x * 1.0
        return (program(loop, y, len(w)) * w).sum()

    return f


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradients_are_those_of_the_unrolled_loop(program, dtype):
    x, w = _inputs(dtype)
    want = wg.grad(_loss(program, _unrolled, w))(x)
    f = _loss(program, _loop, w)
    tight = 1e-12 if dtype is np.float64 else 2e-5
    np.testing.assert_allclose(wg.jit(f)(x), _loss(program, _unrolled, w)(x), rtol=tight)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), want, rtol=tight, atol=tight)
    graph = wg.trace(wg.grad(f))(x)
    np.testing.assert_allclose(graph(x), want, rtol=tight, atol=tight)
    assert want.dtype == wg.jit(wg.grad(f))(x).dtype == dtype


@pytest.mark.sample(6)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradients_are_those_of_central_differences(program):
    x, w = _inputs()
    f = wg.jit(_loss(program, _loop, w))
    v, h = RNG.normal(size=6), 1e-5
    line = (8 * (f(x + h * v) - f(x - h * v)) - f(x + 2 * h * v) + f(x - 2 * h * v)) / (12 * h)
    slope = wg.jit(wg.grad(_loss(program, _loop, w)))(x) @ v
    np.testing.assert_allclose(slope, line, rtol=1e-7, atol=1e-7)


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_second_derivatives(program):
    x, w = _inputs()
    f, g = _loss(program, _loop, w), _loss(program, _unrolled, w)
    v = RNG.normal(size=6)
    want = wg.jvp(wg.grad(g), (x,), (v,))[1]
    forward = wg.jit(lambda x: wg.jvp(wg.grad(f), (x,), (v,))[1])(x)
    reverse = wg.jit(wg.grad(lambda x: wg.grad(f)(x) @ v))(x)
    np.testing.assert_allclose(forward, want, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(reverse, want, rtol=1e-11, atol=1e-11)


@pytest.mark.sample(6)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_numbers_do_not_depend_on_what_is_restored(program, monkeypatch):
    x, w = _inputs()
    f = _loss(program, _loop, w)
    want = wg.jit(wg.grad(f))(x)
    vjp.pulled.cache_clear()
    monkeypatch.setattr(vjp, "chains_of", lambda *_: [])
    got = wg.jit(wg.grad(lambda x: f(x)))(x)
    vjp.pulled.cache_clear()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("memory", [1, 2, 7])
def test_memory_limits_give_the_same_numbers(memory):
    x, w = _inputs(n=9)

    def body(i, x):
        x[i] = x[i] * wg.numpy.sin(x[i - 1])
        return x

    def f(x, **more):
        return wg.fori_loop(1, 9, body, x * 1.0, **more) @ w

    want = wg.jit(wg.grad(f))(x)
    got = wg.jit(wg.grad(lambda x: f(x, memory=memory)))(x)
    np.testing.assert_array_equal(got, want)


def test_zero_in_a_product_is_not_divided_by():
    q = np.array([1.0, 2.0, 0.0, 3.0, 0.5], np.float32)

    def f(q):
        def body(i, c):
            c[i] = c[i - 1] * q[i]
            return c

        return wg.fori_loop(1, 5, body, wg.numpy.ones(5, np.float32) * q[0]).sum()

    got = wg.jit(wg.grad(f))(q)
    np.testing.assert_allclose(got, [3, 1, 2 + 6 + 3, 0, 0])


def _stored(graph):
    """The specs of what the loops of a graph store, without those of inner loops."""
    found = []
    for node in graph.nodes:
        if node.op.name == "scan":
            found += node.spec[node.params["carried"] :]
    return found


def _bytes(graph):
    return sum(int(np.prod(s.shape)) * s.dtype.itemsize for s in _stored(graph))


def _stencil(x):
    n = x.shape[0]

    def column(i):
        def step(j, x):
            x[i, j] = (x[i - 1, j] + x[i, j - 1] + x[i, j] + x[i, j + 1] + x[i + 1, j]) / 5
            return x

        return step

    def row(i, x):
        return wg.fori_loop(1, n - 1, column(i), x)

    return wg.fori_loop(0, 3, lambda t, x: wg.fori_loop(1, n - 1, row, x), x * 1.0).sum()


def test_a_linear_stencil_stores_nothing():
    assert _stored(wg.trace(wg.grad(_stencil))(np.ones((8, 8)))) == []


def test_an_array_is_restored_element_by_element():
    def f(x):
        def row(i, x):
            def column(j, x):
                x[i, j] = x[i, j] * wg.numpy.sin(x[i - 1] @ x[j])
                return x

            return wg.fori_loop(0, x.shape[0], column, x)

        return wg.fori_loop(0, x.shape[0], row, x * 1.0).sum()

    sizes = [_bytes(wg.trace(wg.grad(f))(np.ones((n, n)))) for n in (10, 20)]
    assert sizes[1] <= 5 * sizes[0]
    assert sizes[0] <= 3 * 8 * 10**2
    x = RNG.uniform(0.2, 0.5, (5, 5))
    h = 1e-6
    v = RNG.normal(size=(5, 5))
    line = (wg.jit(f)(x + h * v) - wg.jit(f)(x - h * v)) / (2 * h)
    np.testing.assert_allclose((wg.jit(wg.grad(f))(x) * v).sum(), line, rtol=1e-7)


def _cholesky(loop, a):
    n = a.shape[0]
    k = np.arange(n)

    def row(i, a):
        def column(j, a):
            s = wg.numpy.where(k < j, a[i] * a[j], 0.0).sum()
            a[i, j] = (a[i, j] - s) / a[j, j]
            return a

        a = loop(0, i, 1, column, a)
        s = wg.numpy.where(k < i, a[i] * a[i], 0.0).sum()
        a[i, i] = wg.numpy.sqrt(a[i, i] - s)
        return a

    return loop(0, n, 1, row, a)


def _triangular(start, stop, step, body, x):
    return wg.fori_loop(start, stop, body, x)


@pytest.mark.sample(1)
@pytest.mark.parametrize("memory", [None, 2])
def test_cholesky_stores_as_many_numbers_as_its_result_has(memory):
    def f(loop):
        return lambda a: (_cholesky(loop, a * 1.0) * w[: len(a), : len(a)]).sum()

    def limited(start, stop, step, body, x):
        return wg.fori_loop(start, stop, body, x, memory=memory)

    w = RNG.normal(size=(20, 20))
    a = np.eye(6) * 6 + RNG.uniform(size=(6, 6))
    want = wg.grad(f(_unrolled))(a)
    g = wg.grad(f(limited))
    np.testing.assert_allclose(wg.jit(g)(a), want, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(wg.trace(g)(a)(a), want, rtol=1e-12, atol=1e-14)
    v = RNG.normal(size=(6, 6))
    second = wg.jvp(wg.grad(f(_unrolled)), (a,), (v,))[1]
    np.testing.assert_allclose(wg.jit(lambda a: wg.jvp(g, (a,), (v,))[1])(a), second, rtol=1e-10)
    twice = wg.jit(wg.grad(lambda a: (g(a) * v).sum()))(a)
    np.testing.assert_allclose(twice, second, rtol=1e-9, atol=1e-12)
    if memory is None:
        sizes = [_bytes(wg.trace(g)(np.eye(n) * 6 + 1)) for n in (10, 20)]
        assert sizes[1] <= 5 * sizes[0]
        assert sizes[0] <= 4 * 8 * 10**2


def test_inner_loops_with_a_bounded_number_of_steps():
    r = RNG.normal(size=7) * 0.2

    def f(loop):
        def step(k, s):
            y, alpha = s

            def add(i, y):
                y[i] = y[i] + alpha * y[k - 1 - i] * y[i]
                return y

            y = loop(0, k, 1, add, y)
            alpha = alpha * 0.5 + y[k - 1]
            y[k] = alpha
            return y, alpha

        return lambda r: loop(1, 7, 1, step, (r * 1.0, r[0] * 1.0))[0] @ np.arange(7.0)

    want = wg.grad(f(_unrolled))(r)
    g = wg.grad(f(_triangular))
    np.testing.assert_allclose(wg.jit(g)(r), want, rtol=1e-12)
    np.testing.assert_allclose(wg.trace(g)(r)(r), want, rtol=1e-12)
    value, again = wg.jit(wg.value_and_grad(f(_triangular)))(r)
    np.testing.assert_allclose(again, want, rtol=1e-12)
    np.testing.assert_allclose(value, f(_unrolled)(r), rtol=1e-13)
