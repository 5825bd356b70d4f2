"""Log-densities as C functions for nutpie and walnutpie, and their draws in ArviZ.

The second half needs the samplers; tests of walnutpie's own suite are restated for our pointers.
"""

import ctypes
import importlib.util
import sys

import numpy as np
import pytest

import wengert as wg
from wengert.bijectors import CorrelationCholesky, Positive, Real, Simplex
from wengert.compat.samplers import Posterior
from wengert.errors import ArgumentError, ShapeError
from wengert.scipy import stats

Y = np.array([2.1, 1.9, 2.6])


def log_density(p):
    return np.sum(stats.norm.logpdf(Y, p["mean"], p["scale"])) - p["scale"]


BIJECTORS = {"mean": Real(), "scale": Positive()}


def generated(p):
    return {"ratio": p["mean"] / p["scale"], "pair": np.stack([p["mean"], p["scale"]])}


def addresses(*arrays):
    return [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in arrays]


def test_the_density_with_its_gradient():
    posterior = Posterior(log_density, BIJECTORS, generated=generated)
    x, gradient, value = np.array([0.3, -0.2]), np.empty(2), np.empty(1)
    status = posterior.density.function(2, *addresses(x, gradient, value), None)

    def density(v):
        return log_density({"mean": v[0], "scale": np.exp(v[1])}) + v[1]

    assert status == 0 and np.isclose(value[0], density(x))
    assert np.isclose(posterior.log_density(x), density(x))
    assert np.allclose(gradient, wg.grad(density)(x))


def test_what_is_recorded():
    posterior = Posterior(log_density, BIJECTORS, generated=generated)
    assert posterior.shapes == {"mean": (), "scale": (), "pair": (2,), "ratio": ()}
    x, out = np.array([0.3, -0.2]), np.empty(5)
    assert posterior.expand.function(2, 5, *addresses(x, out), None) == 0
    scale = np.exp(-0.2)
    assert np.allclose(out, [0.3, scale, 0.3, scale, 0.3 / scale])
    draws = np.arange(12.0).reshape(2, 3, 2) / 10.0
    found = posterior.constrained(draws)
    assert {name: v.shape[2:] for name, v in found.items()} == posterior.shapes
    assert np.allclose(found["ratio"], draws[..., 0] / np.exp(draws[..., 1]))


def test_names_of_containers():
    posterior = Posterior(
        lambda p: -np.sum(p["w"][0] ** 2) - np.sum(p["c"]["L"] ** 2),
        {"w": [Simplex(3)], "c": {"L": CorrelationCholesky(2)}},
    )
    assert posterior.shapes == {"c.L": (2, 2), "w[0]": (3,)} and posterior.size == 3
    assert Posterior(lambda x: -(x**2), Real()).shapes == {"x": ()}


def test_initial_points_have_a_finite_density():
    start = {"mean": 40.0, "scale": 3.0}
    posterior = Posterior(log_density, BIJECTORS, start=start)
    point = posterior.initial_point(3)
    assert np.all(np.abs(point - [40.0, np.log(3.0)]) <= 1.0)
    assert np.array_equal(point, posterior.initial_point(3))
    half = Posterior(lambda p: -(np.sqrt(p["x"]) ** 2), {"x": Real()})
    with np.errstate(invalid="ignore"):
        assert half.initial_point(0)[0] > 0.0
        never = Posterior(lambda p: -np.sqrt(p["x"] - 5.0), {"x": Real()})
        with pytest.raises(ArgumentError, match=r"not finite at 100 points.*nan.*start="):
            never.initial_point(0)


def test_errors():
    with pytest.raises(ArgumentError, match="no parameters"):
        Posterior(lambda p: 0.0, {})
    with pytest.raises(ArgumentError, match="two values have the name 'mean'"):
        Posterior(log_density, BIJECTORS, generated=lambda p: {"mean": 1.0})
    with pytest.raises(ArgumentError, match=r"Positive\(\).*-1\.0"):
        Posterior(log_density, BIJECTORS, start={"mean": 0.0, "scale": -1.0})
    posterior = Posterior(log_density, BIJECTORS)
    with pytest.raises(ShapeError, match=r"\(2, 3, 4\).*\(chains, draws, 2\)"):
        posterior.constrained(np.zeros((2, 3, 4)))
    with pytest.raises(ArgumentError, match="dims has 'sd'"):
        posterior.nutpie(dims={"sd": ["a"]})
    with pytest.raises(ArgumentError, match=r"\['a'\] for 'mean', whose shape is \(\)"):
        posterior.inference_data(np.zeros((1, 1, 2)), dims={"mean": ["a"]})


def test_an_absent_sampler_is_named(monkeypatch):
    for name in ("nutpie", "nutpie.compile_pymc", "walnutpie", "arviz"):
        monkeypatch.setitem(sys.modules, name, None)
    posterior = Posterior(log_density, BIJECTORS)
    for use, name in (
        (posterior.nutpie, "nutpie"),
        (posterior.walnutpie, "walnutpie"),
        (lambda: posterior.inference_data(np.zeros((1, 1, 2))), "arviz"),
    ):
        with pytest.raises(ImportError, match=rf"{name} is not installed.*wengert\[samplers\]"):
            use()


# ---- nutpie ------------------------------------------------------------------------------------

needs_nutpie = pytest.mark.skipif(
    importlib.util.find_spec("nutpie") is None, reason="needs nutpie (the extra `samplers`)"
)
needs_walnutpie = pytest.mark.skipif(
    importlib.util.find_spec("walnutpie") is None, reason="needs walnutpie (the extra `samplers`)"
)


@needs_nutpie
def test_nutpie_samples_a_posterior_with_a_known_answer():
    import nutpie

    truth, sd = np.array([1.0, -2.0, 0.5]), np.array([0.5, 1.0, 2.0])

    def density(p):
        return np.sum(stats.norm.logpdf(p["x"], truth, sd)) - 2.0 * p["rate"]

    posterior = Posterior(
        density, {"x": Real(3), "rate": Positive()}, generated=lambda p: {"twice": 2.0 * p["x"]}
    )
    model = posterior.nutpie(coords={"part": ["a", "b", "c"]}, dims={"x": ["part"]})
    trace = nutpie.sample(model, draws=400, tune=300, chains=4, seed=1, progress_bar=False)
    found = trace.posterior
    assert found["x"].dims == ("chain", "draw", "part") and found["x"].shape == (4, 400, 3)
    assert list(found["part"].values) == ["a", "b", "c"] and found["rate"].shape == (4, 400)
    assert np.allclose(found["twice"].values, 2.0 * found["x"].values)
    assert np.all(np.abs(found["x"].mean(("chain", "draw")) - truth) < 0.15 * sd)
    assert np.allclose(found["x"].std(("chain", "draw")), sd, rtol=0.15)
    assert abs(float(found["rate"].mean()) - 0.5) < 0.08
    again = nutpie.sample(model, draws=400, tune=300, chains=4, seed=1, progress_bar=False)
    assert np.array_equal(again.posterior["x"].values, found["x"].values)


@needs_nutpie
def test_nutpie_rejects_points_at_which_the_density_is_not_finite():
    """They are divergences, not the end of the run."""
    import nutpie

    posterior = Posterior(lambda p: np.log(1.0 - p["x"] ** 2), {"x": Real()})
    with np.errstate(invalid="ignore"):
        trace = nutpie.sample(
            posterior.nutpie(), draws=300, tune=300, chains=2, seed=2, progress_bar=False
        )
    x = trace.posterior["x"].values
    assert np.all(np.abs(x) < 1.0) and abs(x.mean()) < 0.2
    assert np.any(trace.sample_stats["diverging"])


@needs_nutpie
def test_another_version_of_nutpie_is_refused(monkeypatch):
    import dataclasses

    import nutpie.compile_pymc

    @dataclasses.dataclass
    class Other:
        compiled_logp_func: object
        compiled_expand_func: object
        layout: object

    monkeypatch.setattr(nutpie.compile_pymc, "CompiledPyMCModel", Other)
    with pytest.raises(wg.errors.BackendError, match=r"other fields .*layout.*0\.16"):
        Posterior(log_density, BIJECTORS).nutpie()


# ---- walnutpie ---------------------------------------------------------------------------------


def fixed(draws, warmup=200, seed=5):
    """Numbers of draws that do not depend on convergence, so that runs can be repeated."""
    return dict(
        min_sampling_iter=draws, max_sampling_iter=draws, min_warmup_iter=warmup,
        max_warmup_iter=warmup, seed=seed,
    )  # fmt: skip


def normal(n):
    return Posterior(lambda x: np.sum(stats.norm.logpdf(x)), Real(n))


@needs_walnutpie
def test_walnutpie_samples_without_python():
    """As many calls of Python functions for 1,000 draws as for 100."""
    import walnutpie

    posterior = normal(4)
    calls = []
    for draws in (100, 1000):
        count = 0

        def counted(frame, event, argument):
            nonlocal count
            count += event == "call"

        before = sys.getprofile()
        sys.setprofile(counted)
        try:
            chains = walnutpie.walnuts_pyfunc(posterior.walnutpie(), num_params=4, **fixed(draws))
        finally:
            sys.setprofile(before)
        calls.append(count)
    assert calls[0] == calls[1]
    assert [c.shape for c in chains] == [(1000, 4)] * 4
    x = np.concatenate(chains)
    assert np.all(np.abs(x.mean(axis=0)) < 0.1) and np.allclose(x.std(axis=0), 1.0, rtol=0.1)


@needs_walnutpie
def test_walnutpie_keeps_the_code_alive():
    import walnutpie

    given = normal(2).walnutpie()  # the posterior is freed here
    chains = walnutpie.walnuts_pyfunc(given, num_params=2, **fixed(60))
    assert np.all(np.isfinite(np.concatenate(chains)))


@needs_walnutpie
@pytest.mark.parametrize(("least", "most"), [(10, 12), (77, 77), (10, 30)])
def test_walnutpie_makes_as_many_draws_as_asked(least, most):
    import walnutpie

    given = normal(2).walnutpie()
    warm = walnutpie.walnuts_pyfunc(
        given, num_params=2, min_warmup_iter=least, max_warmup_iter=most, save_warmup=True,
        min_sampling_iter=1, max_sampling_iter=1,
    )  # fmt: skip
    assert all(least <= len(c.warmup.warmup_draws) <= most for c in warm)
    drawn = walnutpie.walnuts_pyfunc(
        given, num_params=2, min_sampling_iter=least, max_sampling_iter=most,
        min_warmup_iter=100, max_warmup_iter=100,
    )  # fmt: skip
    assert all(least <= len(c) <= most for c in drawn)
    with pytest.raises(ValueError, match="min_iter must be"):
        walnutpie.walnuts_pyfunc(given, num_params=2, min_sampling_iter=100, max_sampling_iter=99)


@needs_walnutpie
def test_walnutpie_repeats_draws_with_the_same_seed():
    import walnutpie

    given = normal(4).walnutpie()
    one, same, other = (
        walnutpie.walnuts_pyfunc(given, num_params=4, save_warmup=True, **fixed(300, 400, seed))
        for seed in (1234, 1234, 452)
    )
    for a, b, c in zip(one, same, other, strict=True):
        assert np.array_equal(a, b) and a.warmup.stepsize == b.warmup.stepsize
        assert np.array_equal(a.warmup.warmup_draws, b.warmup.warmup_draws)
        assert not np.array_equal(a[:20], c[:20])


@needs_walnutpie
def test_draws_of_walnutpie_in_arviz():
    pytest.importorskip("arviz", reason="needs arviz (the extra `samplers`)")
    import walnutpie

    posterior = Posterior(log_density, BIJECTORS, generated=generated)
    given = posterior.walnutpie()
    draws = walnutpie.walnuts_pyfunc(given, num_params=2, num_chains=2, **fixed(50))
    data = posterior.inference_data(draws, coords={"k": [0, 1]}, dims={"pair": ["k"]})
    assert data.posterior["pair"].dims == ("chain", "draw", "k")
    assert np.allclose(data.posterior["scale"].values, np.exp(np.stack(draws)[..., 1]))
