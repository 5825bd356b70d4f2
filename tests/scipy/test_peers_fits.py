"""What jaxopt's tests check of nonlinear fits and of its wrappers of SciPy.

Own programs with the content of jaxopt's tests: published fits, robust losses with and without
bounds, minimizers without gradients, approximate inverse Hessians, bad starts.
Derivatives are compared with formulas, or with differences of the whole solve.
The numbers of the tests are in docs/solvers-tests.md.
"""

import warnings

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import Bounds

import wengert as wg
from wengert.errors import ConvergenceError, SingularError
from wengert.scipy import optimize

RNG = np.random.default_rng(12)
EXACT = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}


def slope_by_differences(f, x, direction, h=1e-4):
    return (f(x + h * direction) - f(x - h * direction)) / (2 * h)


# ---- levenberg_marquardt_test, gauss_newton_test -----------------------------------------------


def fit_by_formula(residual, p, data, direction):
    """The derivative of a fit by the data, from the Hessian of half of the sum of squares."""
    gradient = wg.grad(lambda p, data: 0.5 * np.sum(residual(p, data) ** 2))
    hessian = wg.jacobian(gradient)(p, data)
    return -np.linalg.solve(hessian, wg.jacobian(gradient, 1)(p, data) @ direction)


@pytest.mark.parametrize("method", ["lm", "trf"])
def test_function_of_meyer(method):
    """Strongly correlated parameters: known solution, derivatives with respect to the data."""
    x = np.linspace(0.5, 1.25, 16)
    resistance = "34780 28610 23650 19630 16370 13720 11540 9744 8261 7030 6005 5147 4427 3820"
    y = np.array([*resistance.split(), 3307, 2872], float)

    def residual(p, y):
        return 1e-3 * y - p[0] * np.exp(10 * p[1] / (x + p[2]) - 13)

    def fitted(y):
        start = np.array([4.0, 6.0, 4.0])
        return optimize.least_squares(
            lambda p: residual(p, y), start, method=method, max_nfev=2000, **EXACT
        ).x

    np.testing.assert_allclose(fitted(y), [2.48, 6.18, 3.45], rtol=5e-3)
    direction = y * np.cos(np.arange(16))
    slope = wg.jvp(fitted, (y,), (direction,))[1]
    np.testing.assert_allclose(slope, fit_by_formula(residual, fitted(y), y, direction), rtol=1e-6)


@pytest.mark.parametrize("method", ["lm", "trf", "dogbox"])
def test_temperatures_of_a_year(method):
    """Four parameters of a sine: published values, derivatives with respect to the records."""
    months = np.arange(1.0, 13.0)
    record = np.array([61, 65, 72, 78, 85, 90, 92, 92, 88, 81, 72, 63.0])

    def residual(p, record):
        return p[0] * np.sin(p[1] * months + p[2]) + p[3] - record

    def fitted(record):
        start = np.array([10.0, 0.5, 10.5, 50.0])
        return optimize.least_squares(
            lambda p: residual(p, record), start, method=method, **EXACT
        ).x

    p = fitted(record)
    np.testing.assert_allclose(p, [16.639946, 0.463278, 10.852289, 76.190861], 1e-5)
    direction = np.sin(np.arange(12.0))
    slope = wg.jvp(fitted, (record,), (direction,))[1]
    np.testing.assert_allclose(slope, fit_by_formula(residual, p, record, direction), rtol=1e-5)


def test_residuals_that_are_absolute_values_or_one_number():
    """Residuals of zero at kinks; one residual for two unknowns, which is zero at any scale."""
    target = np.linspace(0.0, 5.0, 10)
    found = optimize.least_squares(lambda x: np.abs(x - target), np.full(10, -0.5))
    np.testing.assert_allclose(found.x, target, atol=1e-6)
    found = optimize.least_squares(lambda x: x @ x, np.ones(2))
    np.testing.assert_allclose(found.x, 0.0, atol=1e-2)
    scaled = lambda t: np.sum(optimize.least_squares(lambda x: t * x @ x, np.ones(2)).x)  # noqa: E731
    np.testing.assert_allclose(wg.grad(scaled)(2.0), 0.0, atol=1e-2)


# ---- scipy_wrappers_test, iterative_refinement_test --------------------------------------------


def robust_fit(slope, half=None, loss="linear", f_scale=1.0, start=None):
    """Weights, threshold and offset of a sigmoid in two dimensions, between bounds."""
    x = np.random.default_rng(2).normal(size=(25, 2))
    true = np.array([1.5, -1.5, -0.25, 1.0])
    model = lambda p, s: p[3] + s / (1.0 + np.exp(p[2] - x @ p[:2]))  # noqa: E731
    data = model(true, 2.5) + 0.02 * np.sin(np.arange(25.0))
    bounds = (-np.inf, np.inf) if half is None else (-half * np.ones(4), half * np.ones(4))
    return optimize.least_squares(
        lambda p: data - model(p, slope),
        np.zeros(4) if start is None else start,
        loss=loss,
        f_scale=f_scale,
        bounds=bounds,
        **EXACT,
    ).x


@pytest.mark.parametrize(("loss", "f_scale"), [("linear", 1.0), ("huber", 0.2), ("arctan", 0.2)])
def test_robust_losses(loss, f_scale):
    """Losses that weigh outliers less: values, and derivatives with respect to a number."""
    fit = lambda s: robust_fit(s, loss=loss, f_scale=f_scale)  # noqa: E731
    np.testing.assert_allclose(fit(2.5), [1.5, -1.5, -0.25, 1.0], atol=0.1)
    got = wg.jacobian(fit)(2.5)
    np.testing.assert_allclose(got, slope_by_differences(fit, 2.5, 1.0, 1e-4), rtol=1e-3, atol=1e-4)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("loss", "f_scale"), [("linear", 1.0), ("cauchy", 1.0), ("soft_l1", 0.2), ("huber", 1.0)]
)
def test_robust_losses_between_bounds(loss, f_scale):
    """Parameters at bounds move with them; the others by the model."""
    by_model = lambda s: robust_fit(s, 1.0, loss, f_scale)  # noqa: E731
    by_box = lambda half: robust_fit(2.5, half, loss, f_scale)  # noqa: E731
    assert np.any(np.isclose(np.abs(by_model(2.5)), 1.0, atol=1e-8))
    for f, at in ((by_model, 2.5), (by_box, 1.0)):
        got, want = wg.jacobian(f)(at), slope_by_differences(f, at, 1.0, 1e-4)
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "TNC", "COBYLA", "SLSQP"])
def test_minimizers_without_gradients_and_others(method):
    """Minima by comparison of values have derivatives as those by gradients."""
    options = {"Nelder-Mead": {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000}}.get(method, {})

    def minimum(a):
        return optimize.minimize(
            lambda x: (x[0] - a) ** 2 + 2.0 * (x[1] - x[0] * a) ** 2 + 0.5 * np.sum(x**4),
            np.array([0.4, 0.4]),
            method=method,
            tol=1e-10,
            options=options,
        ).x

    want = wg.jacobian(
        lambda a: (
            optimize.minimize(
                lambda x: (x[0] - a) ** 2 + 2.0 * (x[1] - x[0] * a) ** 2 + 0.5 * np.sum(x**4),
                np.array([0.4, 0.4]),
                tol=1e-12,
            ).x
        )
    )(0.7)
    np.testing.assert_allclose(wg.jacobian(minimum)(0.7), want, rtol=1e-4)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B"])
def test_approximate_inverse_hessians_and_callbacks(method):
    """The same steps as with derivatives by hand: inverse Hessian, and points of the callback."""
    at = np.array([0.5, -1.2])
    start = np.array([-3.0, 4.0])
    mine, theirs = [], []
    f = lambda x: np.sum((x - at) ** 2 * np.array([1.0, 3.0]))  # noqa: E731
    by_hand = scipy.optimize.minimize(
        f,
        start,
        method=method,
        jac=lambda x: 2 * (x - at) * np.array([1.0, 3.0]),
        callback=lambda x: theirs.append(x.copy()),
    )
    found = optimize.minimize(f, start, method=method, callback=lambda x: mine.append(x.copy()))
    inverses = [
        h.todense() if hasattr(h, "todense") else h for h in (found.hess_inv, by_hand.hess_inv)
    ]
    # the last step is found by differences of values of 1e-12, which rounding of 1e-16 changes
    np.testing.assert_allclose(inverses[0], inverses[1], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)


def test_numbers_and_many_equal_roots():
    """Unknowns that are one number, and Broyden's method from zero for several equal roots."""
    found = optimize.minimize(lambda x: np.sum(x**2), 0.0)
    np.testing.assert_array_equal(found.x, [0.0])

    def roots(a):
        return optimize.root(lambda x: x**2 - a, np.full(5, 0.4), method="broyden1", tol=1e-12).x

    np.testing.assert_allclose(roots(1.0), 1.0, rtol=1e-9)
    np.testing.assert_allclose(wg.jacobian(roots)(1.0), 0.5, rtol=1e-8)


def test_repeated_equations_and_start_values():
    """Repeated rows: refused without a method; the start of a solver does not matter."""
    rows = RNG.normal(size=(3, 6))
    repeated = np.concatenate([rows, rows])
    side = RNG.normal(size=3)

    def least(b):
        return np.linalg.lstsq(repeated, np.concatenate([b, b]), rcond=None)[0]

    np.testing.assert_allclose(rows @ least(side), side, rtol=1e-10)
    with pytest.raises(SingularError):
        wg.grad(lambda b: np.sum(wg.custom_linear_solve(lambda x: repeated @ x, b)))(
            np.concatenate([side, side])
        )
    np.testing.assert_allclose(wg.jacobian(least)(side), np.linalg.pinv(rows), atol=1e-12)
    matrix = RNG.normal(size=(6, 6)) + 5.0 * np.eye(6)
    b = RNG.normal(size=6)
    for start in (np.zeros(6), RNG.normal(size=6)):
        solve = lambda b, start=start: optimize.root(lambda x: matrix @ x - b, start).x  # noqa: E731
        np.testing.assert_allclose(wg.jacobian(solve)(b), np.linalg.inv(matrix), rtol=1e-8)


# ---- lbfgs_test, lbfgsb_test, bfgs_test --------------------------------------------------------


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG"])
def test_published_functions_and_bad_starts(method):
    """Functions of Zakharov, steep ones, and starts that are not finite: as SciPy's."""

    def zakharov(x):
        ii = 0.5 * np.arange(1, 7) @ x
        return np.sum(x**2) + ii**2 + ii**4

    found = optimize.minimize(zakharov, np.array([0.8, -0.2, 0.5, 1.0, -1.1, 0.3]), method=method)
    np.testing.assert_allclose(found.x, 0.0, atol=1e-4)
    steep = lambda x: 1e3 * np.sum((x - 1.0) ** 2) + np.sum(np.exp(x))  # noqa: E731
    at = optimize.minimize(steep, np.zeros(2), method=method, tol=1e-10).x
    np.testing.assert_allclose(2e3 * (at - 1.0) + np.exp(at), 0.0, atol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ConvergenceError):
            wg.grad(
                lambda a: (
                    optimize.minimize(
                        lambda x: a * np.sum(x**2), np.full(2, np.nan), method=method
                    ).fun
                )
            )(1.0)


def test_linear_objective_in_a_box():
    """A linear function between bounds: every element at a bound, with that bound's derivative."""
    slope = np.array([1.0, -2.0, 0.5])

    def corner(low, high):
        return optimize.minimize(
            lambda x: slope @ x, np.zeros(3), method="L-BFGS-B", bounds=Bounds(low, high)
        ).x

    low, high = -np.ones(3), np.full(3, 2.0)
    np.testing.assert_array_equal(corner(low, high), [-1.0, 2.0, -1.0])
    got = wg.jacobian(corner, (0, 1))(low, high)
    np.testing.assert_allclose(got[0], np.diag([1.0, 0.0, 1.0]), atol=1e-12)
    np.testing.assert_allclose(got[1], np.diag([0.0, 1.0, 0.0]), atol=1e-12)
