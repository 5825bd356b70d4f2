"""What nutpie's own tests of compiled models check, on our C functions.

After tests/test_pymc.py of nutpie: shapes of size 0, names, coordinates, storage, mass matrices of
low rank, and samplers that run in the background.  Those of PyMC itself (shared variables, missing
values, backends) have no counterpart.
"""

import numpy as np
import pytest

from wengert.bijectors import Positive, Real
from wengert.compat.samplers import Posterior
from wengert.scipy import stats

nutpie = pytest.importorskip("nutpie", reason="needs nutpie (the extra `samplers`)")


def normal(shape=()):
    """Standard normal numbers."""
    return Posterior(lambda p: -0.5 * np.sum(p["a"] ** 2), {"a": Real(shape)})


def sampled(posterior, *, coords=None, dims=None, **options):
    options = dict(chains=1, draws=40, tune=100, seed=123, progress_bar=False) | options
    return nutpie.sample(posterior.nutpie(coords=coords, dims=dims), **options)


def test_mass_matrices_of_low_rank():
    shapes = {"a": (7, 3), "b": (), "c": (5,)}
    posterior = Posterior(
        lambda p: sum(np.sum(stats.halfnorm.logpdf(x)) for x in p.values()),
        {name: Positive(shape) for name, shape in shapes.items()},
    )
    trace = sampled(posterior, draws=200, tune=300, low_rank_modified_mass_matrix=True)
    assert {n: trace.posterior[n].shape[2:] for n in shapes} == shapes
    assert abs(float(trace.posterior["a"].mean()) - np.sqrt(2 / np.pi)) < 0.1


def test_values_without_elements():
    posterior = Posterior(
        lambda p: -0.5 * p["x"] ** 2 - np.sum(p["a"]),
        {"a": Real((0, 0, 10)), "x": Real()},
        generated=lambda p: {"b": np.exp(p["a"])},
    )
    trace = sampled(posterior, draws=17)
    assert trace.posterior["a"].shape == trace.posterior["b"].shape == (1, 17, 0, 0, 10)


def test_names_that_are_not_identifiers():
    posterior = Posterior(
        lambda p: -0.5 * np.sum(p["a::b"] ** 2),
        {"a::b": Real(2)},
        generated=lambda p: {"foo": {"b": np.array([2.0, 3.0]) * p["a::b"]}},
    )
    trace = sampled(posterior)
    assert trace.posterior["a::b"].shape[-1] == trace.posterior["foo.b"].shape[-1] == 2


def test_axes_in_another_order():
    coords = {"a": range(3), "b": range(5)}
    trace = sampled(
        Posterior(
            lambda p: -0.5 * np.sum(p["x"] ** 2),
            {"x": Real((3, 5))},
            generated=lambda p: {"y": p["x"].T + 1.0},
        ),
        coords=coords,
        dims={"x": ["a", "b"], "y": ["b", "a"]},
    ).posterior
    assert trace["y"].dims == ("chain", "draw", "b", "a")
    assert np.allclose(trace["y"] - 1.0, trace["x"].transpose("chain", "draw", "b", "a"))


def test_the_same_seed_gives_the_same_draws():
    posterior = Posterior(lambda p: stats.halfnorm.logpdf(p["a"]), {"a": Positive()})
    runs = [
        sampled(posterior, chains=2, draws=100, seed=s).posterior["a"].values for s in (1, 1, 2)
    ]
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])


def test_storage_in_zarr(tmp_path):
    coords = {"a": np.arange(2.0), "c": ["x", "y", "z", ""], "d": [0]}
    store = nutpie.zarr_store.LocalStore(str(tmp_path))
    posterior = Posterior(lambda p: -0.5 * np.sum(p["v"] ** 2), {"v": Real((2, 4, 1))})
    dims = {"v": ["a", "c", "d"]}
    trace = sampled(posterior, coords=coords, dims=dims, zarr_store=store, chains=2)
    posterior = trace.load().posterior
    assert posterior["v"].dims == ("chain", "draw", "a", "c", "d")
    assert list(posterior.coords["c"]) == ["x", "y", "z", ""]


def test_a_sampler_in_the_background():
    trace = sampled(normal(), blocking=False).wait()
    assert trace.posterior["a"].shape == (1, 40)


@pytest.mark.timeout(30)
@pytest.mark.filterwarnings("ignore:More chains")  # ArviZ, of the few draws until then
def test_a_sampler_that_is_paused_and_ended():
    posterior = normal(10_000)
    for end in ("cancel", "abort"):
        sampler = sampled(posterior, draws=100_000, blocking=False)
        sampler.pause()
        sampler.resume()
        getattr(sampler, end)()
    sampler = sampled(posterior, draws=100_000, blocking=False)
    with pytest.raises(TimeoutError):
        sampler.wait(timeout=0.1)
    sampler.cancel()
