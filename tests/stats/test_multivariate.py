"""Multivariate distributions and descriptive statistics: values and derivatives."""

import numpy as np
import pytest
from scipy import stats as theirs

import wengert as wg

ours = wg.scipy.stats
RNG = np.random.default_rng(4)
A = RNG.normal(size=(3, 3))
COV = A @ A.T + np.eye(3)
MEAN = RNG.normal(size=3)
X = RNG.normal(size=(5, 3))
W = np.array([[3.0, 0.4, 0.1], [0.4, 2.0, -0.3], [0.1, -0.3, 4.0]])
SHARES = RNG.dirichlet([1.0, 2.0, 3.0], size=4)

CASES = {
    "multivariate_normal": [(X, MEAN, COV), (X, None, COV), (X[0], MEAN, COV), (0.3, 0.1, 2.0),
                            (X, MEAN, 2.5), (X, MEAN, np.array([1.0, 2.0, 3.0])),
                            (X[:, 0], 0.5, 2.0)],
    "multivariate_t": [(X, MEAN, COV, 3.5), (X[0], MEAN, COV, 1.0)],
    "dirichlet": [(SHARES.T, np.array([0.7, 2.0, 3.0])),
                  (SHARES[0, :2], np.array([1.0, 2.0, 3.0]))],
    "matrix_normal": [(X, np.ones((5, 3)), np.diag([1.0, 2, 3, 4, 5]), COV), (X[:3], None, COV, W)],
    "wishart": [(W, 5.5, COV), (np.stack([W, COV], -1), 4.0, COV)],
    "invwishart": [(W, 5.5, COV), (np.stack([W, COV], -1), 4.0, COV)],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    for args in CASES[name]:
        got = getattr(ours, name).logpdf(*args)
        want = getattr(theirs, name).logpdf(*args)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(getattr(ours, name).pdf(*args), np.exp(want), rtol=1e-11)


def symmetric(m):
    return 0.5 * (m + np.swapaxes(m, -1, -2))


GRADIENTS = [
        (lambda x, m, c: ours.multivariate_normal.logpdf(x, m, symmetric(c)), (X[:2], MEAN, COV)),
        (lambda x, m, c, d: ours.multivariate_t.logpdf(x, m, symmetric(c), d),
         (X[:2], MEAN, COV, np.float64(3.5))),
        (lambda a: ours.dirichlet.logpdf(SHARES.T, a), (np.array([0.7, 2.0, 3.0]),)),
        (lambda x: ours.dirichlet.logpdf(x, np.array([0.7, 2.0, 3.0])), (SHARES[0, :2],)),
        (lambda x, r, c: ours.matrix_normal.logpdf(x, None, symmetric(r), symmetric(c)),
         (X[:3], W, COV)),
        (lambda x, d, s: ours.wishart.logpdf(symmetric(x), d, symmetric(s)),
         (W, np.float64(5.5), COV)),
        (lambda x, d, s: ours.invwishart.logpdf(symmetric(x), d, symmetric(s)),
         (W, np.float64(5.5), COV)),
        (lambda p: ours.multinomial.logpmf([[1, 2, 0], [3, 0, 0]], 3, p / np.sum(p)),
         (np.array([0.2, 0.3, 0.5]),)),
    ]  # fmt: skip


@pytest.mark.parametrize(("f", "args"), GRADIENTS)
def test_gradients(f, args):
    wg.check_grads(f, args, order=1, entries=False)


@pytest.mark.slow
@pytest.mark.parametrize(("f", "args"), GRADIENTS)
def test_second_derivatives(f, args):
    wg.check_grads(f, args, order=2, entries=False)


def test_the_gradient_with_respect_to_a_covariance_is_symmetric():
    slope = wg.grad(lambda c: np.sum(ours.multivariate_normal.logpdf(X, MEAN, c)))(COV)
    inverse = np.linalg.inv(COV)
    d = X - MEAN
    want = 0.5 * (inverse @ (d.T @ d) @ inverse - len(X) * inverse)
    np.testing.assert_allclose(slope, want, rtol=1e-10)


def test_counts_with_another_sum():
    p = np.array([0.2, 0.3, 0.5])
    x = np.array([[1, 2, 0], [1, 1, 0], [4, -1, 0], [0, 0, 3]])
    np.testing.assert_allclose(
        ours.multinomial.logpmf(x, 3, p), theirs.multinomial.logpmf(x, 3, p), rtol=1e-13
    )
    slope = wg.grad(lambda p: ours.multinomial.pmf([1, 1, 0], 3, p))(p)
    assert np.all(slope == 0.0)


def test_random_vectors():
    key = wg.random.key(0)
    x = ours.multivariate_normal.rvs(MEAN, COV, size=5000, random_state=key)
    np.testing.assert_allclose(np.cov(x.T), COV, atol=0.4)
    share = ours.dirichlet.rvs(np.array([1.0, 2.0, 3.0]), size=2000, random_state=key)
    np.testing.assert_allclose(share.mean(0), [1 / 6, 1 / 3, 0.5], atol=0.02)
    assert np.all(ours.multinomial.rvs(7, np.array([0.2, 0.8]), 10, key).sum(-1) == 7)


SAMPLE = np.abs(RNG.normal(size=(6, 3))) + 0.5
SUMMARIES = {
    "gmean": lambda s, a: s.gmean(a),
    "gmean, weights": lambda s, a: s.gmean(
        a, axis=0, weights=np.arange(1.0, 1.0 + len(a))[:, None]
    ),
    "hmean": lambda s, a: s.hmean(a, axis=1),
    "pmean": lambda s, a: s.pmean(a, 2.5),
    "pmean, 0": lambda s, a: s.pmean(a, 0),
    "moment": lambda s, a: s.moment(a, 3),
    "moment, center": lambda s, a: s.moment(a, 2, center=1.0),
    "skew": lambda s, a: s.skew(a),
    "skew, all": lambda s, a: s.skew(a, axis=None, bias=False),
    "kurtosis": lambda s, a: s.kurtosis(a, bias=False),
    "kurtosis, pearson": lambda s, a: s.kurtosis(a, axis=1, fisher=False),
    "variation": lambda s, a: s.variation(a),
    "sem": lambda s, a: s.sem(a),
    "zscore": lambda s, a: s.zscore(a, ddof=1),
    "zmap": lambda s, a: s.zmap(2.0 * a, a),
    "boxcox_llf": lambda s, a: s.boxcox_llf(0.7, a),
    "boxcox_llf, 0": lambda s, a: s.boxcox_llf(0, a),
    "entropy": lambda s, a: s.entropy(a),
    "entropy, base": lambda s, a: s.entropy(a, 1.0 + 0.0 * a, base=2),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_descriptive_statistics(name):
    f = SUMMARIES[name]
    want = f(theirs, SAMPLE)
    np.testing.assert_allclose(f(ours, SAMPLE), want, rtol=1e-15)
    out, _ = wg.vjp(lambda a: f(ours, a), SAMPLE)
    np.testing.assert_allclose(out, want, rtol=1e-12)
    wg.check_grads(lambda a: f(ours, a), (SAMPLE[:5, :2],), order=1, entries=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMMARIES)
def test_second_derivatives_of_descriptive_statistics(name):
    wg.check_grads(lambda a: SUMMARIES[name](ours, a), (SAMPLE[:5, :2],), order=2, entries=False)


def test_boxcox_with_respect_to_its_power():
    wg.check_grads(
        lambda m: ours.boxcox_llf(m, SAMPLE[:, 0]), (np.float64(0.7),), order=2, entries=False
    )


# ---- normal distributions of less than full rank -------------------------------------------------

LOW = np.array([[1.0, 0.5], [0.2, -1.0], [2.0, 0.3]])  # cov = LOW @ LOW.T has rank 2
INSIDE = RNG.normal(size=(4, 2)) @ LOW.T
BESIDE = np.cross(LOW[:, 0], LOW[:, 1])


def singular(x, mean, cov):
    return ours.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("cov", [LOW @ LOW.T, COV, np.diag([2.0, 0.0, 1.0])])
def test_values_with_a_singular_covariance(cov, compiled):
    low = cov[:, np.diag(cov) > 0]
    x = MEAN + RNG.normal(size=(4, low.shape[1])) @ low.T
    x = np.concatenate([x, x[:1] + (BESIDE if low.shape[1] == 3 else [0.0, 1.0, 0.0])])
    f = wg.jit(singular) if compiled else singular
    want = theirs.multivariate_normal.logpdf(x, MEAN, cov, allow_singular=True)
    np.testing.assert_allclose(f(x, MEAN, cov), want, rtol=1e-10)
    tensor = ours.multivariate_normal.pdf(wg.tensor(x), MEAN, cov, allow_singular=True)
    np.testing.assert_allclose(tensor.numpy(), np.exp(want), rtol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_with_respect_to_covariances_of_fixed_rank(compiled):
    """Against a density of full rank in coordinates of the plane."""

    def f(low, z):
        return np.sum(singular(z @ low.T, None, low @ low.T))

    def reference(low, z):
        _, log = np.linalg.slogdet(low.T @ low)
        return -0.5 * np.sum(z * z) - len(z) * (np.log(2 * np.pi) + 0.5 * log)

    z = INSIDE @ np.linalg.pinv(LOW).T
    run = wg.jit if compiled else lambda g: g
    for got, want in zip(
        run(wg.grad(f, argnums=(0, 1)))(LOW, z), wg.grad(reference, (0, 1))(LOW, z), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        run(wg.hessian(f))(LOW, z), wg.hessian(reference)(LOW, z), rtol=1e-7, atol=1e-7
    )


def test_a_covariance_with_a_negative_eigenvalue_is_an_error():
    with pytest.raises(ValueError, match="positive semidefinite"):
        singular(wg.tensor(X), None, np.diag([1.0, -1.0, 0.0]))
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        ours.multivariate_normal.logpdf(wg.tensor(X), None, LOW @ LOW.T)
