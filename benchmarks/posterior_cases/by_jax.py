"""The log-densities of models.py by hand for JAX, of the same unconstrained vectors.

log_densities    from the data to the log-density of a vector, for each model

Parameters are in the order of sorted names; loops are scans, as many steps at once as was fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Data = Mapping[str, Any]
UNROLL = 8  # steps of a scan that are compiled together; 1, 4, 8 and 16 were tried


def log_densities(j: Any) -> dict[str, Callable[[Data], Callable[[Any], Any]]]:
    """All of them, with the module `jax`."""
    n, norm = j.numpy, j.scipy.stats.norm.logpdf
    cauchy, expit = j.scipy.stats.cauchy.logpdf, j.nn.log_sigmoid

    def eight_schools(data: Data) -> Callable[[Any], Any]:
        y, sigma = n.asarray(data["y"], float), n.asarray(data["sigma"], float)

        def density(u: Any) -> Any:
            mu, log_tau, z = u[0], u[1], u[2:]
            tau = n.exp(log_tau)
            prior = norm(z).sum() + norm(mu, 0.0, 5.0) + cauchy(tau, 0.0, 5.0) + log_tau
            return prior + norm(y, mu + tau * z, sigma).sum()

        return density

    def garch(data: Data) -> Callable[[Any], Any]:
        y, first = n.asarray(data["y"], float), float(data["sigma1"]) ** 2

        def density(u: Any) -> Any:
            alpha0, alpha1 = n.exp(u[0]), j.nn.sigmoid(u[1])
            beta1, mu = (1.0 - alpha1) * j.nn.sigmoid(u[2]), u[3]
            squares = (y - mu) ** 2

            def step(variance: Any, shock: Any) -> Any:
                variance = shock + beta1 * variance
                return variance, variance

            shocks = alpha0 + alpha1 * squares[:-1]
            _, variances = j.lax.scan(step, n.asarray(first), shocks, unroll=UNROLL)
            variances = n.concatenate([n.full(1, first), variances])
            log_det = u[0] + expit(u[1]) + expit(-u[1])
            log_det += n.log(1.0 - alpha1) + expit(u[2]) + expit(-u[2])
            return log_det - 0.5 * (n.log(variances) + squares / variances).sum()

        return density

    def arma(data: Data) -> Callable[[Any], Any]:
        y = n.asarray(data["y"], float)

        def density(u: Any) -> Any:
            mu, phi, log_sigma, theta = u
            sigma = n.exp(log_sigma)

            def step(error: Any, without: Any) -> Any:
                error = without - theta * error
                return error, error

            first = y[0] - mu - phi * mu
            _, errors = j.lax.scan(step, first, y[1:] - mu - phi * y[:-1], unroll=UNROLL)
            prior = norm(mu, 0.0, 10.0) + norm(phi, 0.0, 2.0) + norm(theta, 0.0, 2.0)
            prior += cauchy(sigma, 0.0, 2.5) + log_sigma
            return prior + norm(errors, 0.0, sigma).sum() + norm(first, 0.0, sigma)

        return density

    def mixture(data: Data) -> Callable[[Any], Any]:
        y = n.asarray(data["y"], float)

        def density(u: Any) -> Any:
            mu = n.stack([u[0], u[0] + n.exp(u[1])])
            sigma, theta = n.exp(u[2:4]), u[4]
            log_det = u[1] + u[2] + u[3] + expit(theta) + expit(-theta)
            low, high = expit(theta), expit(-theta)
            parts = low + norm(y, mu[0], sigma[0]), high + norm(y, mu[1], sigma[1])
            prior = norm(mu, 0.0, 2.0).sum() + norm(sigma, 0.0, 2.0).sum() + 4.0 * (low + high)
            return log_det + prior + n.logaddexp(*parts).sum()

        return density

    def radon(data: Data) -> Callable[[Any], Any]:
        county = n.asarray(data["county_idx"]) - 1
        floor, y = n.asarray(data["floor_measure"], float), n.asarray(data["log_radon"], float)
        size = int(data["J"])

        def density(u: Any) -> Any:
            alpha_raw, beta_raw = u[:size], u[size : 2 * size]
            mu_alpha, mu_beta = u[2 * size], u[2 * size + 1]
            scales = n.exp(u[2 * size + 2 :])  # of alpha, beta, y
            alpha, beta = mu_alpha + scales[0] * alpha_raw, mu_beta + scales[1] * beta_raw
            prior = norm(u[: 2 * size]).sum() + norm(mu_alpha, 0.0, 10.0) + norm(mu_beta, 0.0, 10.0)
            prior += norm(scales).sum() + u[2 * size + 2 :].sum()
            return prior + norm(y, alpha[county] + floor * beta[county], scales[2]).sum()

        return density

    def irt(data: Data) -> Callable[[Any], Any]:
        signs = n.asarray(2.0 * np.asarray(data["y"], float) - 1.0)
        questions = signs.shape[0]

        def density(u: Any) -> Any:
            log_a, b, mu_b = u[:questions], u[questions : 2 * questions], u[2 * questions]
            logs = u[2 * questions + 1 : 2 * questions + 4]  # of sigma_a, sigma_b, sigma_theta
            theta = u[2 * questions + 4 :]
            scales = n.exp(logs)
            a = n.exp(log_a)
            prior = norm(log_a, 0.0, scales[0]).sum() + norm(b, mu_b, scales[1]).sum()
            prior += norm(theta, 0.0, scales[2]).sum() + norm(mu_b, 0.0, 5.0)
            prior += cauchy(scales, 0.0, 2.0).sum() + logs.sum()
            return prior + expit(signs * a[:, None] * (theta - b[:, None])).sum()

        return density

    return {
        "eight schools": eight_schools,
        "garch11": garch,
        "arma11": arma,
        "low_dim_gauss_mix": mixture,
        "radon, Minnesota": radon,
        "radon, all states": radon,
        "irt_2pl": irt,
    }
