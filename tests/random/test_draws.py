"""Random functions: distributions, derivatives, equal numbers on all backends."""

import numpy as np
import pytest
from scipy import stats

import wengert as wg

R = wg.random
ROOT = R.key(20)
N = 4000

# The distribution of each function, in SciPy.
CONTINUOUS = {
    "uniform": (lambda k, n, d: R.uniform(k, n, d, -1.0, 3.0), stats.uniform(-1.0, 4.0)),
    "normal": (lambda k, n, d: R.normal(k, n, d), stats.norm()),
    "lognormal": (lambda k, n, d: R.lognormal(k, 0.7, n, d), stats.lognorm(0.7)),
    "halfnormal": (lambda k, n, d: R.halfnormal(k, n, d), stats.halfnorm()),
    "exponential": (lambda k, n, d: R.exponential(k, n, d), stats.expon()),
    "gumbel": (lambda k, n, d: R.gumbel(k, n, d), stats.gumbel_r()),
    "weibull_min": (lambda k, n, d: R.weibull_min(k, 2.0, 1.5, n, d), stats.weibull_min(1.5, 0, 2)),
    "pareto": (lambda k, n, d: R.pareto(k, 2.5, n, d), stats.pareto(2.5)),
    "rayleigh": (lambda k, n, d: R.rayleigh(k, 2.0, n, d), stats.rayleigh(0, 2.0)),
    "laplace": (lambda k, n, d: R.laplace(k, n, d), stats.laplace()),
    "logistic": (lambda k, n, d: R.logistic(k, n, d), stats.logistic()),
    "cauchy": (lambda k, n, d: R.cauchy(k, n, d), stats.cauchy()),
    "triangular": (lambda k, n, d: R.triangular(k, -1, 0, 3, n, d), stats.triang(0.25, -1, 4)),
    "truncated_normal": (
        lambda k, n, d: R.truncated_normal(k, -0.5, 2.0, n, d),
        stats.truncnorm(-0.5, 2.0),
    ),
    "truncated_normal, far": (
        lambda k, n, d: R.truncated_normal(k, 12.0, np.inf, n, d),
        stats.truncnorm(12.0, np.inf),
    ),
    "gamma": (lambda k, n, d: R.gamma(k, 2.5, n, d), stats.gamma(2.5)),
    "gamma, small": (lambda k, n, d: R.gamma(k, 0.3, n, d), stats.gamma(0.3)),
    "beta": (lambda k, n, d: R.beta(k, 0.6, 2.0, n, d), stats.beta(0.6, 2.0)),
    "chisquare": (lambda k, n, d: R.chisquare(k, 3.0, n, d), stats.chi2(3.0)),
    "chi": (lambda k, n, d: R.chi(k, 3.0, n, d), stats.chi(3.0)),
    "inverse_gamma": (lambda k, n, d: R.inverse_gamma(k, 3.0, n, d), stats.invgamma(3.0)),
    "f": (lambda k, n, d: R.f(k, 3.0, 7.0, n, d), stats.f(3.0, 7.0)),
    "t": (lambda k, n, d: R.t(k, 3.0, n, d), stats.t(3.0)),
    "generalized_normal": (lambda k, n, d: R.generalized_normal(k, 1.3, n, d), stats.gennorm(1.3)),
    "von_mises": (lambda k, n, d: R.von_mises(k, 2.0, (n,), d), stats.vonmises(2.0)),
}
DISCRETE = {
    "bernoulli": (lambda k, n: R.bernoulli(k, 0.3, n), stats.bernoulli(0.3)),
    "geometric": (lambda k, n: R.geometric(k, 0.3, n), stats.geom(0.3)),
    "randint": (lambda k, n: R.randint(k, n, -3, 5), stats.randint(-3, 5)),
    "rademacher": (lambda k, n: R.rademacher(k, n), stats.rv_discrete(values=([-1, 1], [0.5] * 2))),
    "poisson": (lambda k, n: R.poisson(k, 3.5, n), stats.poisson(3.5)),
    "poisson, many": (lambda k, n: R.poisson(k, 40.0, n), stats.poisson(40.0)),
    "binomial": (lambda k, n: R.binomial(k, 12, 0.3, n), stats.binom(12, 0.3)),
    "binomial, many": (lambda k, n: R.binomial(k, 90, 0.8, n), stats.binom(90, 0.8)),
    "negative_binomial": (lambda k, n: R.negative_binomial(k, 3, 0.4, n), stats.nbinom(3, 0.4)),
    "categorical": (
        lambda k, n: R.categorical(k, np.log([0.2, 0.5, 0.3]), shape=n),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3])),
    ),
    "choice": (
        lambda k, n: R.choice(k, np.array([4, 7, 9]), n, p=np.array([0.2, 0.5, 0.3])),
        stats.rv_discrete(values=([4, 7, 9], [0.2, 0.5, 0.3])),
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    draw, law = CONTINUOUS[name]
    for k, dtype in enumerate(("float64", "float32")):
        x = draw(R.fold_in(ROOT, k), N, dtype)
        assert x.shape == (N,)
        assert x.dtype == dtype
        assert stats.kstest(x.astype(float), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    draw, law = DISCRETE[name]
    x = np.asarray(draw(ROOT, N)).astype(int)
    low, high = x.min(), x.max()
    values = np.arange(low, high + 1)
    want = N * law.pmf(values)
    keep = want > 5
    got = np.array([np.sum(x == v) for v in values])
    got, want = [np.append(c[keep], N - c[keep].sum()) for c in (got, want)]
    some = want > 1e-9
    assert got[~some].sum() == 0
    assert stats.chisquare(got[some], want[some] * (got.sum() / want[some].sum())).pvalue > 1e-3


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_every_backend_gives_the_same_numbers(name):
    """Bitwise, except for native implementations of exp, log and tan, which round differently."""
    if name in CONTINUOUS:
        draw = lambda key: CONTINUOUS[name][0](key, 50, "float64")  # noqa: E731
    else:
        draw = lambda key: DISCRETE[name][0](key, 50)  # noqa: E731
    want = draw(ROOT)
    for backend in ("interpret", "llvm"):
        got = wg.jit(draw, backend=backend)(ROOT)
        if np.asarray(want).dtype.kind == "f":
            # Angles near the mode are differences of angles near 1.
            small = 1e-15 if name == "von_mises" else 1e-300
            np.testing.assert_allclose(got, want, rtol=2e-14, atol=small)
        else:
            np.testing.assert_array_equal(got, want)
    if name in ("uniform", "normal", "halfnormal"):
        np.testing.assert_array_equal(got, want)


def test_vmap_over_keys():
    keys = R.split(ROOT, 5)
    rates = np.array([0.5, 3.0, 20.0, 90.0, 1.0])
    for draw in (
        lambda key, a: R.gamma(key, a, (3,)),
        lambda key, a: R.poisson(key, a, (3,)),
        lambda key, a: R.permutation(key, 6) + a,
        lambda key, a: R.von_mises(key, a, (2,)),
        lambda key, a: R.randint(key, (4,), 0, 100) + a,
    ):
        want = [draw(key, a) for key, a in zip(keys, rates, strict=True)]
        np.testing.assert_allclose(wg.vmap(draw)(keys, rates), want, rtol=1e-14)
        shared = [draw(ROOT, a) for a in rates]
        np.testing.assert_allclose(wg.vmap(draw, (None, 0))(ROOT, rates), shared, rtol=1e-14)


# The exact mean of a function of each sample, as a function of the parameter.
MEANS = {
    "gamma": (lambda k, a, n: R.gamma(k, a, n), lambda x: x**2, lambda a: a * (a + 1), 2.0),
    "gamma, small": (lambda k, a, n: R.gamma(k, a, n), lambda x: x, lambda a: a, 0.4),
    "beta, a": (lambda k, a, n: R.beta(k, a, 2.0, n), lambda x: x, lambda a: a / (a + 2.0), 1.5),
    "beta, b": (lambda k, b, n: R.beta(k, 1.5, b, n), lambda x: x, lambda b: 1.5 / (1.5 + b), 2.0),
    "dirichlet": (
        lambda k, a, n: R.dirichlet(k, np.stack([a, 2.0 + 0.0 * a]), n)[:, 0],
        lambda x: x,
        lambda a: a / (a + 2.0),
        1.5,
    ),
    "chisquare": (lambda k, d, n: R.chisquare(k, d, n), lambda x: x, lambda d: d, 3.0),
    "inverse_gamma": (
        lambda k, a, n: R.inverse_gamma(k, a, n),
        lambda x: x,
        lambda a: 1 / (a - 1),
        6.0,
    ),
    "t": (lambda k, d, n: R.t(k, d, n), lambda x: x**2, lambda d: d / (d - 2.0), 12.0),
    "von_mises": (
        lambda k, c, n: R.von_mises(k, c, n),
        lambda x: np.cos(x),
        lambda c: (1.0 - 0.125 / c - 0.1328 / c**2 - 0.1 / c**3) * 0.0 + c,
        2.0,
    ),
}


def bessel_ratio(c):
    from scipy.special import ive

    return ive(1, c) / ive(0, c)


@pytest.mark.parametrize("name", MEANS)
def test_gradients_of_means_agree_with_exact_means(name):
    """Within five standard errors of the estimate, at orders one and two."""
    draw, f, exact, at = MEANS[name]
    if name == "von_mises":
        exact = bessel_ratio
    n = 2000
    first = wg.jacfwd(lambda a: f(draw(ROOT, a, (n,))))
    for order, each in enumerate((first, wg.jacfwd(first)), 1):
        slopes = each(at)
        h = 1e-2
        steps = np.array([exact(at + k * h) for k in (-2, -1, 0, 1, 2)])
        weights = {1: [1, -8, 0, 8, -1], 2: [-1, 16, -30, 16, -1]}[order]
        want = np.dot(weights, steps) / (12 * h**order)
        error = np.std(slopes) / np.sqrt(n)
        assert abs(np.mean(slopes) - want) < 5.0 * error + 1e-6


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "draw",
    [
        lambda a, b: R.gamma(ROOT, a, (4,)) * b,
        lambda a, b: R.loggamma(ROOT, a, (4,)) * b,
        lambda a, b: R.beta(ROOT, a, b, (4,)),
        lambda a, b: R.t(ROOT, a + 2.0, (4,)) * b,
        lambda a, b: R.f(ROOT, a, b, (4,)),
        lambda a, b: R.von_mises(ROOT, a, (3,)) * b,
        lambda a, b: R.weibull_min(ROOT, a, b, (4,)),
        lambda a, b: R.pareto(ROOT, a + b, (4,)),
        lambda a, b: R.lognormal(ROOT, a, (4,)) * b,
        lambda a, b: R.triangular(ROOT, -a, 0.1 * b, 2.0, (4,)),
        lambda a, b: R.truncated_normal(ROOT, -a, b, (4,)),
        lambda a, b: R.generalized_normal(ROOT, a, (4,)) * b,
        lambda a, b: R.uniform(ROOT, (4,), minval=-a, maxval=b),
        lambda a, b: R.multivariate_normal(ROOT, np.stack([a, b]), np.eye(2) + 0.3 * a * b),
    ],
)
def test_derivatives_agree_with_finite_differences(draw):
    """Derivatives of the samples themselves, in both modes, to second order."""
    wg.check_grads(draw, (np.float64(0.7), np.float64(1.3)), order=2)


def test_small_parameters_of_dirichlet_give_no_nan():
    x = R.dirichlet(ROOT, np.full(4, 1e-3), (50,))
    assert np.allclose(x.sum(-1), 1.0)
    slope = wg.jacfwd(lambda a: R.dirichlet(ROOT, a * np.ones(4), (50,)))(1e-3)
    assert np.all(np.isfinite(slope))


def test_permutations_and_choices():
    x = np.arange(24.0).reshape(6, 4)
    y = R.permutation(ROOT, x)
    assert not np.array_equal(x, y)
    assert np.array_equal(np.sort(y[:, 0]), x[:, 0])
    z = R.permutation(ROOT, x, axis=1, independent=True)
    assert np.array_equal(np.sort(z, axis=1), x)
    picked = R.choice(ROOT, 10, (10,), replace=False)
    assert np.array_equal(np.sort(picked), np.arange(10))
    weighted = R.choice(ROOT, 3, (2,), replace=False, p=np.array([0.5, 0.0, 0.5]))
    assert set(weighted) == {0, 2}
    slope = wg.grad(lambda x: np.sum(R.permutation(ROOT, x)[:2] ** 2))(x)
    assert np.array_equal(np.sort(np.unique(slope.nonzero()[0])), np.sort(y[:2, 0] // 4))
    # All permutations of three elements are equally likely.
    orders = wg.vmap(lambda key: R.permutation(key, 3))(R.split(ROOT, 6000)) @ [9, 3, 1]
    counts = np.unique(orders, return_counts=True)[1]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3


def test_multivariate_distributions():
    cov = np.array([[2.0, 0.6], [0.6, 0.5]])
    for method in ("cholesky", "eigh"):
        x = R.multivariate_normal(ROOT, np.array([1.0, -1.0]), cov, N, method=method)
        assert np.allclose(np.cov(x.T), cov, atol=0.15)
        assert np.allclose(x.mean(0), [1, -1], atol=0.1)
    q = R.orthogonal(ROOT, 3, (500,))
    assert np.allclose(np.swapaxes(q, 1, 2) @ q, np.eye(3), atol=1e-12)
    assert np.allclose(q.mean(0), 0.0, atol=0.15)
    counts = R.multinomial(ROOT, 50, np.array([0.2, 0.5, 0.3]), (N,))
    assert np.all(counts.sum(-1) == 50)
    assert np.allclose(counts.mean(0), [10, 25, 15], atol=0.3)
    inside = R.ball(ROOT, 2, shape=N)
    radius = np.linalg.norm(inside, axis=-1)
    assert stats.kstest(radius**2, stats.uniform().cdf).pvalue > 1e-3


def test_extreme_parameters():
    assert np.array_equal(R.poisson(ROOT, np.array([0.0, -1.0, np.nan, 1e300])), [0, -1, -1, -1])
    assert np.array_equal(R.binomial(ROOT, np.array([0.0, 5, 5, 5, 2.5]), [0.5, 0, 1, 2, 0.5]),
                          [0, 0, 5, -1, -1])  # fmt: skip
    assert abs(R.poisson(ROOT, 1e15) / 1e15 - 1.0) < 1e-6
    assert np.isnan(R.gamma(ROOT, -1.0))
    whole = R.randint(ROOT, (1000,), -(2**63), 2**63 - 1)
    assert whole.min() < -(2**62) < 2**62 < whole.max()
