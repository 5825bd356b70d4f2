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

PARAMETERS = ("alpha", "mu", "q", "l")


def logsumexp(x: Any, axis: int) -> Any:
    """Return log(sum(exp(x))) along an axis, without overflow."""
    largest = np.max(x, axis=axis, keepdims=True)
    total = np.sum(np.exp(x - largest), axis=axis)
    return np.squeeze(largest, axis) + np.log(total)


def log_posterior(d: int, k: int, n: int, m: int, gamma: float) -> Any:
    """Return the log posterior as a function of the parameters and the points."""
    columns, rows = np.triu_indices(d, 1)  # column by column
    nu = d + m + 1
    fixed = k * (nu * d * np.log(gamma / np.sqrt(2.0)) - multigammaln(0.5 * nu, d))
    fixed -= 0.5 * n * d * np.log(2.0 * np.pi)

    def f(parameters: dict[str, Any], x: Any) -> Any:
        alpha, mu, q, below = (parameters[name] for name in PARAMETERS)
        factors = np.zeros((k, d, d), like=mu)
        factors[:, range(d), range(d)] = np.exp(q)
        factors[:, rows, columns] = below
        whitened = (x - mu[:, None]) @ np.swapaxes(factors, 1, 2)
        beta = (alpha + q.sum(1))[:, None] - 0.5 * np.sum(whitened**2, axis=2)
        likelihood = np.sum(logsumexp(beta, 0)) - n * logsumexp(alpha, 0)
        return fixed + likelihood - 0.5 * gamma**2 * np.sum(factors**2) + m * np.sum(q)

    return f


def task(transform: Any, answer: Any) -> Any:
    """Make a task of the log posterior or of its gradient."""

    def make(given: dict[str, Any]) -> Task:
        f = log_posterior(*(given[name] for name in ("d", "k", "n", "m", "gamma")))
        parameters = {name: np.array(given[name]) for name in PARAMETERS}
        return Task(wg.jit(transform(f)), (parameters, np.array(given["x"])), answer)

    return make


def lists(gradient: dict[str, Any]) -> dict[str, Any]:
    """Return the gradient by every parameter as JSON."""
    return {name: gradient[name].tolist() for name in PARAMETERS}


FUNCTIONS = {"objective": task(lambda f: f, number), "jacobian": task(wg.grad, lists)}
