"""gmm: the log posterior of a mixture of Gaussians with a Wishart prior on its precisions.

A precision is Q^T Q with a lower triangular Q, whose diagonal is exp(q) and whose columns below it
are filled with l.  With beta_ik = alpha_k + sum_j q_kj - |Q_k (x_i - mu_k)|**2 / 2 the posterior is

    sum_i logsumexp(beta_i) - N (logsumexp(alpha) + D log(2 pi) / 2)
    + K (nu D log(gamma / sqrt 2) - log Gamma_D(nu / 2))
    - gamma**2 / 2 sum_k |Q_k|**2 + m sum_kj q_kj,               nu = D + m + 1
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import multigammaln

import wengert as wg
from gradbench.task import Task, number
from wengert.scipy.special import logsumexp

PARAMETERS = ("alpha", "mu", "q", "l")


def log_posterior(d: int, k: int, n: int, m: int, gamma: float) -> Any:
    """Return the log posterior as a function of the parameters and the points."""
    columns, rows = np.triu_indices(d, 1)  # column by column
    nu = d + m + 1
    fixed = k * (nu * d * np.log(gamma / np.sqrt(2.0)) - multigammaln(0.5 * nu, d))
    fixed -= 0.5 * n * d * np.log(2.0 * np.pi)

    def f(alpha: Any, mu: Any, q: Any, below: Any, x: Any) -> Any:
        def component(parameters: Any) -> Any:
            alpha, mu, q, below = parameters
            factor = np.zeros((d, d), like=mu)
            factor[range(d), range(d)] = np.exp(q)
            factor[rows, columns] = below
            whitened = (x - mu) @ factor.T
            beta = alpha + np.sum(q) - 0.5 * np.sum(whitened**2, axis=1)
            return beta, m * np.sum(q) - 0.5 * gamma**2 * np.sum(factor**2)

        beta, prior = wg.map(component, (alpha, mu, q, below))
        return fixed + np.sum(logsumexp(beta, axis=0)) - n * logsumexp(alpha) + np.sum(prior)

    return f


def task(transform: Any, answer: Any) -> Any:
    """Make a task of the log posterior or of its gradient."""

    def make(given: dict[str, Any]) -> Task:
        f = log_posterior(*(given[name] for name in ("d", "k", "n", "m", "gamma")))
        arrays = (np.array(given[name]) for name in (*PARAMETERS, "x"))
        return Task(wg.jit(transform(f)), tuple(arrays), answer)

    return make


def gradient(f: Any) -> Any:
    """Return the gradient with respect to all parameters."""
    return wg.grad(f, argnums=(0, 1, 2, 3))


def lists(bars: Any) -> dict[str, Any]:
    """Return the gradient as JSON."""
    return {name: bar.tolist() for name, bar in zip(PARAMETERS, bars, strict=True)}


FUNCTIONS = {"objective": task(lambda f: f, number), "jacobian": task(gradient, lists)}
