"""curve_fit with tensors: bounds, errors of data, missing data, covariances that do not exist.

Each result is compared with SciPy's for the same plain data, and derivatives with differences.
"""

import warnings

import numpy as np
import pytest
import scipy.optimize as theirs
from scipy.optimize import Bounds, OptimizeWarning

import wengert as wg
from wengert.errors import ArgumentError
from wengert.scipy import optimize
from wengert.testing import check_grads

EXACT = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
METHODS = pytest.mark.parametrize("method", ["lm", "trf", "dogbox"])
X = np.linspace(0.0, 2.0, 11)
Y = 2.0 * np.exp(-1.3 * X) + 0.05 * np.cos(5.0 * X)
COVARIANCE = 0.01 * np.exp(-np.abs(np.subtract.outer(X, X)) / 0.3) + 0.02 * np.eye(11)


def decay(x, a, b):
    return a * np.exp(-b * x)


def fitted(f, x, y, **more):
    """Parameters and covariance, with data that are tensors."""
    run = lambda y: optimize.curve_fit(f, x, y, **more)[:2]  # noqa: E731
    return wg.vjp(run, np.asarray(y, float))[0]


def agrees(f, x, y, **more):
    got, want = fitted(f, x, y, **more), theirs.curve_fit(f, x, y, **more)[:2]
    for mine, other in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-7)


@METHODS
@pytest.mark.parametrize("absolute", [False, True])
def test_errors_of_data(method, absolute):
    """Standard deviations, one for all, and a covariance matrix."""
    for sigma in (None, 0.3, np.linspace(0.1, 0.5, 11), COVARIANCE):
        agrees(decay, X, Y, sigma=sigma, absolute_sigma=absolute, method=method)


@pytest.mark.parametrize(
    "method", ["lm", *[pytest.param(m, marks=pytest.mark.slow) for m in ("trf", "dogbox")]]
)
def test_derivatives_by_errors_of_data(method):
    def f(y, sigma, matrix):
        one = optimize.curve_fit(decay, X, y, sigma=sigma, method=method, **EXACT)
        matrix = (matrix + matrix.T) / 2.0
        two = optimize.curve_fit(
            decay, X, y, sigma=matrix, method=method, absolute_sigma=True, **EXACT
        )
        return np.concatenate([one[0], one[1][0], two[0], 10.0 * two[1][1]])

    check_grads(f, (Y, np.linspace(0.1, 0.5, 11), COVARIANCE), order=1, modes=("rev",), rtol=1e-3)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", [None, "trf", "dogbox"])
def test_bounds(method):
    """Pairs and Bounds; the initial guess is within them; ends have derivatives."""
    for bounds in (([1.0, 0.0], [1.5, 3.0]), Bounds([1.0, 0.0], [1.5, 3.0]), (0.0, 5.0)):
        agrees(decay, X, Y, bounds=bounds, method=method)
    agrees(decay, X, Y, bounds=([0.0, -np.inf], [0.6, np.inf]), method=method)
    agrees(decay, X, Y, bounds=([-np.inf, 3.0], [np.inf, np.inf]), method=method)

    def f(high):
        bounds = ([0.0, 0.0], [high, 3.0])
        return optimize.curve_fit(decay, X, Y, bounds=bounds, method=method, **EXACT)[0]

    slope = wg.jacobian(f)(1.5)
    np.testing.assert_allclose(slope, (f(1.5 + 1e-4) - f(1.5 - 1e-4)) / 2e-4, rtol=1e-4)
    np.testing.assert_allclose(wg.jit(wg.jacobian(f))(1.5), slope, rtol=1e-6)


def test_bounds_need_another_method():
    with pytest.raises(ValueError, match="does not take bounds"):
        fitted(decay, X, Y, bounds=(0.0, 5.0), method="lm")
    with pytest.raises(TypeError, match="must not exceed"):
        fitted(decay, X[:2], Y[:2], p0=[1.0, 1.0, 1.0])


@METHODS
def test_missing_data(method):
    """Data are refused, or left out with their errors."""
    x, y = X.copy(), Y.copy()
    y[3], x[7] = np.nan, np.nan
    kept = np.isfinite(x) & np.isfinite(y)
    for sigma, rest in (
        (None, None),
        (0.2, 0.2),
        (np.linspace(0.1, 0.5, 11), np.linspace(0.1, 0.5, 11)[kept]),
        (COVARIANCE, COVARIANCE[kept][:, kept]),
    ):
        got = fitted(decay, x, y, sigma=sigma, nan_policy="omit", method=method)
        want = theirs.curve_fit(decay, x[kept], y[kept], sigma=rest, method=method)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-4)
    gradient = wg.grad(lambda y: optimize.curve_fit(decay, x, y, nan_policy="omit")[0][0])(y)
    assert np.isfinite(gradient).all() and gradient[3] == gradient[7] == 0.0


def test_missing_data_are_refused():
    y = Y.copy()
    y[3] = np.nan
    for policy, match in (
        (None, "infs or NaNs"),
        ("raise", "contains nan"),
        ("propagate", "not supported"),
        ("hi", "nan_policy must be one of"),
    ):
        with pytest.raises(ValueError, match=match):
            fitted(decay, X, y, nan_policy=policy)
    with pytest.raises(ValueError, match="infs or NaNs"):
        fitted(decay, X, np.where(np.isnan(y), np.inf, y))
    with pytest.raises(ValueError, match="must not be empty"):
        fitted(lambda x, a: a * x, [], [])
    with pytest.raises(ArgumentError, match="in a graph"):
        wg.jit(lambda y: optimize.curve_fit(decay, X, y, nan_policy="omit")[0])(y)
    two = lambda x, a, b: a * x[0] + b + x[1]  # noqa: E731
    x = np.stack([X, X**2])
    x[1, 4] = np.nan
    got = fitted(two, x, Y, nan_policy="omit")[0]
    kept = np.arange(11) != 4
    np.testing.assert_allclose(got, theirs.curve_fit(two, x[:, kept], Y[kept])[0], rtol=1e-6)


def test_covariance_that_is_not_determined():
    """A parameter without effect, and as many parameters as data: infinite, with a warning."""
    flat = lambda x, a, b: a * x  # noqa: E731
    for f, n in ((flat, 11), (decay, 2), (lambda x, a, b: (a + b) * x, 11)):
        with pytest.warns(OptimizeWarning, match="could not be estimated"):
            _, pcov = fitted(f, X[:n], Y[:n])
        np.testing.assert_array_equal(pcov, np.full((2, 2), np.inf))
    # SciPy's other methods leave out what does not change the curve
    for method in ("trf", "dogbox"):
        agrees(flat, X, Y, method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slope = wg.grad(lambda y: optimize.leastsq(lambda p: p[0] * X - y, np.ones(1))[0][0])(Y)
        np.testing.assert_allclose(slope, X / (X @ X), rtol=1e-7)
    assert optimize.leastsq(lambda p: p[0] * X - Y, np.ones(2), full_output=True)[1] is None


@METHODS
def test_full_output(method):
    """SciPy's keys; the factors have the covariance of the parameters."""
    found = []

    def run(y):
        popt, pcov, *rest = optimize.curve_fit(decay, X, y, method=method, full_output=True)
        found.extend(rest)
        return popt, pcov, rest[0]["fvec"]

    _, pcov, residuals = wg.vjp(run, Y)[0]
    details, message, code = found
    details["fvec"] = residuals
    want = theirs.curve_fit(decay, X, Y, method=method, full_output=True)
    assert set(details) == set(want[2]) and isinstance(message, str) and code in (1, 2, 3, 4)
    np.testing.assert_allclose(details["fvec"], want[2]["fvec"], atol=1e-6)
    if method == "lm":
        r = np.triu(details["fjac"].T[:2])[:, np.argsort(details["ipvt"])]
        variance = np.sum(details["fvec"] ** 2) / 9
        np.testing.assert_allclose(np.linalg.inv(r.T @ r) * variance, pcov, rtol=1e-6)
        assert details["ipvt"].tolist() == want[2]["ipvt"].tolist()
        np.testing.assert_allclose(
            np.abs(details["fjac"].T[:2].diagonal()),
            np.abs(want[2]["fjac"].T[:2].diagonal()),
            rtol=1e-5,
        )


def test_bad_errors_of_data():
    with pytest.raises(ValueError, match="positive definite"):
        fitted(decay, X, Y, sigma=-COVARIANCE)
    with pytest.raises(ValueError, match="sigma has shape"):
        fitted(decay, X, Y, sigma=np.ones(4))


def test_abscissas_that_are_no_arrays():
    """Whatever the curve takes."""
    got = fitted(lambda _, a: a * np.arange(1.0, 12.0), None, 2.0 * np.arange(1.0, 12.0))[0]
    np.testing.assert_allclose(got, [2.0])
    got = fitted(lambda x, a: a * x["t"], {"t": X}, 3.0 * X)[0]
    np.testing.assert_allclose(got, [3.0])


def test_covariance_of_badly_scaled_parameters():
    """The condition number of the Jacobian is not squared: positive eigenvalues, all digits."""
    x = np.linspace(1.0, 1.001, 40)
    curve = lambda x, a, b, c: 1e6 * a * (x - 1.0) ** 2 + 1e-3 * b * x + 1e-4 * c  # noqa: E731
    y = curve(x, 1.0, 2.0, 3.0) + 1e-9 * np.sin(1e5 * x)
    for method in ("lm", "trf"):
        pcov = fitted(curve, x, y, p0=[1.0, 2.0, 3.0], absolute_sigma=True, method=method)[1]
        np.testing.assert_array_equal(pcov, pcov.T)
        columns = np.stack([1e6 * (x - 1.0) ** 2, 1e-3 * x, np.full(40, 1e-4)], axis=1)
        inverse = np.linalg.inv(np.linalg.qr(columns, mode="r"))
        np.testing.assert_allclose(pcov, inverse @ inverse.T, rtol=1e-5)
        assert np.linalg.eigvalsh(pcov).min() > 0.0
