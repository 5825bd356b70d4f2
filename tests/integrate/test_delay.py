"""Delay equations: the method of steps by hand, the order, derivatives, errors."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, StructureError
from wengert.integrate import solve_dde


def mackey_glass(p, steps=200):
    found = solve_dde(
        lambda t, y, delayed, p: p[0] * delayed[0] / (1 + delayed[0] ** 10) - p[1] * y,
        (0.0, 10.0),
        lambda t, p: np.array([0.5 + 0.1 * np.sin(t) * p[1]]),
        p[2],
        (p,),
        steps=steps,
    )
    return found.y[-1, 0]


def test_polynomials_of_the_method_of_steps_are_exact():
    found = solve_dde(
        lambda t, y, delayed: -delayed[0], (0.0, 3.0), lambda t: np.ones(1), 1.0, steps=30
    )
    np.testing.assert_allclose(found.y[[10, 20, 30], 0], [0.0, -0.5, -1 / 6], atol=1e-14)
    np.testing.assert_allclose(found.t, np.linspace(0, 3, 31))


def test_the_order_is_four_if_lags_are_multiples_of_the_step():
    p = np.array([2.0, 1.0, 2.0])
    exact = mackey_glass(p, 1600)
    errors = [abs(mackey_glass(p, n) - exact) for n in (50, 100, 200)]
    assert np.log2(errors[0] / errors[1]) > 3.5
    assert np.log2(errors[1] / errors[2]) > 3.5


def test_derivatives_with_respect_to_parameters_history_and_lags():
    p, h = np.array([2.0, 1.0, 2.0137]), 1e-6
    expected = [(mackey_glass(p + d) - mackey_glass(p - d)) / (2 * h) for d in h * np.eye(3)]
    np.testing.assert_allclose(wg.jit(wg.grad(mackey_glass))(p), expected, rtol=1e-6)
    np.testing.assert_allclose(wg.jit(wg.jacfwd(mackey_glass))(p), expected, rtol=1e-6)


def test_several_lags_and_containers():
    def rhs(t, y, delayed):
        one, two = delayed
        return {"a": -one["a"], "b": two["b"] - y["b"]}

    found = solve_dde(
        rhs,
        (0.0, 1.0),
        lambda t: {"a": 1.0 + 0 * t, "b": np.array([t, 2.0])},
        (0.5, 1.0),
        steps=20,
    )
    assert found.y["b"].shape == (21, 2)
    assert found.y["a"][10] == pytest.approx(0.5)


def test_bad_arguments():
    def call(**changes):
        given = {"t": (0.0, 3.0), "lags": 1.0, "steps": 30} | changes
        return solve_dde(
            lambda t, y, delayed: -delayed[0], given.pop("t"), lambda t: np.ones(1), **given
        )

    with pytest.raises(ArgumentError, match="below the step size"):
        call(lags=0.01)
    with pytest.raises(ArgumentError, match="increasing"):
        call(t=(3.0, 0.0))
    with pytest.raises(ArgumentError, match="positive integer"):
        call(steps=2.5)
    with pytest.raises(StructureError, match="the result of the function"):
        solve_dde(lambda t, y, d: {"a": y}, (0.0, 1.0), lambda t: np.ones(1), 1.0, steps=2)


def test_the_derivative_with_respect_to_a_lag_that_is_a_multiple_of_the_step():
    """The history and the solution have different slopes at the initial time."""

    def last(lag):
        found = solve_dde(
            lambda t, y, delayed: -delayed[0], (0.0, 2.0), lambda t: np.ones(1), lag, steps=20
        )
        return found.y[-1, 0]

    assert wg.grad(last)(1.0) == pytest.approx(-1.0, abs=1e-12)
    assert wg.jit(wg.grad(last))(1.0) == pytest.approx(-1.0, abs=1e-12)
