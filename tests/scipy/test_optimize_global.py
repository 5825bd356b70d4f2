"""Global minimizers and isotonic regression, beside SciPy and differences of whole solutions."""

import numpy as np
import pytest
import scipy.optimize

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError, ShapeError
from wengert.scipy import optimize
from wengert.testing import check_grads

BOX = [(-3.0, 3.0), (-1.0, 2.0)]
CASES = {
    "differential_evolution": {"bounds": BOX, "rng": 1, "tol": 1e-8},
    "dual_annealing": {"bounds": BOX, "rng": 1, "maxiter": 200},
    "shgo": {"bounds": BOX},
    "direct": {"bounds": BOX, "vol_tol": 1e-9, "maxfun": 20000, "maxiter": 10000},
    "basinhopping": {"x0": np.array([-0.5, 0.5]), "rng": 1, "niter": 20},
}


def wells(x, a):
    """Several minima; the lowest is near x[0] = -sqrt(a), and x[1] at 0.2 a."""
    return (x[0] ** 2 - a) ** 2 + 0.5 * x[0] + (x[1] - 0.2 * a) ** 2


def exact(a):
    x = -(a**0.5)
    for _ in range(50):
        x = x - (4.0 * x * (x * x - a) + 0.5) / (12.0 * x * x - 4.0 * a)
    return np.stack([x, 0.2 * a])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(2)
def test_minima_and_derivatives(name, compiled):
    """Point, value, and their derivatives to order two, of the lowest minimum."""
    minimizer, options = getattr(optimize, name), CASES[name]
    wrap = wg.jit if compiled else lambda f: f

    def found(a):
        return minimizer(lambda x: wells(x, a), **options)

    accuracy = 1e-2 if name == "direct" else 1e-4
    np.testing.assert_allclose(wrap(lambda a: found(a).x)(2.0), exact(2.0), atol=accuracy)
    slope, want = wg.jacobian(lambda a: found(a).x), wg.jacobian(exact)(2.0)
    np.testing.assert_allclose(wrap(slope)(2.0), want, rtol=10 * accuracy)
    value = lambda a: wells(exact(a), a)  # noqa: E731
    for transform in (wg.grad, lambda f: wg.grad(wg.grad(f))):
        got = wrap(transform(lambda a: found(a).fun))(2.0)
        np.testing.assert_allclose(got, transform(value)(2.0), rtol=10 * accuracy, atol=accuracy)


def test_minima_at_bounds():
    """A minimum at a bound moves with it."""

    def found(upper):
        bounds = [(-1.0, upper), (0.0, 1.0)]
        return optimize.differential_evolution(
            lambda x: (x[0] - 5.0) ** 2 + (x[1] - 0.5) ** 2, bounds, rng=2
        )

    np.testing.assert_allclose(wg.jacobian(lambda u: found(u).x)(2.0), [1.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(wg.grad(lambda u: found(u).fun)(2.0), -6.0, rtol=1e-7)


def test_without_tensors_and_bad_input():
    """Plain calls are SciPy's; constraints and failures are refused."""
    ours = optimize.differential_evolution(wells, BOX, args=(2.0,), rng=3)
    theirs = scipy.optimize.differential_evolution(wells, BOX, args=(2.0,), rng=3)
    np.testing.assert_array_equal(ours.x, theirs.x)
    limit = scipy.optimize.NonlinearConstraint(lambda x: x[0], 0.0, 1.0)
    with pytest.raises(ArgumentError, match="constraints"):
        wg.grad(lambda a: optimize.shgo(lambda x: wells(x, a), BOX, constraints=limit).fun)(2.0)
    with pytest.raises(ConvergenceError, match="did not converge"):
        wg.grad(lambda a: optimize.direct(lambda x: wells(x, a), BOX, maxfun=5).fun)(2.0)


Y = np.array([1.0, 3.0, 2.5, 2.0, 4.0, 3.9, 7.0, 6.0])
W = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 1.0, 2.0])


@pytest.mark.sample(2)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("increasing", [True, False])
def test_isotonic_regression(increasing, compiled):
    """Values are SciPy's; derivatives by data and weights are those of differences."""
    wrap = wg.jit if compiled else lambda f: f

    def fitted(y, w):
        return optimize.isotonic_regression(y, weights=w, increasing=increasing).x

    want = scipy.optimize.isotonic_regression(Y, weights=W, increasing=increasing)
    np.testing.assert_allclose(wrap(fitted)(Y, W), want.x, rtol=1e-14)
    check_grads(wrap(fitted), (Y, W), order=2)
    rows = np.stack([Y, Y[::-1], 2.0 * Y])
    jacobians = wrap(wg.vmap(wg.jacobian(lambda y: fitted(y, W))))(rows)
    for y, found in zip(rows, jacobians, strict=True):
        np.testing.assert_allclose(found, wg.jacobian(lambda y: fitted(y, W))(y))
        np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_isotonic_regression_has_the_results_of_scipy():
    """Blocks and their weights; shapes that do not fit are refused."""
    want = scipy.optimize.isotonic_regression(Y, weights=W)
    got = optimize.isotonic_regression(wg.tensor(Y), weights=W)
    np.testing.assert_array_equal(got.blocks, want.blocks)
    np.testing.assert_allclose(np.asarray(got.weights), want.weights)
    largest = wg.grad(lambda y: np.max(optimize.isotonic_regression(y).x))(Y)
    np.testing.assert_allclose(largest, [0, 0, 0, 0, 0, 0, 0.5, 0.5])
    with pytest.raises(ShapeError, match="vector"):
        optimize.isotonic_regression(wg.tensor(np.ones((2, 2))))
    with pytest.raises(ShapeError, match="weights"):
        optimize.isotonic_regression(wg.tensor(Y), weights=np.ones(3))
