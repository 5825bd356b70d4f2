"""Six models of posteriordb: parameters with their constraints, and the log-density in NumPy.

Model            one model; MODELS has all of them, by name
eight_schools    effects of eight schools, with scaled deviations
garch            a GARCH(1, 1) series of 200 values
arma             an ARMA(1, 1) series of 200 values
mixture          two normal distributions, 1,000 values
radon            radon in houses: an intercept and a slope for each county
irt              100 persons and 20 questions: a two-parameter logistic model

Each function takes the data and returns the log-density of constrained parameters, whose names are
those of the Stan programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import wengert.bijectors as bj
from wengert.compat.samplers import Posterior
from wengert.scipy import special, stats

Data = Mapping[str, Any]
Density = Callable[[Mapping[str, Any]], Any]
Bijectors = dict[str, bj.Bijector]


@dataclass(frozen=True)
class Model:
    """One model.

    posterior : its name in the database.
    parameters : from the data to a bijector for each parameter, in the order of the Stan program.
    density : from the data to the log-density of constrained values.
    generated : from the data to a function of constrained values that gives what the Stan program
        reports and is not a parameter here.
    """

    posterior: str
    parameters: Callable[[Data], Bijectors]
    density: Callable[[Data], Density]
    generated: Callable[[Data], Density] | None = None

    def compiled(self, data: Data) -> Posterior:
        """The C functions of the model."""
        generated = self.generated(data) if self.generated else None
        return Posterior(self.density(data), self.parameters(data), generated=generated)

    def order(self, data: Data) -> Any:
        """Where the unconstrained numbers of Stan's order stand in ours, of sorted names."""
        sizes = {name: b.size for name, b in self.parameters(data).items()}
        first, places = 0, {}
        for name in sorted(sizes):
            places[name] = np.arange(first, first + sizes[name])
            first += sizes[name]
        return np.concatenate([places[name] for name in sizes])


# ---- eight schools -------------------------------------------------------------------------------


def eight_schools(data: Data) -> Density:
    """Effects that are normally distributed."""
    y, sigma = np.asarray(data["y"], float), np.asarray(data["sigma"], float)

    def density(p: Mapping[str, Any]) -> Any:
        return (
            np.sum(stats.norm.logpdf(p["theta_trans"]))
            + np.sum(stats.norm.logpdf(y, p["mu"] + p["tau"] * p["theta_trans"], sigma))
            + stats.norm.logpdf(p["mu"], 0.0, 5.0)
            + stats.cauchy.logpdf(p["tau"], 0.0, 5.0)
        )

    return density


# ---- series --------------------------------------------------------------------------------------


def conditional(p: Mapping[str, Any]) -> tuple[Any, Any]:
    """The last coefficient of GARCH, which is below 1 - alpha1, and its log-Jacobian."""
    below = bj.Interval(0.0, 1.0 - p["alpha1"])
    found: tuple[Any, Any] = below.forward_and_log_det(p["beta1_free"])
    return found


def garch(data: Data) -> Density:
    """Values whose variance depends on the value and the variance before."""
    y, first = np.asarray(data["y"], float), float(data["sigma1"])

    def density(p: Mapping[str, Any]) -> Any:
        beta1, log_det = conditional(p)
        deviations = y - p["mu"]
        shocks = p["alpha0"] + p["alpha1"] * deviations**2
        variance = np.empty(len(y))
        variance[0] = first**2
        for t in range(1, len(y)):
            variance[t] = shocks[t - 1] + beta1 * variance[t - 1]
        return log_det - 0.5 * np.sum(np.log(variance) + deviations**2 / variance)

    return density


def arma(data: Data) -> Density:
    """Values with an autoregressive part and a moving average of errors."""
    y = np.asarray(data["y"], float)

    def density(p: Mapping[str, Any]) -> Any:
        mu, phi, theta = p["mu"], p["phi"], p["theta"]
        without = y[1:] - mu - phi * y[:-1]
        error = y[0] - mu - phi * mu
        total = error**2
        for t in range(len(y) - 1):
            error = without[t] - theta * error
            total = total + error**2
        return (
            stats.norm.logpdf(mu, 0.0, 10.0)
            + stats.norm.logpdf(phi, 0.0, 2.0)
            + stats.norm.logpdf(theta, 0.0, 2.0)
            + stats.cauchy.logpdf(p["sigma"], 0.0, 2.5)
            - 0.5 * total / p["sigma"] ** 2
            - len(y) * np.log(p["sigma"])
        )

    return density


# ---- a mixture, counties, questions --------------------------------------------------------------


def mixture(data: Data) -> Density:
    """Two normal distributions with ordered means."""
    y = np.asarray(data["y"], float)

    def density(p: Mapping[str, Any]) -> Any:
        mu, sigma, theta = p["mu"], p["sigma"], p["theta"]
        parts = (
            np.log(theta) + stats.norm.logpdf(y, mu[0], sigma[0]),
            np.log1p(-theta) + stats.norm.logpdf(y, mu[1], sigma[1]),
        )
        return (
            np.sum(np.logaddexp(*parts))
            + np.sum(stats.norm.logpdf(mu, 0.0, 2.0))
            + np.sum(stats.norm.logpdf(sigma, 0.0, 2.0))
            + stats.beta.logpdf(theta, 5.0, 5.0)
        )

    return density


def radon(data: Data) -> Density:
    """A line for each county; its coefficients are scaled deviations."""
    county = np.asarray(data["county_idx"]) - 1
    floor, y = np.asarray(data["floor_measure"], float), np.asarray(data["log_radon"], float)

    def density(p: Mapping[str, Any]) -> Any:
        alpha = p["mu_alpha"] + p["sigma_alpha"] * p["alpha_raw"]
        beta = p["mu_beta"] + p["sigma_beta"] * p["beta_raw"]
        scales = p["sigma_y"], p["sigma_alpha"], p["sigma_beta"]
        return (
            np.sum(stats.norm.logpdf(y, alpha[county] + floor * beta[county], p["sigma_y"]))
            + np.sum(stats.norm.logpdf(p["alpha_raw"]))
            + np.sum(stats.norm.logpdf(p["beta_raw"]))
            + stats.norm.logpdf(p["mu_alpha"], 0.0, 10.0)
            + stats.norm.logpdf(p["mu_beta"], 0.0, 10.0)
            + np.sum(stats.norm.logpdf(np.stack(scales)))
        )

    return density


def irt(data: Data) -> Density:
    """Right and wrong answers: abilities of persons, difficulty and discrimination of questions."""
    signs = 2.0 * np.asarray(data["y"], float) - 1.0

    def density(p: Mapping[str, Any]) -> Any:
        logits = p["a"][:, None] * (p["theta"] - p["b"][:, None])
        scales = np.stack((p["sigma_theta"], p["sigma_a"], p["sigma_b"]))
        return (
            np.sum(special.log_expit(signs * logits))
            + np.sum(stats.norm.logpdf(p["theta"], 0.0, p["sigma_theta"]))
            + np.sum(stats.lognorm.logpdf(p["a"], p["sigma_a"]))
            + np.sum(stats.norm.logpdf(p["b"], p["mu_b"], p["sigma_b"]))
            + stats.norm.logpdf(p["mu_b"], 0.0, 5.0)
            + np.sum(stats.cauchy.logpdf(scales, 0.0, 2.0))
        )

    return density


def effects(data: Data) -> Density:
    """The effects of schools."""
    return lambda p: {"theta": p["mu"] + p["tau"] * p["theta_trans"]}


def counties(data: Data) -> dict[str, bj.Bijector]:
    """The parameters of `radon`."""
    size = int(data["J"])
    scales: Bijectors = {name: bj.Positive() for name in ("sigma_y", "sigma_alpha", "sigma_beta")}
    deviations = {"alpha_raw": bj.Real(size), "beta_raw": bj.Real(size)}
    return scales | deviations | {"mu_alpha": bj.Real(), "mu_beta": bj.Real()}


MODELS = {
    "eight schools": Model(
        "eight_schools-eight_schools_noncentered",
        lambda d: {"theta_trans": bj.Real(len(d["y"])), "mu": bj.Real(), "tau": bj.Positive()},
        eight_schools,
        effects,
    ),
    "garch11": Model(
        "garch-garch11",
        lambda d: {
            "mu": bj.Real(),
            "alpha0": bj.Positive(),
            "alpha1": bj.Interval(0.0, 1.0),
            "beta1_free": bj.Real(),
        },
        garch,
        lambda d: lambda p: {"beta1": conditional(p)[0]},
    ),
    "arma11": Model(
        "arma-arma11",
        lambda d: {
            "mu": bj.Real(),
            "phi": bj.Real(),
            "theta": bj.Real(),
            "sigma": bj.Positive(),
        },
        arma,
    ),
    "low_dim_gauss_mix": Model(
        "low_dim_gauss_mix-low_dim_gauss_mix",
        lambda d: {
            "mu": bj.Ordered(2),
            "sigma": bj.Positive(2),
            "theta": bj.Interval(0.0, 1.0),
        },
        mixture,
    ),
    "radon, Minnesota": Model(
        "radon_mn-radon_variable_intercept_slope_noncentered", counties, radon
    ),
    "radon, all states": Model(
        "radon_all-radon_variable_intercept_slope_noncentered", counties, radon
    ),
    "irt_2pl": Model(
        "irt_2pl-irt_2pl",
        lambda d: {
            "sigma_theta": bj.Positive(),
            "theta": bj.Real(np.shape(d["y"])[1]),
            "sigma_a": bj.Positive(),
            "a": bj.Positive(np.shape(d["y"])[0]),
            "mu_b": bj.Real(),
            "sigma_b": bj.Positive(),
            "b": bj.Real(np.shape(d["y"])[0]),
        },
        irt,
    ),
}
