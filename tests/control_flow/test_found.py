"""Faults that random programs with loops have found, each at its smallest."""

import numpy as np
import pytest

import wengert as wg

X = np.arange(3.0)
A = np.arange(9.0).reshape(3, 3) / 7.0


@pytest.mark.sample(8)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 10])
@pytest.mark.parametrize(
    "read",
    [lambda m: m.T, lambda m: m[::-1], lambda m: np.sin(m.T), lambda m: m + m[0]],
    ids=["transposed", "reversed", "a function", "a row"],
)
def test_a_carry_is_read_elsewhere_before_it_is_written_over(n, read):
    """One walk wrote one carry where it lay while it read it, transposed, for the other."""
    a = np.arange(float(n * n)).reshape(n, n) / n

    def f(a):
        def step(c, row):
            return (read(c[1]), np.sin(a + row) + np.cos(a + row)), None

        return wg.scan(step, (np.zeros((n, n)), np.zeros((n, n))), a)[0][0]

    np.testing.assert_allclose(wg.jit(f)(a), f(a), 1e-12, 1e-12)


def test_a_copy_in_a_body_is_written_to():
    """It shared its line with what was copied, and counted as a write to something outside."""

    def f(x, s):
        def step(i, c):
            y = x.copy()
            y[0] = c
            return c + np.sum(y * x)

        return wg.fori_loop(0, 3, step, s)

    for way in (
        wg.grad,
        lambda f: wg.jit(wg.grad(f)),
        lambda f: wg.vmap(wg.grad(f), None, None, 1),
    ):
        np.testing.assert_allclose(way(f)(X, 0.3), wg.grad(f)(X, 0.3), 1e-12)
    assert wg.trace(wg.grad(f))(X, 0.3)(X, 0.3).shape == (3,)


def test_what_a_choice_returns_is_its_own():
    def f(x, k):
        y = wg.switch(k, [lambda v: v, lambda v: x], 2.0 * x)
        y[0] = 7.0
        return np.sum(x) + np.sum(y)

    for k in (0, 1):
        assert f(X.copy(), k) == wg.jit(f)(X, k) == wg.trace(f)(X, k)(X, k)
    kept = X.copy()
    f(kept, 1)
    np.testing.assert_array_equal(kept, X)


def test_steps_write_to_what_is_their_own():
    """First carry, rows and what was collected do not change with a later step."""

    def step(c, row):
        row[0] = 5.0
        c[0] += row[1]
        return c, c

    start, rows = X.copy(), A.copy()
    end, ys = wg.scan(step, start, rows)
    np.testing.assert_array_equal(start, X)
    np.testing.assert_array_equal(rows, A)
    np.testing.assert_allclose(ys[:, 0], np.cumsum(A[:, 1]))
    assert type(end) is np.ndarray and type(ys) is np.ndarray
    for way in (wg.jit, lambda f: wg.trace(f)(X, A)):
        found = way(lambda c, rows: wg.scan(step, c, rows))(X, A)
        np.testing.assert_allclose(found[0], end)
        np.testing.assert_allclose(found[1], ys)


def test_one_array_carried_twice():
    def step(i, c):
        a, b = c
        a[i] = 9.0
        return b, b

    def f(x):
        return np.stack(wg.fori_loop(0, 3, step, (x, x)))

    np.testing.assert_array_equal(wg.jit(f)(X), f(X))
    np.testing.assert_array_equal(f(X), np.stack([X, X]) * 1.0)


def test_what_is_recorded_is_written_into_a_plain_carry():
    def f(x):
        def step(i, y):
            y[i] = x[i] * y[i - 1]
            return y

        return np.sum(wg.fori_loop(1, 3, step, np.ones(3)))

    np.testing.assert_allclose(wg.grad(f)(X + 1.0), [0.0, 4.0, 2.0])
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X + 1.0), [0.0, 4.0, 2.0])


def test_a_branch_that_is_not_chosen_does_not_run():
    """What a branch takes from outside only was computed before the choice."""
    graph = wg.trace(lambda x, y: wg.cond(y > 0.0, lambda: np.sqrt(x) @ x, lambda: np.sum(x)))(
        X, 1.0
    )
    assert not [n for n in graph.nodes if n.op.name in ("sqrt", "matmul", "sum")]


def test_what_an_inner_loop_does_not_need_is_dropped():
    """Parts of a line that had been dropped were looked for."""

    def f(x):
        def step(c, _):
            a, b = wg.fori_loop(0, 3, lambda i, d: (d[0] * x, d[1] + 1.0), c)
            return (a, b), None

        return wg.scan(step, (x, x), None, 2)[0][0]

    graph = wg.trace(wg.grad(f))(1.1)
    np.testing.assert_allclose(graph.simplify()(1.1), 7 * 1.1**6)


def test_what_a_known_choice_returns_in_a_body_is_of_the_body():
    """It shared its line with what it was chosen from, outside, and could not be written to."""

    def f(x, s):
        def step(i, c):
            y = wg.cond(True, lambda: x, lambda: 2.0 * x)
            y[0] = c
            return c + np.sum(y * x)

        return wg.fori_loop(0, 3, step, s)

    for way in (wg.jit, lambda f: wg.trace(f)(X, 0.3), lambda f: wg.trace(f)(X, 0.3).simplify()):
        np.testing.assert_allclose(way(f)(X, 0.3), f(X.copy(), 0.3), 1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X, 0.3), wg.grad(f)(X, 0.3), 1e-12)
