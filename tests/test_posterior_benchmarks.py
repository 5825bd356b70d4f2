"""The models of benchmarks/posteriors.py: densities against SciPy's, on small data made here.

Log-densities are compared up to constants, as differences between two points.  The programs for
JAX are compared where it is installed; Stan's are compared by the benchmark itself.
"""

import importlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
RNG = np.random.default_rng(7)
SERIES = {"T": 12, "y": RNG.normal(size=12), "sigma1": 0.7}
DATA = {
    "eight schools": {"y": RNG.normal(size=8) * 10, "sigma": RNG.uniform(9, 18, 8)},
    "garch11": SERIES,
    "arma11": SERIES,
    "low_dim_gauss_mix": {"y": RNG.normal(size=9)},
    "radon, Minnesota": {
        "J": 3, "county_idx": np.array([1, 3, 3, 2, 1, 2]), "log_radon": RNG.normal(size=6),
        "floor_measure": np.array([0, 1, 0, 0, 1, 1]),
    },
    "irt_2pl": {"y": (RNG.uniform(size=(3, 5)) < 0.5).astype(int)},
}  # fmt: skip
norm, cauchy = stats.norm.logpdf, stats.cauchy.logpdf


def eight_schools(d, p):
    theta = p["mu"] + p["tau"] * p["theta_trans"]
    prior = norm(p["theta_trans"]).sum() + norm(p["mu"], 0, 5) + cauchy(p["tau"], 0, 5)
    return prior + norm(d["y"], theta, d["sigma"]).sum()


def garch(d, p):
    width = 1.0 - p["alpha1"]
    beta1 = width * special.expit(p["beta1_free"])
    variance, total = d["sigma1"] ** 2, np.log(beta1 * (1.0 - beta1 / width))
    for t, y in enumerate(d["y"]):
        if t:
            before = (d["y"][t - 1] - p["mu"]) ** 2
            variance = p["alpha0"] + p["alpha1"] * before + beta1 * variance
        total += norm(y, p["mu"], np.sqrt(variance))
    return total


def arma(d, p):
    error, total = 0.0, cauchy(p["sigma"], 0, 2.5) + norm(p["mu"], 0, 10)
    before = p["mu"]
    for y in d["y"]:
        error = y - (p["mu"] + p["phi"] * before + p["theta"] * error)
        total += norm(error, 0, p["sigma"])
        before = y
    return total + norm(p["phi"], 0, 2) + norm(p["theta"], 0, 2)


def mixture(d, p):
    parts = [norm(d["y"], p["mu"][k], p["sigma"][k]) for k in (0, 1)]
    likelihood = np.logaddexp(np.log(p["theta"]) + parts[0], np.log1p(-p["theta"]) + parts[1])
    prior = norm(p["mu"], 0, 2).sum() + norm(p["sigma"], 0, 2).sum()
    return likelihood.sum() + prior + stats.beta.logpdf(p["theta"], 5, 5)


def radon(d, p):
    alpha = p["mu_alpha"] + p["sigma_alpha"] * p["alpha_raw"]
    beta = p["mu_beta"] + p["sigma_beta"] * p["beta_raw"]
    total = sum(norm(p[n]) for n in ("sigma_y", "sigma_alpha", "sigma_beta"))
    total += norm(p["alpha_raw"]).sum() + norm(p["beta_raw"]).sum()
    for k, county in enumerate(d["county_idx"] - 1):
        mean = alpha[county] + d["floor_measure"][k] * beta[county]
        total += norm(d["log_radon"][k], mean, p["sigma_y"])
    return total + norm(p["mu_alpha"], 0, 10) + norm(p["mu_beta"], 0, 10)


def irt(d, p):
    total = sum(cauchy(p[n], 0, 2) for n in ("sigma_theta", "sigma_a", "sigma_b"))
    total += norm(p["theta"], 0, p["sigma_theta"]).sum() + norm(p["mu_b"], 0, 5)
    total += stats.lognorm.logpdf(p["a"], p["sigma_a"]).sum()
    total += norm(p["b"], p["mu_b"], p["sigma_b"]).sum()
    chance = special.expit(p["a"][:, None] * (p["theta"] - p["b"][:, None]))
    return total + stats.bernoulli.logpmf(d["y"], chance).sum()


ORACLES = {
    "eight schools": eight_schools,
    "garch11": garch,
    "arma11": arma,
    "low_dim_gauss_mix": mixture,
    "radon, Minnesota": radon,
    "irt_2pl": irt,
}


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ORACLES)
def test_densities_are_those_of_scipy(name):
    model = importlib.import_module("posterior_cases.models").MODELS[name]
    data = DATA[name]
    posterior = model.compiled(data)
    assert sorted(model.order(data)) == list(range(posterior.size))
    found, expected, joint = [], [], posterior.joint
    for _ in range(2):
        u = RNG.normal(size=posterior.size, scale=0.4)
        values, log_det = joint.forward_and_log_det(joint.unravel(u))
        found.append(posterior.log_density(u))
        expected.append(ORACLES[name](data, values) + log_det)
    assert np.isclose(found[1] - found[0], expected[1] - expected[0], rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
def test_contestants_agree(name):
    gradients = importlib.import_module("posterior_cases.gradients")
    measure = importlib.import_module("native.measure")
    model = importlib.import_module("posterior_cases.models").MODELS[name]
    found = {}
    for who, make in gradients.contestants(name, model, DATA[name]).items():
        if who == "stanli" or (who == "JAX" and importlib.util.find_spec("jax") is None):
            continue
        call = make()
        found[who] = measure.arrays(call.numbers(call.function(*call.arguments)))
    assert {"wengert", "wengert, jit"} <= set(found)
    for numbers in found.values():
        assert measure.deviation(numbers, found["wengert"]) < 1e-9


def test_the_database_is_read(tmp_path, monkeypatch):
    database = importlib.import_module("posterior_cases.database")
    root = tmp_path / "posterior_database"
    means = root / "reference_posteriors" / "summary_statistics" / "mean_value" / "mean_value"
    for folder in (root / "posteriors", root / "data" / "data", means):
        folder.mkdir(parents=True)
    entry = {"data_name": "d", "model_name": "m", "reference_posterior_name": "d-m"}
    (root / "posteriors" / "d-m.json").write_text(json.dumps(entry))
    with zipfile.ZipFile(root / "data" / "data" / "d.json.zip", "w") as archive:
        archive.writestr("d.json", json.dumps({"N": 2, "y": [1.5, 2.5]}))
    monkeypatch.setenv("POSTERIORDB", str(tmp_path))
    assert database.data("d-m")["y"].tolist() == [1.5, 2.5]
    assert database.program("d-m").name == "m.stan" and database.reference("d-m") is None
    known = {"names": ["mu"], "mean_value": [1.0], "mcse_mean": [0.1]}
    (means / "d-m.json").write_text(json.dumps(known))
    assert database.reference("d-m") == ({"mu": 1.0}, {"mu": 0.1})
