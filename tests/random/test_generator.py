"""wengert.numpy.random: NumPy's methods over a stream, with NumPy's distributions."""

import numpy as np
import pytest
from scipy import stats

import wengert as wg
from wengert.errors import ArgumentError

N = 3000
LAWS = {
    "random": ((), stats.uniform()),
    "uniform": ((-1.0, 3.0), stats.uniform(-1, 4)),
    "standard_normal": ((), stats.norm()),
    "normal": ((1.0, 2.0), stats.norm(1, 2)),
    "lognormal": ((0.5, 0.7), stats.lognorm(0.7, scale=np.exp(0.5))),
    "standard_exponential": ((), stats.expon()),
    "exponential": ((2.0,), stats.expon(scale=2)),
    "gumbel": ((1.0, 2.0), stats.gumbel_r(1, 2)),
    "laplace": ((1.0, 2.0), stats.laplace(1, 2)),
    "logistic": ((1.0, 2.0), stats.logistic(1, 2)),
    "standard_cauchy": ((), stats.cauchy()),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "weibull": ((1.5,), stats.weibull_min(1.5)),
    "pareto": ((2.5,), stats.lomax(2.5)),
    "power": ((2.5,), stats.powerlaw(2.5)),
    "triangular": ((-1.0, 0.0, 3.0), stats.triang(0.25, -1, 4)),
    "standard_gamma": ((2.5,), stats.gamma(2.5)),
    "gamma": ((2.5, 3.0), stats.gamma(2.5, scale=3)),
    "beta": ((2.0, 3.0), stats.beta(2, 3)),
    "chisquare": ((3.0,), stats.chi2(3)),
    "f": ((3.0, 7.0), stats.f(3, 7)),
    "standard_t": ((3.0,), stats.t(3)),
}


@pytest.mark.parametrize("name", LAWS)
def test_methods_have_the_distributions_of_numpy(name):
    args, law = LAWS[name]
    x = getattr(wg.numpy.random.default_rng(11), name)(*args, size=N)
    assert type(x) is np.ndarray
    assert stats.kstest(x, law.cdf).pvalue > 1e-3
    theirs = getattr(np.random.default_rng(11), name)(*args, size=N)
    assert stats.ks_2samp(x, theirs).pvalue > 1e-3


def test_counts_and_choices():
    rng, theirs = wg.numpy.random.default_rng(2), np.random.default_rng(2)
    for name, args in {
        "poisson": (3.0,),
        "binomial": (10, 0.3),
        "negative_binomial": (3, 0.4),
        "geometric": (0.3,),
        "integers": (-2, 5),
        "vonmises": (1.0, 2.0),
    }.items():
        x, y = getattr(rng, name)(*args, size=N), getattr(theirs, name)(*args, size=N)
        assert abs(x.mean() - y.mean()) < 6 * np.hypot(x.std(), y.std()) / np.sqrt(N)
        assert x.min() >= y.min() - 5
    assert set(np.unique(rng.integers(3, size=200))) == {0, 1, 2}
    assert set(np.unique(rng.integers(1, 3, size=200, endpoint=True))) == {1, 2, 3}
    assert np.array_equal(np.sort(rng.permutation(6)), np.arange(6))
    table = np.arange(12.0).reshape(4, 3)
    assert np.array_equal(np.sort(rng.permuted(table, axis=0), axis=0), table)
    assert np.array_equal(np.sort(rng.permuted(table), axis=None), table.ravel())
    shuffled = table.copy()
    rng.shuffle(shuffled)
    assert np.array_equal(np.sort(shuffled[:, 0]), table[:, 0])
    assert rng.multinomial(5, np.array([0.5, 0.5]), 3).sum() == 15
    assert rng.dirichlet(np.ones(3), 4).shape == (4, 3)
    assert rng.multivariate_normal(np.zeros(2), np.eye(2), 5).shape == (5, 2)
    assert rng.choice(np.array([7, 8]), 3).shape == (3,)


def test_draws_are_new_and_reproducible_from_the_seed():
    first, again = (wg.numpy.random.default_rng(5) for _ in range(2))
    draws = [first.normal(size=3) for _ in range(4)]
    assert len({x.tobytes() for x in draws}) == 4
    assert all(np.array_equal(x, again.normal(size=3)) for x in draws)
    children = [child.normal(size=3) for child in first.spawn(2)]
    assert not np.array_equal(*children)
    assert wg.numpy.random.default_rng(first) is first
    assert wg.numpy.random.default_rng().normal() != wg.numpy.random.default_rng().normal()


def test_compiled_functions_draw_the_same_numbers_as_eager():
    eager, compiled = (wg.numpy.random.default_rng(5) for _ in range(2))
    f = wg.jit(lambda a: (compiled.gamma(a, size=(2,)), compiled.normal(size=2)))
    for _ in range(3):
        for x, y in zip(f(2.0), (eager.gamma(2.0, size=(2,)), eager.normal(size=2)), strict=True):
            np.testing.assert_allclose(np.asarray(x), y, rtol=1e-14)
    assert np.array_equal(np.asarray(compiled.random(3)), eager.random(3))


def test_derivatives_with_respect_to_parameters():
    def f(loc, scale, a):
        rng = wg.numpy.random.default_rng(3)
        return rng.normal(loc, scale, size=3) + rng.gamma(a, scale, size=3)

    wg.check_grads(f, (np.float64(0.3), np.float64(1.7), np.float64(2.2)), order=2)


def test_other_methods():
    assert wg.numpy.random.Philox is np.random.Philox
    assert "default_rng" in dir(wg.numpy.random)
    with pytest.raises(ArgumentError, match="not a Stream"):
        wg.numpy.random.Generator(np.random.PCG64(0))
    with pytest.raises(ArgumentError, match="cannot be shuffled"):
        wg.numpy.random.default_rng(0).shuffle([1, 2])
