"""optim.laplace: against exact Gaussian marginals, dense matrices, differences, and TMB."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_normal

import wengert as wg
from wengert import optim
from wengert.errors import (
    ArgumentError,
    ConvergenceError,
    MatrixError,
    ShapeError,
    StructureError,
)
from wengert.scipy.sparse.linalg.factors import counts

TMB = json.loads((Path(__file__).parent / "tmb_examples.json").read_text())
LOG_2_PI = np.log(2 * np.pi)


def normal(x, mean, log_sd):
    """The negative log density of normal variables."""
    return np.sum(0.5 * ((x - mean) / np.exp(log_sd)) ** 2 + log_sd + 0.5 * LOG_2_PI)


def poisson_chain(n, seed=0):
    """Counts with an autoregressive intensity."""
    y = np.random.default_rng(seed).poisson(3.0, size=n).astype(float)

    def negative_log_joint(p):
        u, phi = p["u"], np.tanh(p["phi"])
        first = normal(u[0], 0.0, p["log_sd"] - 0.5 * np.log(1 - phi**2))
        prior = first + normal(u[1:], phi * u[:-1], p["log_sd"])
        eta = p["mu"] + u
        return prior + np.sum(np.exp(eta) - y * eta)

    return negative_log_joint, {"u": np.zeros(n), "log_sd": -0.5, "mu": 1.0, "phi": 0.4}


def dense(fun, params, name):
    """The approximation with dense matrices."""
    u = np.zeros_like(params[name])
    f = lambda u: fun({**params, name: u})  # noqa: E731
    for _ in range(60):
        u = u - np.linalg.solve(wg.hessian(f)(u), wg.grad(f)(u))
    curvature = np.linalg.slogdet(wg.hessian(f)(u))[1]
    return f(u) + 0.5 * curvature - 0.5 * u.size * LOG_2_PI


def difference(f, params, name, h=1e-5):
    """The derivative with respect to one parameter by central differences."""
    up, down = ({**params, name: params[name] + s * h} for s in (1, -1))
    return (f(up) - f(down)) / (2 * h)


# ---- values and gradients ----------------------------------------------------------------------


def test_gaussian_models_are_exact():
    rng = np.random.default_rng(1)
    design, y = rng.normal(size=(8, 3)), rng.normal(size=8)

    def fun(p):
        return normal(y, p["mean"] + design @ p["u"], p["a"]) + normal(p["u"], 0.0, p["b"])

    def exact(p):
        covariance = np.exp(2 * p["b"]) * design @ design.T + np.exp(2 * p["a"]) * np.eye(8)
        return -multivariate_normal(np.full(8, p["mean"]), covariance).logpdf(y)

    start = {"u": np.zeros(3), "mean": 0.3, "a": -0.2, "b": 0.4}
    marginal = optim.laplace(fun, random="u", params=start)
    at = marginal.params
    np.testing.assert_allclose(marginal(at), exact(at), rtol=1e-12)
    slopes = wg.grad(marginal)(at)
    for name, slope in slopes.items():
        np.testing.assert_allclose(slope, difference(exact, at, name), rtol=1e-6)


def test_counts_agree_with_dense_matrices():
    fun, start = poisson_chain(10)
    marginal = optim.laplace(fun, random="u", params=start)
    at = marginal.params
    want = lambda p: dense(fun, {**start, **p}, "u")  # noqa: E731
    np.testing.assert_allclose(marginal(at), want(at), rtol=1e-12)
    slopes = wg.grad(marginal)(at)
    for name, slope in slopes.items():
        np.testing.assert_allclose(slope, difference(want, at, name), rtol=1e-5, atol=1e-8)


def test_both_modes_compiled_and_second_order():
    fun, start = poisson_chain(8)
    marginal = optim.laplace(fun, random="u", params=start)
    at = marginal.params
    slopes = wg.grad(marginal)(at)
    _, forward = wg.jvp(marginal, (at,), (dict.fromkeys(at, 1.0),))
    np.testing.assert_allclose(forward, sum(slopes.values()), rtol=1e-10)
    np.testing.assert_allclose(wg.jit(marginal)(at), marginal(at), rtol=1e-12)
    for name, slope in wg.jit(wg.grad(marginal))(at).items():
        np.testing.assert_allclose(slope, slopes[name], rtol=1e-9)
    second = wg.hessian(lambda x: marginal({**at, "log_sd": x}))(at["log_sd"])
    change = difference(lambda p: wg.grad(marginal)(p)["log_sd"], at, "log_sd")
    np.testing.assert_allclose(second, change, rtol=1e-6)


def test_the_mode_and_its_derivative():
    fun, start = poisson_chain(6)
    marginal = optim.laplace(fun, random="u", params=start)
    at = marginal.params
    u = marginal.mode(at)["u"]
    assert np.max(np.abs(wg.grad(lambda u: fun({**at, "u": u}))(u))) < 1e-10
    slope = wg.jacobian(lambda mu: marginal.mode({**at, "mu": mu})["u"])(at["mu"])
    np.testing.assert_allclose(
        slope, difference(lambda p: marginal.mode(p)["u"], at, "mu"), rtol=1e-6
    )


def test_several_random_effects_of_any_shape():
    rng = np.random.default_rng(3)
    y = rng.poisson(2.0, size=(3, 4)).astype(float)

    def fun(p):
        eta = p["field"] + p["row"][:, None] + p["mu"]
        prior = normal(p["field"], 0.0, p["s"][0]) + normal(p["row"], 0.0, p["s"][1])
        return prior + np.sum(np.exp(eta) - y * eta)

    start = {"field": np.zeros((3, 4)), "s": np.array([-0.3, 0.1]), "row": np.zeros(3), "mu": 0.5}
    marginal = optim.laplace(fun, random=("field", "row"), params=start)
    assert marginal.mode(marginal.params)["field"].shape == (3, 4)

    def joined(p):
        parts = {"field": p["u"][:12].reshape(3, 4), "row": p["u"][12:]}
        return fun({**parts, "s": p["s"], "mu": p["mu"]})

    at = {"u": np.zeros(15), "s": start["s"], "mu": 0.5}
    np.testing.assert_allclose(marginal(marginal.params), dense(joined, at, "u"), rtol=1e-12)


def test_steps_that_are_too_long_are_shortened():
    """Newton's method diverges from this start without a line search."""

    def fun(p):
        return np.sum(np.log(np.cosh(p["u"] - p["a"]))) * 4.0 + normal(p["u"], 0.0, 2.0)

    marginal = optim.laplace(fun, random="u", params={"u": np.full(3, 9.0), "a": 0.5})
    assert np.allclose(marginal.mode({"a": 0.5})["u"], marginal.mode({"a": 0.5})["u"][0])
    np.testing.assert_allclose(
        wg.grad(marginal)({"a": 0.5})["a"], difference(marginal, {"a": 0.5}, "a"), rtol=1e-6
    )


def test_a_gradient_needs_no_further_factorization():
    fun, start = poisson_chain(50)
    marginal = optim.laplace(fun, random="u", params=start)
    at = marginal.params
    before = counts.factorized
    marginal(at)
    value = counts.factorized - before
    wg.grad(marginal)({**at, "mu": 1.1})
    assert counts.factorized - before <= 2 * value + 1


def test_another_start_needs_fewer_steps_and_gives_the_same():
    fun, start = poisson_chain(40)
    marginal = optim.laplace(fun, random="u", params=start)
    at = {**marginal.params, "mu": 1.2}
    want = marginal(at)
    near = marginal.starting_at(marginal.mode(marginal.params))
    before = counts.factorized
    np.testing.assert_allclose(near(at), want, rtol=1e-12)
    assert counts.factorized - before <= 5
    assert marginal.random["u"] is start["u"] and np.any(near.random["u"])
    with pytest.raises(StructureError, match="like the result of mode"):
        marginal.starting_at({"v": np.zeros(40)})
    with pytest.raises(ShapeError, match="must have"):
        marginal.starting_at({"u": np.zeros(39)})


def test_changed_data_are_seen():
    y = np.array([1.0, 2.0, 4.0])
    marginal = optim.laplace(
        lambda p: normal(y, p["u"], 0.0) + normal(p["u"], p["m"], 0.0),
        random="u",
        params={"u": np.zeros(3), "m": 0.0},
    )
    compiled = wg.jit(marginal)
    mode = wg.jit(lambda m: marginal.mode({"m": m})["u"])
    for _ in range(2):
        want = -multivariate_normal(np.full(3, 0.5), 2 * np.eye(3)).logpdf(y)
        np.testing.assert_allclose(marginal({"m": 0.5}), want)
        np.testing.assert_allclose(compiled({"m": 0.5}), want)
        np.testing.assert_allclose(mode(0.5), (y + 0.5) / 2)
        y += 1.0


# ---- TMB ---------------------------------------------------------------------------------------


def simple_model():
    """TMB's example `simple`: random effects of year and quarter, fixed ones of the period."""
    x = np.array(TMB["simple"]["x"])
    year = np.repeat(np.arange(111), 2)
    quarter = np.arange(222) % 4
    period = (year > np.mean(year)).astype(int)
    effects = np.eye(111)[year]
    design = np.concatenate([effects, np.eye(4)[quarter][:, 1:]], axis=1)
    fixed = np.eye(2)[period]

    def fun(p):
        mean = fixed @ p["beta"] + design @ p["u"]
        return normal(p["u"], 0.0, p["logsdu"]) + normal(x, mean, p["logsd0"])

    start = {"u": np.zeros(114), "beta": np.zeros(2), "logsdu": 1.0, "logsd0": 1.0}
    return (
        fun,
        start,
        "u",
        lambda v: {"beta": np.array(v[:2], float), "logsdu": v[2], "logsd0": v[3]},
    )


def regression_model():
    """TMB's example `randomregression`: a random slope and intercept for each group."""
    t, x = (np.array(TMB["randomregression"][k]) for k in ("t", "x"))
    group = np.repeat(np.arange(10), 10)

    def fun(p):
        prior = normal(p["a"], p["mu"][0], np.log(p["sigma"][0]))
        prior = prior + normal(p["b"], p["mu"][1], np.log(p["sigma"][1]))
        return prior + normal(x, p["a"][group] * t + p["b"][group], np.log(p["sigma0"]))

    start = {"a": np.ones(10), "b": np.ones(10), "mu": np.ones(2), "sigma": np.ones(2)}

    def named(v):
        return {"mu": np.array(v[:2], float), "sigma": np.array(v[2:4], float), "sigma0": v[4]}

    return fun, {**start, "sigma0": 1.0}, ("a", "b"), named


def lattice_model():
    """TMB's example `ar1xar1`: counts on a grid, autoregressive in both directions."""
    counts = np.array(TMB["ar1xar1"]["N"], float).reshape(50, 50)
    factorials = np.sum(gammaln(counts + 1.0))

    def innovations(x, phi):
        later = (x[1:] - phi * x[:-1]) / np.sqrt(1.0 - phi**2)
        return np.concatenate([x[:1], later])

    def fun(p):
        slow, fast = np.tanh(p["slow"]), np.tanh(p["fast"])
        z = innovations(innovations(p["eta"], slow).T, fast)
        scale = 50 * 49 * 0.5 * (np.log(1.0 - slow**2) + np.log(1.0 - fast**2))
        field = 0.5 * np.sum(z**2) + scale + 1250 * LOG_2_PI
        return field + np.sum(np.exp(p["eta"]) - counts * p["eta"]) + factorials

    start = {"eta": np.zeros((50, 50)), "fast": 0.5, "slow": 0.5}
    return fun, start, "eta", lambda v: {"fast": v[0], "slow": v[1]}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("simple", simple_model),
        ("randomregression", regression_model),
        ("ar1xar1", lattice_model),
    ],
)
def test_examples_of_tmb(name, model):
    want = TMB[name]
    fun, start, random, named = model()
    marginal = optim.laplace(fun, random=random, params=start)
    at = named(want["at"])
    np.testing.assert_allclose(marginal(at), want["value"], rtol=1e-9)
    slopes = wg.grad(marginal)(at)
    found = np.concatenate([np.ravel(slopes[k]) for k in marginal.params])
    np.testing.assert_allclose(found, want["gradient"], rtol=1e-6)
    best = named(want["minimum"])
    np.testing.assert_allclose(marginal(best), want["objective"], rtol=1e-9)


def test_estimates_and_standard_errors_of_tmb():
    want = TMB["simple"]
    fun, start, random, named = simple_model()
    marginal = optim.laplace(fun, random=random, params=start)
    found = optim.minimize(marginal, {**marginal.params, "beta": np.array([50.0, 30.0])})
    np.testing.assert_allclose(found.fun, want["objective"], rtol=1e-8)
    best = named(want["minimum"])
    np.testing.assert_allclose(marginal.mode(best)["u"], want["u"], atol=1e-5)
    errors = marginal.standard_errors(best)
    got = np.concatenate([np.ravel(errors.params[k]) for k in marginal.params])
    np.testing.assert_allclose(got, want["errors"], rtol=1e-4)
    np.testing.assert_allclose(errors.random["u"], np.sqrt(_variances(marginal, best, errors)))


def _variances(marginal, best, errors):
    """The variances of random effects from dense matrices."""
    fun, *_ = simple_model()
    f = lambda u, v: fun({"u": u, "beta": v[:2], "logsdu": v[2], "logsd0": v[3]})  # noqa: E731
    v, u = np.array(TMB["simple"]["minimum"]), marginal.mode(best)["u"]
    hessian = wg.hessian(lambda u: f(u, v))(u)
    mixed = wg.jacobian(lambda v: wg.grad(f)(u, v))(v)
    slope = -np.linalg.solve(hessian, mixed)
    return np.diagonal(np.linalg.inv(hessian)) + np.diagonal(slope @ errors.covariance @ slope.T)


# ---- errors ------------------------------------------------------------------------------------


def test_bad_arguments():
    fun, start = poisson_chain(4)
    with pytest.raises(ArgumentError, match="not names among the parameters"):
        optim.laplace(fun, random="v", params=start)
    with pytest.raises(ArgumentError, match="not names"):
        optim.laplace(fun, random=(), params=start)
    with pytest.raises(ArgumentError, match="not a function"):
        optim.laplace(3, random="u", params=start)
    marginal = optim.laplace(fun, random="u", params=start)
    with pytest.raises(StructureError, match="without the random effects"):
        marginal(start)
    with pytest.raises(StructureError, match="ndarray"):
        marginal(np.zeros(3))


def test_no_mode_is_an_error_and_nan_in_graphs():
    marginal = optim.laplace(
        lambda p: np.sum(np.exp(-p["u"])) * p["a"], random="u", params={"u": np.zeros(2), "a": 1.0}
    )
    with pytest.raises(ConvergenceError, match="was not found in 100 steps"):
        marginal({"a": 1.0})
    with pytest.raises(ConvergenceError, match="not finite"):
        marginal({"a": np.nan})
    assert np.isnan(wg.jit(lambda a: np.sum(marginal.mode({"a": a})["u"]))(1.0))


def test_a_point_that_is_not_a_minimum():
    marginal = optim.laplace(
        lambda p: np.sum(p["u"] ** 2 - p["a"] * p["u"]),
        random="u",
        params={"u": np.zeros(2), "a": 1.0},
    )
    with pytest.raises(ArgumentError, match="not at a minimum"):
        marginal.standard_errors({"a": 1.0})
    saddle = optim.laplace(
        lambda p: p["a"] * np.sum(p["u"][:1] ** 2 - p["u"][1:] ** 2),
        random="u",
        params={"u": np.zeros(2), "a": 1.0},
    )
    with pytest.raises(MatrixError, match="not positive definite"):
        saddle({"a": 1.0})
