"""Derivatives of distributions with respect to the point and all parameters."""

import numpy as np
import pytest
from scipy import stats as theirs

import wengert as wg

from .distributions import CONTINUOUS, DISCRETE, INSIDE

ours = wg.scipy.stats
HAVE = {
    name: [
        method
        for method, formulas in {
            "cdf": ("lower", "upper", "log_lower", "log_upper"),
            "ppf": ("quantile", "upper_quantile"),
        }.items()
        if any(hasattr(getattr(ours, name), f) for f in formulas)
    ]
    for name in CONTINUOUS
}


def operands(name):
    """A point of the support, shapes, location and scale."""
    shapes = INSIDE[name]
    x = getattr(theirs, name)(*shapes, loc=0.3, scale=1.7).ppf(np.array([0.15, 0.72]))
    return (x, *map(np.float64, shapes), np.float64(0.3), np.float64(1.7))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_log_densities(name):
    """With respect to all operands, in both modes, to second order, against differences."""
    wg.check_grads(getattr(ours, name).logpdf, operands(name), order=2, entries=False)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if "cdf" in HAVE[n]])
def test_distribution_functions(name):
    law = getattr(ours, name)
    args = operands(name)
    for method in ("cdf", "logsf"):
        wg.check_grads(getattr(law, method), args, order=1, entries=False)
    # The derivative of the distribution function is the density.
    x, *rest = args
    slope = wg.grad(lambda x: np.sum(law.cdf(x, *rest)))(x)
    np.testing.assert_allclose(slope, law.pdf(x, *rest), rtol=1e-10)
    slope = wg.grad(lambda x: np.sum(law.logcdf(x, *rest)))(x)
    np.testing.assert_allclose(slope, law.pdf(x, *rest) / law.cdf(x, *rest), rtol=1e-9)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if "ppf" in HAVE[n]])
def test_quantiles(name):
    law = getattr(ours, name)
    _, *rest = operands(name)
    q = np.array([0.1, 0.45, 0.8])
    wg.check_grads(law.ppf, (q, *rest), order=1, entries=False)
    slope = wg.grad(lambda q: np.sum(law.ppf(q, *rest)))(q)
    np.testing.assert_allclose(slope * law.pdf(law.ppf(q, *rest), *rest), 1.0, rtol=1e-9)


@pytest.mark.sample(13)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_outside_of_the_support_the_derivative_is_zero(name):
    law, shapes = getattr(ours, name), INSIDE[name]
    low, high = law.support(*shapes)
    for x in (low - 1.0, high + 1.0, low - 1e300, high + 1e300):
        if np.isinf(x) or (np.isinf(low) and np.isinf(high)):
            continue
        slopes = wg.grad(law.logpdf, tuple(range(len(shapes) + 3)))(x, *shapes, 0.0, 1.0)
        assert law.logpdf(x, *shapes) == -np.inf
        assert all(g == 0.0 for g in slopes), name
        slopes = wg.grad(law.cdf, tuple(range(len(shapes) + 3)))(x, *shapes, 0.0, 1.0)
        assert all(g == 0.0 for g in slopes), name
    batch = np.array([operands(name)[0][0], np.nan if np.isinf(low) else low - 3.0])
    if not np.isnan(batch[1]):  # points outside do not affect those inside
        slope = wg.grad(
            lambda s: np.sum(np.where(batch > low, law.logpdf(batch, *shapes, 0.0, s), 0))
        )
        assert np.isfinite(slope(1.7))


def test_at_the_ends():
    grad = lambda f, *x: wg.grad(f, tuple(range(len(x))))(*x)  # noqa: E731
    assert grad(ours.expon.logpdf, 0.0, 0.0, 2.0) == (-0.5, 0.5, -0.5)
    assert grad(ours.gamma.logpdf, 0.0, 1.0)[0] == -1.0
    assert grad(ours.beta.logpdf, 0.0, 1.0, 3.0)[0] == -2.0
    assert grad(ours.uniform.logpdf, 1.0, 0.0, 1.0)[2] == -1.0
    assert grad(ours.lognorm.logpdf, 0.0, 1.0) == (0.0, 0.0)
    assert grad(ours.invgamma.logpdf, 0.0, 1.0) == (0.0, 0.0)
    assert wg.grad(ours.halfnorm.logpdf)(0.0) == 0.0


def test_in_far_tails():
    for x in (-40.0, -5.0, -1e4):
        # 1 / (Mills ratio): the derivative of the logarithm of the normal distribution function.
        slope = wg.grad(ours.norm.logcdf)(x)
        exact = -x + 1.0 / -x - 2.0 / (-x) ** 3 if x < -30.0 else None
        want = np.exp(theirs.norm.logpdf(x) - theirs.norm.logcdf(x)) if exact is None else exact
        assert abs(slope / want - 1.0) < 1e-6
        assert np.isfinite(wg.grad(wg.grad(ours.norm.logcdf))(x))
    assert wg.grad(ours.norm.logpdf)(1e8) == -1e8
    assert wg.grad(ours.logistic.logpdf)(900.0) == -1.0
    assert wg.grad(ours.logistic.logcdf)(-900.0) == 1.0
    assert wg.grad(ours.gumbel_r.logsf)(700.0) == pytest.approx(-1.0)
    assert abs(wg.grad(ours.t.logpdf, 1)(0.5, 1e10)) < 1e-15
    slope = wg.grad(lambda a: ours.truncnorm.logpdf(20.5, a, 21.0))(20.0)
    want = np.exp(
        ours.truncnorm.logpdf(20.0, 20.0, 21.0)
    )  # with respect to the left end: the density there
    assert slope == pytest.approx(want, rel=1e-10)


def test_parameters_where_a_formula_divides_by_zero():
    for law in (ours.genextreme, ours.genpareto):
        x = np.array([0.3, 1.1])
        for c in (0.0, 1e-12, -1e-9):
            wg.check_grads(
                law.logpdf, (x, np.float64(c)), order=2 if c == 0.0 else 1, entries=False
            )
            wg.check_grads(law.ppf, (np.array([0.2, 0.7]), np.float64(c)), order=1, entries=False)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    """With respect to the real parameters; the point is an integer."""
    law = getattr(ours, name)
    real = {
        "bernoulli": (0.3,),
        "binom": (12.0, 0.3),
        "nbinom": (3.5, 0.4),
        "poisson": (3.2,),
        "geom": (0.3,),
        "hypergeom": (20.0, 7.0, 12.0),
        "betabinom": (10.0, 0.6, 2.0),
        "zipf": (2.3,),
        "dlaplace": (0.4,),
        "randint": (-3.0, 7.0),
        "logser": (0.4,),
    }[name]
    whole = {"binom": 1, "betabinom": 1, "hypergeom": 3, "randint": 2}.get(name, 0)
    fixed, free = real[:whole], [np.float64(p) for p in real[whole:]]
    k = np.array([1.0, 5.0]) if name != "bernoulli" else np.array([0.0, 1.0])
    if free:
        wg.check_grads(lambda *p: law.logpmf(k, *fixed, *p), tuple(free), order=2, entries=False)
        if hasattr(law, "lower") or hasattr(law, "upper"):
            wg.check_grads(lambda *p: law.cdf(k, *fixed, *p), tuple(free), order=1, entries=False)
        outside = wg.grad(lambda p: np.sum(law.pmf(np.array([0.5, -700.5]), *fixed, p, *free[1:])))
        assert outside(free[0]) == 0.0
    assert np.all(wg.grad(lambda k: np.sum(law.logpmf(k, *real)))(k) == 0.0)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["norm", "gamma", "t", "beta", "truncnorm", "genpareto"])
def test_compiled_and_batched(name):
    law, (x, *rest) = getattr(ours, name), operands(name)

    def slopes(x, *rest):
        return wg.grad(lambda *a: np.sum(law.logpdf(x, *a)), tuple(range(len(rest))))(*rest)

    want = slopes(x, *rest)
    for backend in ("interpret", "llvm"):
        got = wg.jit(slopes, backend=backend)(x, *rest)
        np.testing.assert_allclose(got, want, rtol=1e-12)
    rows = wg.vmap(lambda x: law.logpdf(x, *rest))(x)
    np.testing.assert_allclose(rows, law.logpdf(x, *rest), rtol=1e-14)
    rows = wg.vmap(lambda x: np.stack(slopes(x, *rest)))(x)
    np.testing.assert_allclose(rows.sum(0), want, rtol=1e-12)


@pytest.mark.parametrize("name", ["norm", "gamma", "t", "beta", "lognorm", "genextreme"])
def test_random_variates_are_differentiable(name):
    law, shapes = getattr(ours, name), [np.float64(s) for s in INSIDE[name]]
    key = wg.random.key(3)
    draw = lambda *a: law.rvs(*a, size=(3,), random_state=key)  # noqa: E731
    wg.check_grads(draw, (*shapes, np.float64(0.3), np.float64(1.7)), order=1, entries=False)
