"""Least squares by scipy.optimize: derivatives of solutions, costs and covariances."""

import numpy as np
import pytest
import scipy.optimize as theirs

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError, MatrixError, ShapeError
from wengert.scipy import optimize
from wengert.testing import check_grads

MODES = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
T = np.linspace(0.0, 2.0, 8)
DATA = 2.0 * np.exp(-1.3 * T) + 0.01 * np.cos(5.0 * T)
TIGHT = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-14}


def mode(compiled, f):
    return wg.jit(f) if compiled else f


def decay(t, a, b):
    """A curve with two parameters."""
    return a * np.exp(-b * t)


def fitted(y, **how):
    """The least-squares solution for data."""
    return optimize.least_squares(
        lambda p, y: decay(T, p[0], p[1]) - y, np.ones(2), args=(y,), **TIGHT, **how
    )


@MODES
@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
@pytest.mark.sample(1)
def test_methods(method, compiled):
    """All methods, with derivatives to order two; residuals are not zero at the solution."""
    check_grads(mode(compiled, lambda y: fitted(y, method=method).x), (DATA,), order=1 + compiled)


@pytest.mark.sample(1)
@MODES
def test_cost(compiled):
    """The derivative of the cost is that of the envelope theorem."""
    residual = np.asarray(fitted(DATA).fun)
    gradient = mode(compiled, wg.grad(lambda y: fitted(y).cost))(DATA)
    np.testing.assert_allclose(gradient, -residual, rtol=1e-6)
    check_grads(mode(compiled, lambda y: fitted(y).cost), (DATA,), order=1 + compiled)


@MODES
@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy", "arctan"])
@pytest.mark.sample(4)  # each loss
def test_robust_losses(loss, compiled):
    """The losses of SciPy, with a scale at which some residuals are outliers."""
    f = mode(compiled, lambda y: fitted(y, loss=loss, f_scale=0.008).x)
    got = wg.jacobian(f)(DATA)
    step = 1e-4
    for k in (0, 3):
        e = step * np.eye(8)[k]
        difference = (np.asarray(f(DATA + e)) - np.asarray(f(DATA - e))) / (2 * step)
        np.testing.assert_allclose(got[:, k], difference, rtol=2e-4, atol=1e-5)


@MODES
@pytest.mark.parametrize("method", ["trf", "dogbox"])
@pytest.mark.sample(1)
def test_bounds(method, compiled):
    """An active bound: the solution follows it, also by the gradient of the cost."""

    def solved(y, upper):
        return fitted(y, bounds=([0.0, 0.0], [upper, np.inf]), method=method)

    f = mode(compiled, lambda u: solved(DATA, u).x)
    np.testing.assert_allclose(wg.jacobian(f)(1.5)[0], 1.0)
    check_grads(mode(compiled, lambda u: solved(DATA, u).x[1]), (1.5,), order=1)
    check_grads(mode(compiled, lambda u: solved(DATA, u).cost), (1.5,), order=2)
    np.testing.assert_allclose(wg.jacobian(lambda y: solved(y, 1.5).x)(DATA)[0], 0.0, atol=1e-12)


@MODES
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.sample(1)
def test_curve_fit(absolute, compiled):
    """Parameters and covariance, with derivatives with respect to data and errors."""
    sigma = 0.1 + 0.05 * T

    def fit(y, sigma):
        popt, pcov = optimize.curve_fit(decay, T, y, sigma=sigma, absolute_sigma=absolute, **TIGHT)
        return np.concatenate([popt, np.reshape(pcov, (-1,))])

    popt, pcov = theirs.curve_fit(decay, T, DATA, sigma=sigma, absolute_sigma=absolute)
    expected = np.concatenate([popt, pcov.ravel()])
    values, _ = mode(compiled, lambda y: wg.jvp(lambda y: fit(y, sigma), (y,), (y,)))(DATA)
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    check_grads(mode(compiled, fit), (DATA, sigma), order=1)


def test_curve_fit_with_bounds_and_covariance_of_data():
    """A covariance matrix of the data; bounds; derivatives by abscissas."""
    covariance = 0.01 * np.exp(-np.abs(T[:, None] - T))

    def fit(t, c, **how):
        popt, _ = optimize.curve_fit(decay, t, DATA, sigma=c, **how, **TIGHT)
        return popt

    popt, _ = theirs.curve_fit(decay, T, DATA, sigma=covariance, bounds=(0.0, 9.0))
    value, _ = wg.jvp(lambda t: fit(t, covariance, bounds=(0.0, 9.0)), (T,), (T,))
    np.testing.assert_allclose(value, popt, rtol=1e-5)
    v, h = np.cos(7.0 * T), 1e-3  # the solver's own error is too large for smaller steps
    difference = (fit(T + h * v, covariance) - fit(T - h * v, covariance)) / (2 * h)
    slope = wg.jvp(lambda t: fit(t, covariance), (T,), (v,))[1]
    np.testing.assert_allclose(slope, difference, rtol=1e-4)
    for k in (0, 1):
        bounded = wg.jacobian(lambda t, c: fit(t, c, bounds=(0.0, 9.0)), k)(T, covariance)
        expected = wg.jacobian(fit, k)(T, covariance)
        np.testing.assert_allclose(bounded, expected, rtol=1e-3, atol=1e-4)


def test_plain_arguments_give_scipys_results():
    """Without tensors SciPy's functions are called."""
    plain = theirs.curve_fit(decay, T, DATA)
    for a, b in zip(optimize.curve_fit(decay, T, DATA), plain, strict=True):
        np.testing.assert_array_equal(a, b)
    f = lambda p: decay(T, p[0], p[1]) - DATA  # noqa: E731
    ours, plain = optimize.least_squares(f, np.ones(2)), theirs.least_squares(f, np.ones(2))
    assert ours.nfev == plain.nfev
    a, b = np.ones((3, 2)) + np.eye(3, 2), np.arange(3.0)
    np.testing.assert_array_equal(optimize.nnls(a, b)[0], theirs.nnls(a, b)[0])
    np.testing.assert_array_equal(optimize.lsq_linear(a, b).x, theirs.lsq_linear(a, b).x)


RNG = np.random.default_rng(5)
MATRIX, RIGHT = RNG.normal(size=(6, 4)), RNG.normal(size=6)


@pytest.mark.sample(1)
@MODES
def test_nnls(compiled):
    """Solutions with zeros, and the norm of the residual."""
    x, _ = theirs.nnls(MATRIX, RIGHT)
    assert 0 < np.count_nonzero(x) < 4

    def f(a, b):
        return optimize.nnls(a, b)

    got, _ = mode(compiled, f)(wg.tensor(MATRIX) if not compiled else MATRIX, RIGHT)
    np.testing.assert_allclose(np.asarray(got), x)
    check_grads(mode(compiled, lambda a, b: f(a, b)[0]), (MATRIX, RIGHT), order=2)
    check_grads(mode(compiled, lambda a, b: f(a, b)[1]), (MATRIX, RIGHT), order=1)


@MODES
@pytest.mark.parametrize("method", ["trf", "bvls"])
@pytest.mark.sample(2)  # each method
def test_lsq_linear(method, compiled):
    """Bounds that are active on both sides, and inactive ones."""
    low, high = np.full(4, -0.1), np.array([0.05, np.inf, 0.2, np.inf])

    def f(a, b, high):
        found = optimize.lsq_linear(a, b, (low, high), method, tol=1e-14)
        return np.concatenate([found.x, np.reshape(found.cost, (1,))])

    x = theirs.lsq_linear(MATRIX, RIGHT, (low, high), method).x
    value, _ = mode(compiled, lambda b: wg.jvp(lambda b: f(MATRIX, b, high), (b,), (b,)))(RIGHT)
    np.testing.assert_allclose(value[:4], x, atol=1e-7)
    check_grads(mode(compiled, lambda a, b: f(a, b, high)), (MATRIX, RIGHT), order=1)
    upper = lambda u: f(MATRIX, RIGHT, np.stack([u, np.inf, u, np.inf]))  # noqa: E731
    check_grads(mode(compiled, upper), (0.1,), order=1)


@MODES
def test_batches(compiled):
    """`vmap` fits each data set."""
    many = np.stack([DATA, DATA[::-1] + 1.0])
    f = lambda y: fitted(y).x  # noqa: E731
    got = mode(compiled, wg.vmap(wg.jacobian(f)))(many)
    np.testing.assert_allclose(got, [wg.jacobian(f)(y) for y in many], rtol=1e-6)


def test_bad_input():
    """Errors name what is wrong."""
    with pytest.raises(ArgumentError, match="Use one of linear"):
        wg.grad(lambda y: fitted(y, loss="square").x[0])(DATA)
    with pytest.raises(ConvergenceError, match="maximum number of function"):
        wg.grad(lambda y: fitted(y, max_nfev=1).x[0])(DATA)
    with pytest.raises(RuntimeError, match="Optimal parameters not found"):
        wg.grad(lambda y: optimize.curve_fit(decay, T, y, maxfev=1)[0][0])(DATA)
    with pytest.raises(ShapeError, match="standard deviation for each"):
        wg.grad(lambda y: optimize.curve_fit(decay, T, y, sigma=np.ones(3))[0][0])(DATA)
    with pytest.raises(ValueError, match="number of fit parameters"):
        wg.grad(lambda y: optimize.curve_fit(lambda *a: a[0], T, y)[0][0])(DATA)
    with pytest.raises(ShapeError, match="A must be a matrix"):
        wg.grad(lambda b: optimize.nnls(np.ones((2, 2)), b)[0][0])(np.ones(3))
    with pytest.raises(MatrixError, match="ingular"):
        wg.grad(lambda b: optimize.nnls(np.ones((3, 2)), b)[0][0])(np.ones(3))


@pytest.mark.parametrize("limit", [None, 3])
@pytest.mark.parametrize("start", [[1.0, 1.0], [5.0, 3.0], [2.0, 0.0]])
def test_compiled_functions_call_minpack_as_scipy_does(start, limit):
    """The values, status and number of calls of `least_squares`."""
    t = np.linspace(0.0, 4.0, 20)
    y = 2.5 * np.exp(-1.3 * t) + 0.1 * np.cos(7.0 * t)

    def fit(y):
        options = {"method": "lm", "x_scale": "jac", "max_nfev": limit}
        found = optimize.least_squares(lambda p: p[0] * np.exp(-p[1] * t) - y, start, **options)
        return found.x, found.status, found.nfev, found.success

    for found, want in zip(wg.jit(fit)(y), fit(wg.tensor(y)), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-13)


def test_compiled_functions_refuse_residuals_that_are_not_finite():
    def fit(y):
        return optimize.leastsq(lambda p: np.log(p) - y, np.array([-1.0, 1.0]))[0]

    for run in (fit, wg.jit(fit)):
        with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="not finite"):
            run(wg.tensor(np.ones(2)) if run is fit else np.ones(2))
