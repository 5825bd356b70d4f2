"""Tolerances that rounding does not allow: accepted where the conditions balance, else refused."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ConvergenceError
from wengert.scipy import optimize

_random = np.random.default_rng(0)
_MATRIX = (lambda a: a @ a.T / 6 + 0.1 * np.eye(6))(_random.normal(size=(6, 6)))
_TARGET = _random.normal(size=6)


def _quartic(x, a, shift=0.0):
    return 0.5 * x @ _MATRIX @ x - a @ x + 0.1 * np.sum(x**4) + shift


def _minimum(a, method, shift=0.0, **more):
    more = {"tol": 1e-13} | more
    return optimize.minimize(lambda x: _quartic(x, a, shift), np.zeros(6), method=method, **more)


@pytest.mark.parametrize("shift", [0.0, 1e3])
@pytest.mark.parametrize("method", ["bfgs", "cg", "trust-ncg", "trust-exact", "newton-cg"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_minima_at_the_limit_of_precision_have_derivatives(method, shift, compiled):
    """SciPy reports a loss of precision; the gradient is zero up to rounding of the function."""
    jacobian = wg.jacobian(lambda a: _minimum(a, method, shift).x)
    given = (wg.jit(jacobian) if compiled else jacobian)(_TARGET)
    x = _minimum(wg.tensor(_TARGET), method, shift).x
    wanted = np.linalg.inv(_MATRIX + np.diag(1.2 * np.asarray(x) ** 2))
    np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)


def test_the_result_says_so():
    """`success` is that of the conditions; the message is SciPy's."""
    with_tensors = _minimum(wg.tensor(_TARGET), "bfgs")
    plain = _minimum(_TARGET, "bfgs", jac=lambda x: _MATRIX @ x - _TARGET + 0.4 * x**3)
    assert with_tensors.success
    assert not plain.success
    assert with_tensors.message == plain.message


@pytest.mark.parametrize("options", [{"maxiter": 1}, {"maxiter": 3}])
def test_minima_that_were_not_reached_are_refused(options):
    """The gradient is not small beside its terms."""
    with pytest.raises(ConvergenceError):
        wg.grad(lambda a: _minimum(a, "bfgs", options=options).x[0])(_TARGET)


def test_a_large_constant_hides_the_minimum():
    """Values do not change long before the gradient is small, so the derivative is refused."""
    with pytest.raises(ConvergenceError, match="precision loss"):
        wg.grad(lambda a: _minimum(a, "bfgs", 1e11).x[0])(_TARGET)


def test_a_minimum_at_zero():
    """All terms of the gradient are zero at the minimum."""

    def loss(a):
        f = lambda x: np.sum(np.cosh(a * x)) + a * np.sum(x**2)  # noqa: E731
        return np.sum(optimize.minimize(f, np.ones(3), method="bfgs", tol=1e-16).x)

    np.testing.assert_allclose(wg.grad(loss)(1.5), 0.0, atol=1e-6)


def test_constraints_and_multipliers():
    """The Lagrange function's gradient, and the constraints, balance."""

    def found(a, **more):
        total = {"type": "eq", "fun": lambda x: np.sum(x + x**2) - 1.0}
        return _minimum(a, "slsqp", constraints=total, **more)

    x = np.asarray(found(wg.tensor(_TARGET), options={"ftol": 1e-30, "maxiter": 60}).x)
    np.testing.assert_allclose(np.sum(x + x**2), 1.0)
    got = wg.grad(lambda a: found(a, options={"ftol": 1e-30, "maxiter": 60}).fun)(_TARGET)
    np.testing.assert_allclose(got, -x, rtol=1e-6)
    with pytest.raises(ConvergenceError):
        wg.grad(lambda a: found(a, options={"maxiter": 2}).fun)(_TARGET)


def test_roots_with_a_tolerance_below_rounding():
    """MINPACK reports no progress at the root, and where there is no root."""

    def crossing(a):
        f = lambda x: np.array([x[0] ** 2 + x[1] ** 2 - a, x[0] - x[1]])  # noqa: E731
        return optimize.root(f, np.ones(2), tol=1e-20).x[0]

    np.testing.assert_allclose(wg.grad(crossing)(8.0), 0.125)
    with pytest.raises(ConvergenceError):
        wg.grad(crossing)(-8.0)
