"""Statistics and tests of samples: values against SciPy, derivatives against differences."""

import numpy as np
import pytest
from scipy import stats as theirs

import wengert as wg

ours = wg.scipy.stats
RNG = np.random.default_rng(3)
X = RNG.uniform(0.2, 1.9, size=(12, 2))
Y = X[:, ::-1] * 0.7 + RNG.uniform(size=(12, 2))
SHARES = RNG.uniform(0.5, 2.0, size=12)
CASES = {
    "gstd": ((X,), {"axis": 1, "ddof": 0}),
    "gzscore": ((X,), {"axis": 0}),
    "iqr": ((X,), {"axis": 0, "rng": (10, 60), "scale": "normal"}),
    "median_abs_deviation": ((X,), {"axis": None, "scale": "normal"}),
    "trim_mean": ((X, 0.2), {"axis": 0}),
    "tmean": ((X, (0.5, 1.5)), {"inclusive": (False, True), "axis": 0}),
    "tvar": ((X, (0.5, None)), {"axis": 0, "ddof": 0}),
    "tstd": ((X, None), {"axis": None}),
    "tsem": ((X, (0.3, 1.7)), {"axis": 0}),
    "tmin": ((X, 0.6), {"axis": 0, "inclusive": False}),
    "tmax": ((X, 1.1), {"axis": None}),
    "circmean": ((X,), {"high": 3.0, "low": 0.5, "axis": 0}),
    "circvar": ((X,), {"high": 3.0, "axis": 1}),
    "circstd": ((X,), {"axis": 0, "normalize": True}),
    "kstat": ((X, 4), {"axis": 0}),
    "kstatvar": ((X[:, 0], 2), {}),
    "differential_entropy": ((X,), {"method": "vasicek", "base": 2.0, "window_length": 3}),
    "boxcox": ((X[:, 0], 0.4), {}),
    "yeojohnson": ((X[:, 0] - 0.8, 1.3), {}),
    "yeojohnson_llf": ((1.3, X - 0.8), {}),
    "pmean": ((X, 2.5), {"axis": 0}),
    "power_divergence": ((X,), {"lambda_": "cressie-read", "ddof": 1}),
    "wasserstein_distance": ((X[:, 0], Y[:9, 1], SHARES, SHARES[:9]), {}),
    "energy_distance": ((X[:, 0], Y[:9, 1]), {}),
}
FIELDS = {
    "pearsonr": ((X, Y), {"axis": 0}, ["statistic", "pvalue"]),
    "linregress": (
        (X[:, 0], Y[:, 0]),
        {},
        "slope intercept rvalue pvalue stderr intercept_stderr".split(),
    ),
    "ttest_1samp": ((X, 0.9), {"axis": 0}, ["statistic", "pvalue"]),
    "ttest_rel": ((X, Y), {}, ["statistic", "pvalue"]),
    "ttest_ind": ((X, Y[:7]), {"equal_var": False}, ["statistic", "pvalue"]),
    "f_oneway": ((X, Y, Y[:5]), {}, ["statistic", "pvalue"]),
    "chisquare": ((X,), {"axis": 0}, ["statistic", "pvalue"]),
    "directional_stats": ((X,), {}, ["mean_direction", "mean_resultant_length"]),
}


def assert_same(name, args, given, select):
    mine, law = getattr(ours, name), getattr(theirs, name)
    places = [i for i, a in enumerate(args) if isinstance(a, np.ndarray | float)]

    def program(*moved):
        whole = list(args)
        for i, a in zip(places, moved, strict=True):
            whole[i] = a
        return select(mine(*whole, **given))

    inputs = [np.asarray(args[i]) for i in places]
    want = select(law(*args, **given))
    got = wg.vjp(program, *inputs)[0]
    for g, w in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-11)
    wg.check_grads(program, inputs, order=1, entries=False)


@pytest.mark.parametrize("name", CASES)
def test_functions(name):
    if name in ("trim_mean", "tmean", "tvar", "tsem", "tmin", "tmax", "power_divergence", "pmean"):
        args, given = CASES[name]
        if name in ("power_divergence",):
            assert_same(name, args, given, lambda made: made[0])
            return
        fixed, free = args[1:], args[:1]
        mine = getattr(ours, name)
        want = getattr(theirs, name)(*args, **given)
        np.testing.assert_allclose(wg.vjp(lambda x: mine(x, *fixed, **given), *free)[0], want)
        wg.check_grads(lambda x: mine(x, *fixed, **given), free, order=1, entries=False)
        return
    assert_same(name, *CASES[name], lambda made: made)


@pytest.mark.parametrize("name", FIELDS)
def test_fields_of_results(name):
    args, given, fields = FIELDS[name]
    for field in fields:
        assert_same(name, args, given, lambda made, f=field: getattr(made, f))


def test_differential_entropy_by_every_method():
    for method in ("vasicek", "van es", "ebrahimi", "auto"):
        want = theirs.differential_entropy(X, method=method)
        got = wg.vjp(lambda x, m=method: ours.differential_entropy(x, method=m), X)[0]
        np.testing.assert_allclose(got, want, rtol=1e-13)
    with pytest.raises(wg.errors.ArgumentError, match="half"):
        wg.grad(lambda x: ours.differential_entropy(x))(np.array([0.1, 0.5, 0.2, 0.7]))


@pytest.mark.parametrize("method", [None, "silverman", 0.3])
def test_gaussian_kde(method):
    sample, weights = X.T, SHARES
    law = theirs.gaussian_kde(sample, method, weights)
    mine = ours.gaussian_kde(sample, method, weights)
    np.testing.assert_allclose(mine(Y.T), law(Y.T), rtol=1e-12)
    np.testing.assert_allclose(mine.logpdf(Y.T), law.logpdf(Y.T), rtol=1e-12)
    if method == 0.3:
        return

    def program(points, sample, weights):
        return ours.gaussian_kde(sample, method, weights).logpdf(points)

    args = (Y[:3].T, sample, weights)
    wg.check_grads(program, args, order=1, entries=False)
    np.testing.assert_allclose(wg.jit(program)(*args), program(*args), rtol=1e-12)
    with pytest.raises(wg.errors.ShapeError, match="columns"):
        mine(np.ones((3, 4)))


def test_errors():
    x = wg.tensor(X[:, 0])
    for call, message in (
        (lambda: ours.pearsonr(x, X[:, 1], alternative="less"), "two-sided"),
        (lambda: ours.boxcox(x), "lmbda"),
        (lambda: ours.trim_mean(x, 0.5), "no elements remain"),
        (lambda: ours.kstat(x, 5), "1, 2, 3 or 4"),
    ):
        with pytest.raises(wg.errors.ArgumentError, match=message):
            call()
