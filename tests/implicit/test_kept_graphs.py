"""Repeated eager calls: graphs of derivatives are reused, and results are never stale."""

import numpy as np

import wengert as wg
from wengert.scipy import optimize


def test_captured_values_are_current():
    """Numbers, arrays and branches that a function captures may change between calls."""
    state = {"power": 2, "shift": np.array([1.0, 2.0])}

    def solved(a):
        def equation(x):
            return x ** state["power"] + state["shift"] * x - a

        return np.sum(optimize.root(equation, np.ones(2)).x)

    def check():
        a = np.array([3.0, 5.0])
        x = optimize.root(lambda x: x ** state["power"] + state["shift"] * x - a, np.ones(2)).x
        want = 1.0 / (state["power"] * x ** (state["power"] - 1) + state["shift"])
        np.testing.assert_allclose(wg.grad(solved)(a), want, rtol=1e-7)

    for power in (2, 3, 2):
        state["power"] = power
        for shift in ([1.0, 2.0], [4.0, 0.5]):
            state["shift"] = np.array(shift)
            check()
            state["shift"][0] += 1.0
            check()


def test_large_and_small_captured_arrays():
    """Small arrays are constants of the graph, large ones operands; both are those of the call."""
    for n in (3, 200):
        for k in range(3):
            scale = np.linspace(1.0, 2.0, n) + k

            def f(b, scale=scale):
                return np.sum(wg.custom_linear_solve(lambda x: scale * x, b))

            np.testing.assert_allclose(wg.grad(f)(np.ones(n)), 1.0 / scale)


def test_dtypes_and_shapes():
    """Graphs are kept for each dtype and shape."""
    f = lambda b: np.sum(wg.custom_root(lambda y: 2.0 * y - b, b, lambda f, y: y))  # noqa: E731
    for dtype in (np.float32, np.float64):
        for n in (1, 2, 7):
            g = wg.grad(f)(np.ones(n, dtype))
            assert g.dtype == dtype and g.shape == (n,)
            np.testing.assert_allclose(g, 0.5)


def test_later_calls_trace_the_equation_only():
    """The second derivative of the same equation calls the function once or twice, not more."""
    calls = []

    def solved(a):
        def equation(x):
            calls.append(type(x).__name__)
            return x**2 - a

        return np.sum(wg.custom_root(equation, np.ones(3), lambda f, x: np.sqrt([2.0, 3.0, 4.0])))

    a = np.array([2.0, 3.0, 4.0])
    for _ in range(3):
        calls.clear()
        np.testing.assert_allclose(wg.grad(solved)(a), 0.5 / np.sqrt(a))
        assert len(calls) == 1


def test_callables_are_not_kept():
    """A solver of linear systems that is a function may read anything, so it is always called."""
    factors = iter([1.0, 2.0, 3.0])

    def tangent_solve(g, b):
        return next(factors) * b

    f = lambda b: np.sum(wg.custom_root(lambda y: y - b, b, lambda f, y: y, tangent_solve))  # noqa: E731
    assert [wg.grad(f)(1.0) for _ in range(3)] == [1.0, 2.0, 3.0]
