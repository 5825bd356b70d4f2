"""Forms in which functions of SciPy's solvers return values: lists, sparse arrays, library names.

As in SciPy, a function may return a list where an array is meant, also of numbers that are traced.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy import optimize as theirs

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError, ShapeError
from wengert.scipy import optimize


def _circle(a):
    return lambda x: [x[0] ** 2 - a, x[1] - x[0]]


def _least(a):
    return lambda x: (x[0] - a) ** 2 + x[1] ** 2


# name: the first unknown as a function of a parameter, and its derivative at 2
CASES = {
    "root": (lambda a: theirs.root(_circle(a), [1.0, 1.0]).x[0], 0.5 / np.sqrt(2.0)),
    "fsolve": (lambda a: theirs.fsolve(_circle(a), [1.0, 1.0])[0], 0.5 / np.sqrt(2.0)),
    "root with a Jacobian": (
        lambda a: theirs.root(_circle(a), [1, 1], jac=lambda x: [[2 * x[0], 0], [-1, 1]]).x[0],
        0.5 / np.sqrt(2.0),
    ),
    "least_squares": (
        lambda a: theirs.least_squares(_circle(a), [1.0, 1.0]).x[0],
        0.5 / np.sqrt(2.0),
    ),
    "leastsq": (lambda a: theirs.leastsq(_circle(a), [1.0, 1.0])[0][0], 0.5 / np.sqrt(2.0)),
    "a gradient": (
        lambda a: (
            theirs.minimize(
                _least(a), [1.0, 1.0], jac=lambda x: [2 * (x[0] - a), 2 * x[1]]
            ).x[0]
        ),
        1.0,
    ),
    "an equality": (
        lambda a: (
            theirs.minimize(
                _least(0.0), [1, 1], constraints={"type": "eq", "fun": lambda x: [x[0] - a]}
            ).x[0]
        ),
        1.0,
    ),
    "a nonlinear constraint": (
        lambda a: (
            theirs.minimize(
                _least(0.0), [1, 1],
                constraints=theirs.NonlinearConstraint(lambda x: [x[0] - a, x[1]], 0, 0),
            ).x[0]
        ),
        1.0,
    ),
    "a sparse Hessian": (
        lambda a: (
            theirs.minimize(
                _least(a), [1.0, 1.0], method="newton-cg",
                hess=lambda x: scipy.sparse.csr_array(2.0 * np.eye(2)),
            ).x[0]
        ),
        1.0,
    ),
    "an initial guess": (
        lambda a: theirs.minimize(theirs.rosen, [1.2, a], tol=1e-10).fun + a,
        1.0,
    ),
    "bounds that are arrays": (
        lambda a: (
            theirs.minimize(
                _least(a), [1.0, 1.0], bounds=[(np.array([-5.0]), np.array([5.0])), (None, 3.0)]
            ).x[0]
        ),
        1.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    """Eager and compiled."""
    f, wanted = CASES[name]
    np.testing.assert_allclose(wg.grad(f)(2.0), wanted, rtol=1e-6)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(2.0), wanted, rtol=1e-6)


def test_functions_are_converted_outside_of_transformations():
    """With a tensor a solver traces its function, which may use NumPy as it likes."""

    def f(x):
        return np.array([x[0] ** 2 - 2.0, x[1] - x[0]])

    found = optimize.root(f, wg.tensor(np.ones(2)))
    np.testing.assert_allclose(found.x, np.sqrt(2.0))


def test_arguments_of_least_squares_and_curve_fit():
    """`Bounds`, a callback, badly scaled parameters, and a keyword that SciPy refuses."""
    t = np.linspace(0.0, 4.0, 20)

    def curve(t, a, b):
        return a * np.exp(-b * t)

    y = curve(t, 2e6, 1.3)

    def rate(y, **more):
        return optimize.curve_fit(curve, t, y, **more)[0][1]

    np.testing.assert_allclose(rate(wg.tensor(y), p0=[1e6, 1.0]), 1.3, rtol=1e-6)
    bounds = theirs.Bounds([0.0, 0.0], [1e7, 1.0])
    np.testing.assert_allclose(rate(wg.tensor(y), p0=[1e6, 0.5], bounds=bounds), 1.0)
    with pytest.raises(ValueError, match="'args' is not a supported"):
        rate(wg.tensor(y), args=(1.0,))


def test_infeasible_points_are_no_minima():
    """The objective is constant, so that its gradient balances where constraints are violated."""
    limits = [
        {"type": "ineq", "fun": lambda x: -x[0] - x[1] - 3.0},
        {"type": "ineq", "fun": lambda x: x[1] + x[2] - 2.0},
    ]
    start = wg.tensor(np.array([-1.9, -0.6, -0.8]))
    found = optimize.minimize(
        lambda x: 0.0 * x[0] + 1.0, start, bounds=[(-2, 2)] * 3, constraints=limits, method="slsqp"
    )
    assert not found.success


@pytest.mark.parametrize("method", ["L-BFGS-B", "Newton-CG", "BFGS", "Nelder-Mead"])
def test_values_that_are_nan_are_no_minimum(method):
    """The gradient of a logarithm is finite where the logarithm is not, and may be zero there."""

    def lowest(a):
        return optimize.minimize(
            lambda x: np.sum(np.log(x * a - 10.0)) + np.sum(x**2), np.ones(2), method=method
        )

    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not wg.vjp(lambda a: lowest(a).success, 1.0)[0]
        with pytest.raises(ConvergenceError):
            wg.grad(lambda a: np.sum(lowest(a).x))(1.0)


def test_bounds_that_do_not_fit():
    """Their number, their shape, and methods without them: errors in place of other problems."""
    f = lambda a: lambda x: np.sum((x - a) ** 2)  # noqa: E731
    with pytest.raises(ShapeError, match="number of bounds is not compatible"):
        wg.grad(lambda a: optimize.minimize(f(a), np.ones(3), bounds=[(1.0, 2.0)] * 2).fun)(1.0)
    for method in ("brent", "golden"):
        with pytest.raises(ArgumentError, match="does not take bounds"):
            wg.grad(lambda a, m=method: optimize.minimize_scalar(f(a), method=m, bounds=(0, 9)).x)(
                1.0
            )
    with pytest.raises(ArgumentError, match="needs bounds"):
        wg.grad(lambda a: optimize.minimize_scalar(f(a), (0.0, 9.0), method="bounded").x)(1.0)
    with pytest.raises(ShapeError, match="finite scalars"):
        wg.grad(lambda a: optimize.fminbound(f(a), np.zeros(2), 1.0))(1.0)
    ends = np.zeros(1), np.full((1, 1), 5.0)
    np.testing.assert_allclose(wg.grad(lambda a: optimize.fminbound(f(a), *ends))(1.0), 1.0)
