"""Repeated eager calls: graphs of derivatives are reused, and results are never stale."""

import numpy as np

import wengert as wg
from wengert._engine.implicit import kept_graphs, roots
from wengert.scipy import optimize
from wengert.scipy.optimize import equations


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


def _slope_and_difference(loss, a, step=1e-3):
    """The derivative of a function in one direction, and a central difference."""
    direction = np.array([0.6, -0.3, 0.8])
    ends = [float(loss(a + h * direction)) for h in (step, -step)]
    return wg.grad(loss)(a) @ direction, (ends[0] - ends[1]) / (2 * step)


def _minima(state):
    """Losses of minima whose functions and bounds read `state`."""

    def objective(x, a):
        return np.sum((x - a) ** 2 * state["weights"]) + state["quartic"] * np.sum(x**4)

    def bounded(a):
        ends = [(-1.0, state["upper"])] * 3
        x = optimize.minimize(lambda x: objective(x, a), np.zeros(3), bounds=ends, tol=1e-12).x
        return np.sum(x**2)

    def constrained(a):
        total = {"type": "ineq", "fun": lambda x: np.sum(x * state["weights"]) - state["upper"]}
        x = optimize.minimize(
            lambda x: objective(x, a), np.zeros(3), constraints=total, tol=1e-12
        ).x
        return np.sum(x**2)

    def fitted(a):
        def residuals(x):
            return np.concatenate([(x - a) * state["weights"], state["quartic"] * x**2])

        given = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
        return np.sum(optimize.least_squares(residuals, np.zeros(3), **given).x ** 2)

    def program(a):
        return wg.optim.nlp(
            lambda x: objective(x, a),
            np.zeros(3),
            lambda x: np.sum(x * state["weights"]),
            lower=state["upper"],
            tol=1e-10,
        ).fun

    return bounded, constrained, fitted, program


def test_minima_with_captured_values_that_change():
    """Numbers, arrays in place and bounds of other values give the minima of these values."""
    state = {"weights": np.array([1.0, 2.0, 0.5]), "quartic": 0.1, "upper": 0.4}
    a = np.array([0.3, 1.5, -2.0])
    for loss in _minima(state):
        for change in (
            {},
            {"quartic": 0.3},
            {"upper": 0.9},
            {"weights": np.array([0.7, 1.0, 2.0])},
            {"quartic": 0},
        ):
            state |= change
            state["weights"][1] += 0.25
            given, wanted = _slope_and_difference(loss, a)
            np.testing.assert_allclose(given, wanted, atol=3e-3)


def test_minima_with_other_numbers_derive_nothing_again():
    """The graphs of derivatives are those of the first call, whatever numbers are captured."""
    state = {"weights": np.array([1.0, 2.0, 0.5]), "quartic": 0.1, "upper": 0.4}
    a = np.array([0.3, 1.5, -2.0])
    for loss in _minima(state):
        wg.grad(loss)(a)
        before = _kept_counts()
        for quartic in (0.2, 0.3):
            state["quartic"] = quartic
            state["weights"] = state["weights"] + 0.1
            wg.grad(loss)(a)
        assert _kept_counts() == before


def _kept_counts():
    kept = (equations._kept, kept_graphs._kept, roots._products)
    return [set(k._values) for k in kept]
