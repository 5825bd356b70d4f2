"""Backward differences of variable order: coefficients, orders, and derivatives of the steps.

That the steps and the counts are those of SciPy is in test_ivp_of_scipy and test_implicit_methods.
"""

import numpy as np
import pytest
import scipy.integrate
from scipy.linalg import expm

import wengert as wg
from wengert.errors import ConvergenceError
from wengert.integrate import Event, solve
from wengert.scipy.integrate.ivp.bdf_method import (
    ERROR,
    LEADING,
    SUMS,
    BdfCarry,
    BdfMethod,
    rescaled,
)
from wengert.scipy.integrate.ivp.method import IvpProblem, Tolerance

from .stiff_problems import PROBLEMS, RATES, robertson
from .test_implicit_methods import CONVERGED, SLOPE, coupled, heat, solution

ORDERS = [1, 2, 3, 4, 5]


def backward_differences(values):
    """Of order 1, 2, ... at the last of the values, which are the rows."""
    found = []
    while len(values) > 1:
        values = np.diff(values, axis=0)
        found.append(values[-1])
    return found


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_differences_for_another_step_size(ratio):
    """Of a polynomial of degree 5, from its values."""
    p = np.polynomial.Polynomial([1.0, -2.0, 0.5, 3.0, -1.0, 0.7])
    old, new = [backward_differences(p(h * np.arange(-5, 1))) for h in (1.0, ratio)]
    np.testing.assert_allclose(rescaled(old, ratio), new, rtol=1e-11, atol=1e-11)
    if ratio == 1.0:
        assert rescaled(old, ratio) == old


@pytest.mark.parametrize("order", ORDERS)
def test_the_formulas(order):
    """Exact for polynomials of its degree; for the next degree the error is the stated one."""
    h = 0.5
    for exponent in range(order + 2):
        values = (h * np.arange(-order, 2.0)) ** exponent
        differences = backward_differences(values[:-1])
        d = backward_differences(values)[order]
        formula = np.dot(SUMS[1 : order + 1], differences) + LEADING[order] * d
        exact = h * exponent * h ** max(exponent - 1, 0)
        np.testing.assert_allclose(exact - formula, ERROR[order] * d, atol=1e-13)
        assert (abs(d) > 1e-3) == (exponent > order)


def planned(carry, h, order):
    """What a step of a given size and order takes; as equal steps begin anew, it chooses none."""
    return BdfCarry(*carry)._replace(
        order=order * np.ones((), int), count=np.int64(0), planned=h * np.ones(())
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("order", ORDERS)
def test_halving_the_steps_shows_the_order(order):
    method, problem, end = BdfMethod(), IvpProblem(coupled), 1.0

    @wg.jit
    def run(start, h, n):
        def step(_, state):
            t, y, carry = state
            found = method.step(
                problem, t, h, y, tuple(planned(carry, h, order)), Tolerance(1e-11, 1e-11)
            )
            return t + h, found.y, found.carry

        carry = BdfCarry(*method.start(problem, np.zeros(()), start[-1]))
        differences = (*backward_differences(start), *[np.zeros(2)] * (5 - order))
        carry = carry._replace(differences=differences, step=h * np.ones(()))
        return wg.fori_loop(0, n, step, (0.0, start[-1], tuple(carry)))[1]

    errors = []
    for n in (40, 80):
        h = end / n
        start = np.stack([solution(k * h) for k in range(-order, 1)])
        errors.append(np.abs(run(start, h, n) - solution(end)).max())
    assert np.log2(errors[0] / errors[1]) > order - 0.3, errors


SIZES = np.array([2.0, 2.0, 3.0, 3.0, 3.0, 1.0, 2.0, 2.0, 2.0]) * 1e-3
SCHEDULE = np.array([1, 1, 2, 2, 3, 2, 3, 4, 5])
Q = np.array([3.0, 0.5, 1.2])


def steps_of(size):
    """A number that depends on parameters and the initial state, after steps of several orders."""
    y0, method = np.linspace(0.5, 1.0, size), BdfMethod()

    def last(q):
        problem = IvpProblem(lambda t, y: heat(t, y, q[:2]))

        def step(state, given):
            t, y, carry, all_converged = state
            h, order = given
            found = method.step(problem, t, h, y, tuple(planned(carry, h, order)), CONVERGED)
            middle = method.interpolate(0.5, h, y, found.y, found.dense)
            return (t + h, found.y, found.carry, all_converged & found.converged), middle

        start = np.zeros(()), y0 * q[2]
        state = (*start, method.start(problem, *start), np.bool_(True))
        (_, y, _, all_converged), middles = wg.scan(step, state, (SIZES, SCHEDULE))
        return np.sum(y**2) + middles[-1, 0], all_converged

    return last


STEPS = 1e-3 * np.eye(3)


@pytest.mark.sample(1)
@pytest.mark.parametrize("size", [2, 6])
def test_derivatives_of_steps_are_exact(size):
    """Beside differences on the same steps, of order 4."""
    last = steps_of(size)
    both = wg.jit(wg.value_and_grad(last, has_aux=True))
    value = lambda q: both(q)[0][0]  # noqa: E731
    (_, converged), slope = both(Q)
    assert converged
    near, far = [np.array([value(Q + d) - value(Q - d) for d in k * STEPS]) for k in (1, 2)]
    np.testing.assert_allclose(slope, (8 * near - far) / 12e-3, rtol=1e-7, atol=1e-9)
    forward = wg.jit(wg.jacfwd(lambda q: last(q)[0]))(Q)
    np.testing.assert_allclose(forward, slope, rtol=1e-9)


def test_second_derivatives_of_steps():
    first = lambda q: steps_of(2)(q)[0]  # noqa: E731
    direction = np.array([1.0, -2.0, 0.5])
    both = wg.jit(lambda q: wg.jvp(wg.grad(first), (q,), (direction,)))  # one program
    second = both(Q)[1]
    near, far = [both(Q + k * direction)[0] - both(Q - k * direction)[0] for k in (1e-3, 2e-3)]
    np.testing.assert_allclose(second, (8 * near - far) / 12e-3, rtol=1e-7, atol=1e-9)


def test_the_gradient_of_a_solution():
    """In both modes; beside the gradient of solutions with tight tolerances."""

    def last(rates):
        y0, options = np.array([1.0, 0.0, 0.0]), {"rtol": 1e-8, "atol": 1e-12}
        return solve(robertson, (0.0, 40.0), y0, (rates,), method="BDF", **options).y[0]

    slope = wg.jit(wg.grad(last))(RATES)
    np.testing.assert_allclose(wg.jit(wg.jacfwd(last))(RATES), slope, rtol=1e-9)
    np.testing.assert_allclose(slope, SLOPE, rtol=1e-5)


def test_oscillations_with_many_new_jacobians():
    """The counts are those of SciPy; times differ because the period amplifies rounding."""
    f, y0, end, _ = PROBLEMS["van der Pol"]
    jac = wg.jit(wg.jacobian(lambda y: f(0.0, y)))
    options = {"rtol": 1e-5, "atol": 1e-8}
    ours = solve(f, (0.0, end), np.array(y0), method="BDF", **options)
    theirs = scipy.integrate.solve_ivp(f, (0.0, end), y0, "BDF", jac=lambda t, y: jac(y), **options)
    assert (ours.nfev, ours.njev, ours.nlu) == (theirs.nfev, theirs.njev, theirs.nlu)
    assert ours.njev > 50


def test_a_change_of_the_state_begins_at_order_1():
    """A ball that loses a part of its speed when it is reflected."""
    bounce = Event(lambda t, y: y[0], -1.0, reset=lambda t, y: np.stack([0.0 * y[0], -0.8 * y[1]]))

    def height(speed):
        found = solve(
            lambda t, y: np.stack([y[1], -2.0 + 0.0 * t]), (0.0, 1.5),
            np.stack([0.0 * speed, speed]), method="BDF", events=bounce, max_events=4,
        )  # fmt: skip
        return found.y[0]

    # Reflected at t = speed with speed 0.8 * speed.
    rest = lambda v: (0.8 * v) * (1.5 - v) - (1.5 - v) ** 2  # noqa: E731
    value, slope = wg.jit(wg.value_and_grad(height))(1.0)
    assert value == pytest.approx(rest(1.0), rel=1e-5)
    assert slope == pytest.approx((rest(1.0 + 1e-5) - rest(1.0 - 1e-5)) / 2e-5, rel=1e-4)


def test_a_right_hand_side_that_is_not_finite():
    with pytest.raises(ConvergenceError, match="not finite"):
        solve(lambda t, y: np.sqrt(1.0 - t) * y, (0.0, 2.0), np.ones(2), method="BDF")


def test_complex_states_with_a_jacobian_of_many_unknowns():
    matrix = np.diag(np.linspace(-1, -50, 8)) + 1j * np.diag(np.arange(7.0), 1)
    options = {"rtol": 1e-6, "atol": 1e-9}
    found = solve(lambda t, y: matrix @ y, (0.0, 2.0), np.ones(8) + 1j, method="BDF", **options)
    np.testing.assert_allclose(
        found.y, expm(2.0 * matrix) @ (np.ones(8) + 1j), rtol=1e-3, atol=1e-6
    )
