"""The less common distributions: values of SciPy's and mpmath's, derivatives by differences.

quick   values of all, derivatives of some of each kind
slow    derivatives of all, to second order
"""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats as theirs

import wengert as wg

from .less_common_distributions import CONTINUOUS, DISCRETE, QUICK, SLOW_IN_SCIPY

ours = wg.scipy.stats
METHODS = "logpdf pdf cdf sf logcdf logsf".split()
FREE = [name for name, shapes in DISCRETE.items() if any(type(s) is float for s in shapes)]
Q = np.array([1e-4, 0.05, 0.3, 0.5, 0.8, 0.99, 1.0 - 1e-4])


def value_or_none(law, method, *args):
    """The value of a method, or None if there is no formula."""
    try:
        with np.errstate(all="ignore"):
            return getattr(law, method)(*args)
    except wg.errors.NotDifferentiableError:
        return None


@pytest.mark.parametrize("name", CONTINUOUS)
def test_values(name):
    compared = 0
    for shapes in CONTINUOUS[name]:
        law = getattr(theirs, name)(*shapes, loc=0.3, scale=1.7)
        mine = getattr(ours, name)(*shapes, loc=0.3, scale=1.7)
        x = law.ppf(Q)
        for method in (*METHODS, "ppf", "isf"):
            got = value_or_none(mine, method, Q if method in ("ppf", "isf") else x)
            if got is not None:
                want = value_or_none(law, method, Q if method in ("ppf", "isf") else x)
                np.testing.assert_allclose(got, want, rtol=2e-9, atol=2e-12, err_msg=method)
                compared += 1
        np.testing.assert_allclose(mine.support(), law.support())
    assert compared >= 2


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n not in SLOW_IN_SCIPY])
@pytest.mark.filterwarnings("ignore")  # of SciPy's integrals
def test_moments(name):
    shapes = CONTINUOUS[name][0]
    for method in ("mean", "var", "entropy"):
        got = value_or_none(getattr(ours, name), method, *shapes, 0.3, 1.7)
        if got is not None and np.isfinite(got):
            want = getattr(getattr(theirs, name), method)(*shapes, 0.3, 1.7)
            np.testing.assert_allclose(got, want, rtol=5e-6, err_msg=method)


def operands(name):
    shapes = CONTINUOUS[name][0]
    x = getattr(theirs, name)(*shapes, loc=0.3, scale=1.7).ppf([0.15, 0.62])
    return (x, *map(np.float64, shapes), np.float64(0.3), np.float64(1.7))


def derivatives(name, order):
    law, (x, *rest) = getattr(ours, name), operands(name)
    q = np.array([0.15, 0.62])
    checked = 0
    for method in ("logpdf", "cdf", "logsf", "ppf", "isf", "mean", "var", "entropy"):
        point = {"logpdf": x, "cdf": x, "logsf": x, "ppf": q, "isf": q}.get(method)
        args = tuple(rest) if point is None else (point, *rest)
        try:
            value = getattr(law, method)(*args)
        except wg.errors.NotDifferentiableError:
            continue
        if np.all(np.isfinite(value)):
            wg.check_grads(getattr(law, method), args, order=order, entries=False)
            checked += 1
    assert checked >= 1


@pytest.mark.parametrize("name", QUICK)
def test_some_derivatives(name):
    derivatives(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS)
def test_all_derivatives(name):
    derivatives(name, 2)


@pytest.mark.sample(28)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_outside_of_the_support_density_and_derivatives_are_zero(name):
    law, shapes = getattr(ours, name), CONTINUOUS[name][0]
    low, high = law.support(*shapes)
    for x in (low - 1.0, high + 1.0):
        if np.isfinite(x):
            slopes = wg.grad(law.logpdf, tuple(range(len(shapes) + 3)))(x, *shapes, 0.0, 1.0)
            assert law.logpdf(x, *shapes) == -np.inf and not np.any(slopes)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    shapes = DISCRETE[name]
    law, mine = getattr(theirs, name)(*shapes, loc=1), getattr(ours, name)(*shapes, loc=1)
    k = np.array([-3, -1, 0, 1, 2, 3, 5, 8, 9, 12, 30, 0.5])
    q = np.array([0.0, 1e-9, 0.2, 0.51, 0.77, 1.0 - 1e-9, 1.0, -0.1, np.nan])
    for method in ("logpmf", "pmf", "cdf", "sf", "ppf", "isf"):
        got = value_or_none(mine, method, q if method in ("ppf", "isf") else k)
        if got is not None:
            want = getattr(law, method)(q if method in ("ppf", "isf") else k)
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-14, err_msg=method)
    for method in ("mean", "var", "entropy", "median"):
        got = value_or_none(mine, method)
        if got is not None:
            np.testing.assert_allclose(got, getattr(law, method)(), rtol=1e-9, err_msg=method)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", FREE)
def test_discrete_distributions_are_differentiable_in_their_parameters(name):
    shapes = DISCRETE[name]
    free = [i for i, s in enumerate(shapes) if isinstance(s, float)]
    k = np.array([0.0, 1.0]) if name == "bernoulli" else np.array([1.0, 2.0, 5.0])

    def called(method, *moved):
        whole = list(shapes)
        for i, value in zip(free, moved, strict=True):
            whole[i] = value
        mine = getattr(ours, name)(*whole)
        return (
            getattr(mine, method)(k)
            if method in ("logpmf", "cdf", "sf")
            else mine.__getattr__(method)()
        )

    start = tuple(np.float64(shapes[i]) for i in free)
    for method in ("logpmf", "cdf", "mean", "var", "entropy"):
        if (
            value_or_none(
                getattr(ours, name)(*shapes), method, *([k] if method in ("logpmf", "cdf") else [])
            )
            is not None
        ):
            wg.check_grads(lambda *p, m=method: called(m, *p), start, order=1, entries=False)


def test_discrete_quantiles_are_piecewise_constant():
    slopes = wg.grad(lambda q, mu: ours.poisson.ppf(q, mu), (0, 1))(0.4, 2.3)
    assert slopes == (0.0, 0.0)
    rows = wg.vmap(lambda q: ours.nbinom.ppf(q, 4.5, 0.4))(np.array([0.1, 0.8]))
    np.testing.assert_array_equal(rows, theirs.nbinom.ppf([0.1, 0.8], 4.5, 0.4))


def test_entropies_that_are_sums():
    np.testing.assert_allclose(
        ours.poisson.entropy(1e5), 0.5 * np.log(2 * np.pi * np.e * 1e5) - 1 / 12e5, rtol=1e-10
    )
    with pytest.raises(wg.errors.OperandError, match="terms"):
        ours.poisson.entropy(1e16)
    with pytest.raises(wg.errors.NotDifferentiableError, match="entropy"):
        ours.yulesimon.entropy(2.5)
    with mp.workdps(30):
        whole = mp.zeta(3.2)
        want = mp.log(whole) - mp.mpf(3.2) * mp.zeta(3.2, 1, 1) / whole
    assert abs(ours.zipf.entropy(3.2) - float(want)) < 1e-13


def test_tails_are_accurate():
    """Against mpmath, where SciPy subtracts from 1."""
    with mp.workdps(50):
        t = mp.mpf("1e-5")
        exact = {
            ("cosine", "cdf", (-np.pi + 1e-5,)): (
                (lambda y: (y - mp.sin(y)) / (2 * mp.pi))(mp.pi + mp.mpf(-np.pi + 1e-5))
            ),
            ("foldnorm", "cdf", (1e-5, 2.5)): mp.ncdf(t - 2.5) - mp.ncdf(-t - 2.5),
            ("foldcauchy", "cdf", (1e-5, 2.5)): (mp.atan(t - 2.5) + mp.atan(t + 2.5)) / mp.pi,
            ("levy", "sf", (1e12,)): mp.erf(mp.sqrt(mp.mpf("0.5e-12"))),
            ("burr12", "sf", (1e9, 2.5, 3.0)): (1 + mp.mpf(1e9) ** mp.mpf(2.5)) ** -3,
            ("johnsonsu", "logsf", (1e9, 0.5, 2.0)): mp.log(
                mp.ncdf(-(mp.mpf(0.5) + 2 * mp.asinh(mp.mpf(1e9))))
            ),
            ("powernorm", "ppf", (1e-300, 3.0)): None,
        }
        for (name, method, args), want in exact.items():
            got = getattr(getattr(ours, name), method)(*args)
            if want is None:
                back = -mp.expm1(3 * mp.log1p(-mp.ncdf(mp.mpf(got))))
                assert abs(back / mp.mpf(1e-300) - 1) < 1e-11
            else:
                assert abs(mp.mpf(float(got)) / want - 1) < 3e-11, (name, method)


@pytest.mark.parametrize("name", ["skewnorm", "wald", "jf_skew_t", "genexpon"])
def test_quantiles_by_the_implicit_function_theorem(name):
    """The derivative of the inverse is 1 / density, in both modes and compiled."""
    law, shapes = getattr(ours, name), CONTINUOUS[name][0]
    q = np.array([1e-4, 0.4, 0.9995])
    x = law.ppf(q, *shapes)
    np.testing.assert_allclose(law.cdf(x, *shapes), q, rtol=1e-12)
    slope = wg.grad(lambda q: np.sum(law.ppf(q, *shapes)))
    np.testing.assert_allclose(slope(q) * law.pdf(x, *shapes), 1.0, rtol=1e-10)
    np.testing.assert_allclose(wg.jit(slope)(q), slope(q), rtol=1e-12)
    rows = wg.vmap(lambda q: law.ppf(q, *shapes))(q)
    np.testing.assert_allclose(rows, x, rtol=1e-13)
    assert law.ppf(np.float32(0.3), *shapes).dtype == np.float32


def test_random_numbers_follow_the_distribution_and_are_differentiable():
    key = wg.random.key(7)
    for name in ("exponnorm", "burr", "loggamma", "crystalball", "kappa4"):
        shapes = CONTINUOUS[name][0]
        x = getattr(ours, name).rvs(*shapes, size=400, random_state=key)
        assert theirs.kstest(x, getattr(theirs, name)(*shapes).cdf).pvalue > 1e-3, name
    draw = lambda c: ours.exponnorm.rvs(c, size=3, random_state=key)  # noqa: E731
    wg.check_grads(draw, (np.float64(1.7),), order=1, entries=False)
