"""Values of distributions against SciPy: in the support, outside, at its ends, and in tails."""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats as theirs

import wengert as wg

from .distributions import CONTINUOUS, DISCRETE, points

ours = wg.scipy.stats
METHODS = ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"]
# Where SciPy's value is wrong (checked below), or NaN.
WRONG = {
    ("truncnorm", (1.0, np.inf), "entropy"),
    ("truncnorm", (8.0, 9.0), "entropy"),
    ("truncnorm", (1.0, np.inf), "isf"),
    ("exponnorm", (0.3,), "isf"),
    ("exponnorm", (2.0,), "isf"),
    ("f", (0.8, 5.0), "isf"),
    ("f", (7.0, 9.5), "isf"),
    *(("vonmises", (30.0,), method) for method in ("ppf", "isf", "cdf", "sf", "logcdf", "logsf")),
}


def _call(law, method, *args):
    try:
        with np.errstate(all="ignore"):
            return getattr(law, method)(*args)
    except wg.errors.NotDifferentiableError:
        return None


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_values(name):
    for shapes in CONTINUOUS[name]:
        for loc, scale in ((0.0, 1.0), (1.5, 2.5)):
            law = getattr(theirs, name)(*shapes, loc=loc, scale=scale)
            mine = getattr(ours, name)(*shapes, loc=loc, scale=scale)
            x = points(getattr(theirs, name), shapes, loc, scale)
            for method in METHODS:
                got = _call(mine, method, x)
                if got is None or (name, shapes, method) in WRONG:
                    continue
                want = _call(law, method, x)
                if method == "logpdf":
                    some = ~(np.isnan(want) & np.isinf(x))  # where SciPy computes inf - inf
                    assert np.all(got[~some] == -np.inf)
                    got, want = got[some], want[some]
                if method in ("logcdf", "logsf"):  # where SciPy takes the logarithm of a difference
                    part = _call(law, method[3:], x)
                    keep = ~((part < 1e-8) | (part > 1 - 1e-8)) | np.isinf(x)
                    got, want = got[keep], want[keep]
                assert isinstance(got, np.ndarray)
                if not method.startswith("log"):
                    some = ~(np.isnan(want) & np.isinf(x))  # where SciPy computes inf - inf
                    assert np.all(np.isin(got[~some], [0.0, 1.0, -np.inf]))
                    got, want = got[some], want[some]
                np.testing.assert_allclose(
                    got, want, rtol=2e-12, atol=1e-13, err_msg=f"{name}{shapes} {method} at {x}"
                )


@pytest.mark.parametrize("name", CONTINUOUS)
def test_quantiles_and_moments(name):
    q = np.array([0.0, 1e-9, 0.02, 0.5, 0.7, 0.999, 1.0, -0.1, 1.1, np.nan])
    for shapes in CONTINUOUS[name]:
        law = getattr(theirs, name)(*shapes, loc=1.5, scale=2.5)
        mine = getattr(ours, name)(*shapes, loc=1.5, scale=2.5)
        for method in ("ppf", "isf"):
            got = _call(mine, method, q)
            if got is not None and (name, shapes, method) not in WRONG:
                want = _call(law, method, q)
                np.testing.assert_allclose(
                    got, want, rtol=1e-9, atol=1e-12, err_msg=f"{name}{shapes} {method}"
                )
        for method in ("mean", "var", "std", "entropy", "median"):
            if name == "vonmises" and method in ("mean", "entropy"):
                continue  # SciPy reduces them to an interval
            got = _call(mine, method)
            if got is not None and (name, shapes, method) not in WRONG:
                want = _call(law, method)
                np.testing.assert_allclose(
                    got, want, rtol=1e-8, atol=1e-9, err_msg=f"{name}{shapes} {method}"
                )


@pytest.mark.parametrize("name", DISCRETE)
def test_values_of_discrete_distributions(name):
    k = np.array([-60.0, -3, -1, 0, 1, 2, 3, 5, 11, 12, 30, 200, 0.5, np.inf, np.nan])
    for shapes in DISCRETE[name]:
        law = getattr(theirs, name)(*shapes, loc=1)
        mine = getattr(ours, name)(*shapes, loc=1)
        for method in ("logpmf", "pmf", "cdf", "sf"):
            got = _call(mine, method, k)
            if got is not None:
                want = _call(law, method, k)
                some = ~(np.isnan(want) & np.isinf(k))  # where SciPy computes inf - inf
                np.testing.assert_allclose(
                    got[some],
                    want[some],
                    rtol=1e-10,
                    atol=1e-13,
                    err_msg=f"{name}{shapes} {method}",
                )
        for method in ("mean", "var"):
            got = _call(mine, method)
            if got is not None:
                np.testing.assert_allclose(got, _call(law, method), rtol=1e-11)


def test_values_where_scipy_is_wrong():
    with mp.workdps(40):
        for low, high in ((1.0, mp.inf), (8.0, 9.0)):
            mass = mp.ncdf(-low) - mp.ncdf(-high)
            density = lambda x, m=mass: mp.npdf(x) / m  # noqa: E731
            ends = [low, low + 1, high if high != mp.inf else 12]
            want = -mp.quad(lambda x, d=density: d(x) * mp.log(d(x)), ends)
            got = ours.truncnorm.entropy(low, float(high))
            assert abs(got - float(want)) < 1e-11
        x = ours.truncnorm.isf(1e-9, 1.0, np.inf)
        assert abs(float(mp.ncdf(-mp.mpf(x)) / mp.ncdf(-1)) / 1e-9 - 1.0) < 1e-11
        whole = 2 * mp.pi * mp.besseli(0, 30)
        for angle in (-1.4, 0.0, 0.3):
            part = mp.quad(lambda s: mp.exp(30 * mp.cos(s)), mp.linspace(-mp.pi, angle, 9)) / whole
            assert abs(ours.vonmises.cdf(angle, 30.0) / float(part) - 1.0) < 1e-13
            assert abs(ours.vonmises.sf(-angle, 30.0) / float(part) - 1.0) < 1e-13
            assert abs(ours.vonmises.isf(float(part), 30.0) + angle) < 1e-12
        for shape in (0.3, 2.0):
            x, rate = mp.mpf(ours.exponnorm.isf(1e-9, shape)), 1 / mp.mpf(shape)
            tail = mp.ncdf(-x) + mp.exp(rate * (rate / 2 - x)) * mp.ncdf(x - rate)
            assert abs(float(tail) / 1e-9 - 1.0) < 1e-11
        for n, m in ((0.8, 5.0), (7.0, 9.5)):
            x = mp.mpf(ours.f.isf(1e-9, n, m))
            tail = mp.betainc(m / 2, n / 2, 0, m / (m + n * x), regularized=True)
            assert abs(float(tail) / 1e-9 - 1.0) < 1e-11


def test_far_tails_are_accurate():
    with mp.workdps(60):
        exact = {
            ("norm", "logcdf", -40.0): mp.log(mp.ncdf(-40)),
            ("norm", "logsf", 40.0): mp.log(mp.ncdf(-40)),
            ("norm", "logcdf", 8.5): mp.log(mp.ncdf(mp.mpf(8.5))),
            ("logistic", "logcdf", -800.0): mp.mpf(-800),
            ("gumbel_r", "logsf", 60.0): mp.log(-mp.expm1(-mp.exp(-60))),
            ("gumbel_l", "logcdf", -60.0): mp.log(-mp.expm1(-mp.exp(-60))),
            ("laplace", "logcdf", -900.0): -900 - mp.log(2),
            ("halfnorm", "logsf", 50.0): mp.log(2 * mp.ncdf(-50)),
            ("expon", "logcdf", 1e-30): mp.log(mp.mpf(1e-30)),
            ("cauchy", "logcdf", -1e20): -mp.log(mp.pi) - mp.log(mp.mpf(1e20)),
        }
        for (name, method, x), want in exact.items():
            got = getattr(getattr(ours, name), method)(x)
            assert abs(got - float(want)) <= 1e-14 * abs(float(want)), name
        mass = mp.ncdf(-20) - mp.ncdf(-21)
        want = -(mp.mpf(20.5) ** 2) / 2 - mp.log(2 * mp.pi) / 2 - mp.log(mass)
    assert abs(ours.truncnorm.logpdf(20.5, 20.0, 21.0) - float(want)) < 1e-12


def test_precision_is_kept_and_parameters_broadcast():
    x = np.linspace(0.1, 0.9, 5, dtype=np.float32)
    for name, several in CONTINUOUS.items():
        mine = getattr(ours, name)
        shapes = [float(s) for s in several[-1]]
        point = x - 1.0 if name == "weibull_max" else 1.0 + x if name == "pareto" else x
        point = 8.0 + x if name == "truncnorm" else point
        got = mine.logpdf(point.astype(np.float32), *shapes)
        assert got.dtype == np.float32, name
        want = mine.logpdf(point.astype(np.float32).astype(float), *shapes)
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5, err_msg=name)
    for law, shapes in ((ours.beta, (2.0, 3.0)), (ours.gamma, (2.0,)), (ours.norm, ())):
        for method in ("cdf", "sf", "logcdf", "ppf", "isf"):
            assert getattr(law, method)(x, *shapes).dtype == np.float32, method
    wide = ours.gamma.logpdf(x[:, None], np.array([0.5, 2.0, 3.0]), scale=2.0)
    assert wide.shape == (5, 3)


def test_invalid_parameters_give_nan():
    assert np.isnan(ours.norm.logpdf(0.0, 0.0, -1.0))
    assert np.isnan(ours.gamma.cdf(1.0, -2.0))
    assert np.array_equal(np.isnan(ours.beta.logpdf(0.5, [1.0, 0.0], 2.0)), [False, True])
    assert np.isnan(ours.binom.pmf(1, 2.5, 0.5))


def test_arguments_are_checked():
    for call, message in (
        (lambda: ours.gamma.logpdf(1.0), "missing"),
        (lambda: ours.norm.logpdf(1.0, 0.0, 1.0, 2.0), "positional arguments"),
        (lambda: ours.norm.logpdf(1.0, mu=0.0), "keywords"),
        (lambda: ours.norm.logpdf(1.0, 0.0, loc=0.0), "twice"),
        (lambda: ours.norm.rvs(size=3), "random_state"),
    ):
        with pytest.raises(wg.errors.ArgumentError, match=message):
            call()
    with pytest.raises(wg.errors.DtypeError, match="real"):
        ours.norm.logpdf(1j)


@pytest.mark.sample(18)
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_random_numbers_have_the_distribution(name):
    several = (CONTINUOUS | DISCRETE)[name]
    key = wg.random.key(5)
    shapes = several[-1]
    mine, law = getattr(ours, name), getattr(theirs, name)(*shapes, loc=1)
    try:
        x = mine.rvs(*shapes, loc=1, size=2000, random_state=key)
    except wg.errors.NotDifferentiableError:
        assert name in ("invgauss", "hypergeom", "zipf", "randint", "logser")
        return
    assert x.shape == (2000,)
    if name in DISCRETE:
        assert x.dtype.kind == "i"
        k = np.unique(x)
        heights = _call(law, "cdf", k)
        error = np.abs(np.array([np.mean(x <= v) for v in k]) - heights).max()
        assert error < 1.95 / np.sqrt(2000)
    elif name == "vonmises":
        assert theirs.kstest(x - 1.0, theirs.vonmises(*shapes).cdf).pvalue > 1e-3
    else:
        assert theirs.kstest(x, law.cdf).pvalue > 1e-3


def test_distributions_have_the_names_and_parameters_of_scipy():
    found = {name: getattr(ours, name) for name in ours.distributions.__all__}
    assert len(found) == 116
    for name, mine in found.items():
        law = getattr(theirs, name)
        assert mine.name == law.name == name or name in ("erlang", "reciprocal")
        assert ", ".join(mine.shapes) == (law.shapes or ""), name
        assert hasattr(mine, "logpmf") == hasattr(law, "logpmf"), name
