"""New arrays and ranges whose lengths a loop computes: they have these lengths when it runs."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

N = 20
X = np.random.default_rng(3).uniform(-1, 1, N)


def filled(x):
    s = 0.0
    for i in range(1, N):
        b = np.zeros(i)
        b[:] = x[:i]
        b[0] = 2.0
        s += np.sum(b**2) + np.sum(np.ones(i) * x[:i]) + np.sum(np.full((i,), x[0]) * b)
    return s


def element_by_element(x):
    s = 0.0
    for i in range(1, N):
        b = np.empty(i)
        for j in range(i):
            b[j] = x[j] * i
        s += b[i - 1] * b[0]
    return s


def matrices(x):
    s = 0.0
    for i in range(1, N):
        b = np.zeros((i, 2))
        b[:, 0] = x[:i]
        b[i - 1, 1] = x[0]
        s += np.sum(b**2) + np.sum(np.eye(i) * x[:i])
    return s


def ranges(x):
    s = 0.0
    for i in range(N):
        s += np.sum(np.arange(i) * x[:i]) + np.sum(x[np.arange(i, N)])
        s += np.sum(np.arange(i, 2, -1) * x[0]) + np.sum(np.arange(1, i, 3) ** 2 * x[1])
        s += np.mean(np.sin(np.arange(i + 1, dtype=float) * x[i]))
    return s


def loops_over_ranges(x):
    s = 0.0
    for i in range(N):
        for j in np.arange(i):
            s = 0.9 * s + x[j] * 0.5
    return s


def lengths_of_data(x):
    s = 0.0
    for i in range(N):
        n = int(abs(x[i]) * 20)
        s += np.sum(np.arange(n) * x[i]) + np.sum(np.ones(n) * x[i] ** 2)
    return s


def while_loops(x):
    n, s = 1, 0.0
    while n < N:
        s += np.sum(np.sin(np.arange(n) * x[n]))
        n += 2
    return s


PROGRAMS = [
    filled, element_by_element, matrices, ranges, loops_over_ranges, lengths_of_data, while_loops,
]  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled_functions_are_right(f):
    gradient = wg.grad(f)
    for x in (X, -X[::-1]):
        np.testing.assert_allclose(wg.jit(f)(x), f(x), rtol=1e-12)
        np.testing.assert_allclose(wg.jit(gradient)(x), gradient(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(wg.vmap(f)(np.stack([X, -X])), [f(X), f(-X)], rtol=1e-12)
    v = np.cos(X)
    product = wg.jit(wg.grad(lambda x: np.sum(wg.grad(f)(x) * v)))(X)
    step = 1e-5
    differences = (gradient(X + step * v) - gradient(X - step * v)) / (2 * step)
    np.testing.assert_allclose(product, differences, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("f", PROGRAMS[:-1], ids=lambda f: f.__name__)
def test_loops_become_nodes(f):
    assert len(wg.trace(f)(X).nodes) < 10


def test_a_negative_length():
    def f(x, k):
        s = 0.0
        for i in range(N):
            s += np.sum(np.zeros(i - k)) + x[i]
        return s

    g = wg.trace(f)(X, 0)
    np.testing.assert_allclose(g(X, 0), X.sum())
    with pytest.raises(ValueError, match=r"negative dimensions.*test_computed_lengths.py"):
        g(X, 2)


def test_a_length_outside_of_loops():
    def ones(x):
        return np.sum(np.ones(int(abs(x[0]) * 9)))

    def numbers(x):
        return np.sum(np.arange(int(abs(x[0]) * 9)) * x[1])

    for f in (ones, numbers):
        with pytest.raises(TraceError, match=r"greatest length.*test_computed_lengths.py"):
            wg.jit(f)(X)

    def part(x):
        return np.sum(np.arange(N)[: int(abs(x[0]) * 9)] * x[1])

    np.testing.assert_allclose(wg.jit(part)(X), part(X))
    with pytest.raises(TraceError, match="not an integer"):
        wg.jit(lambda x: sum(np.sum(np.arange(0.0, x[i], 0.1)) for i in range(N)))(X)


def parts_behind_a_constant(x, n):
    s = 0.0
    for i in range(n):
        v = x[i:]
        s += np.sum(v[:-1]) + np.sum(v[2:]) + np.sum(v[-3:]) + np.sum(v[::2])
        s += np.sum(v[1:5:3] ** 2) + np.sum(v[:-4]) + np.sum(v[:3]) + np.sum(v[1:3])
    return s


def products_of_neighbors(x, n):
    s = 0.0
    for i in range(1, n):
        v = x[:i]
        s += np.sum(v[1:] * v[:-1]) + np.sum(v[2:] * v[:-2]) + np.sum(np.diff(v) ** 2)
    return s


def stores_at_constants(x, n):
    y = x * 1.0
    for i in range(n):
        v = y[i:]
        v[1:4] *= 0.5
        v[-2:] += 1.0
    return np.sum(y**2)


def corners(x, n):
    a, s = np.outer(x, x), 0.0
    for i in range(n):
        v = a[i:, : i + 1]
        s += np.sum(v[:3, -2:]) + np.sum(v[1:])
    return s


CONSTANTS = [parts_behind_a_constant, products_of_neighbors, stores_at_constants, corners]


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", CONSTANTS, ids=lambda f: f.__name__)
def test_constant_bounds_of_slices_are_clipped(f):
    """Also where the array that is indexed is shorter in the last iterations."""
    for n in (N - 3, N - 1, N, N + 1):
        np.testing.assert_allclose(wg.jit(f)(X, n), f(X, n), rtol=1e-12)
        gradient = wg.grad(f)
        np.testing.assert_allclose(wg.jit(gradient)(X, n), gradient(X, n), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("read", "n"),
    [
        (lambda v: v[3], N - 3),
        (lambda v: v[-1], N),
        (lambda v: v[0] * np.sum(v[1:]), N),
        (lambda v: v.__setitem__(2, 5.0) or v.sum(), N - 2),
    ],
)
def test_constant_positions_are_checked(read, n):
    def f(x, n):
        s = 0.0
        for i in range(n):
            s += read(x[i:] * 1.0)
        return s

    compiled = wg.jit(f)
    np.testing.assert_allclose(compiled(X, n), f(X, n), rtol=1e-12)
    with pytest.raises(IndexError, match=r"out of bounds.*test_computed_lengths.py"):
        compiled(X, n + 1)
