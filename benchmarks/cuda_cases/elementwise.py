"""Elementwise workloads: a chain, option prices with their derivatives, a mixture of Gaussians.

WORKLOADS
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from wengert.scipy.special import logsumexp, ndtr

from .case import Workload, moved, rng, scaled


def chain(xp: Any) -> Any:
    """A chain of elementwise operations."""
    return lambda x: xp.tanh(x) * xp.exp(-x * x) + xp.sqrt(xp.abs(x) + 1.0)


def price(xp: Any, cdf: Any) -> Any:
    """The value of call options (F. Black, M. Scholes, 1973)."""

    def value(s: Any, k: Any, t: Any) -> Any:
        root = 0.2 * xp.sqrt(t)
        d = (xp.log(s / k) + 0.07 * t) / root
        return s * cdf(d) - k * xp.exp(-0.05 * t) * cdf(d - root)

    return value


def deltas(s: Any, k: Any, t: Any) -> Any:
    """Their sum, and its derivatives with respect to the prices."""
    return wg.value_and_grad(lambda s: np.sum(price(np, ndtr)(s, k, t)))(s)


def _torch_deltas(torch: Any) -> Any:
    value = price(torch, torch.special.ndtr)
    total = torch.func.grad_and_value(lambda s, k, t: value(s, k, t).sum())
    return torch.compile(lambda s, k, t: total(s, k, t)[::-1])


def _jax_deltas(jax: Any) -> Any:
    value = price(jax.numpy, jax.scipy.special.ndtr)
    return jax.jit(jax.value_and_grad(lambda s, k, t: value(s, k, t).sum()))


def _options(scale: float) -> tuple[Any, ...]:
    n, random = scaled(1e7, scale), rng()
    return random.uniform(50, 150, n), random.uniform(50, 150, n), random.uniform(0.1, 2.0, n)


def likelihood(xp: Any, lse: Any) -> Any:
    """The log-likelihood of a mixture of diagonal Gaussians."""

    def value(weights: Any, means: Any, scales: Any, x: Any) -> Any:
        z = (x[:, None, :] - means) * xp.exp(scales)
        terms = weights + scales.sum(1) - 0.5 * (z * z).sum(2)
        return lse(terms, 1).sum() - x.shape[0] * lse(weights, 0)

    return value


def mixture(*arguments: Any) -> Any:
    """Its gradient."""
    return wg.grad(likelihood(np, lambda x, axis: logsumexp(x, axis=axis)), argnums=(0, 1, 2))(
        *arguments
    )


def _torch_mixture(torch: Any) -> Any:
    value = likelihood(torch, torch.logsumexp)
    return torch.compile(torch.func.grad(value, argnums=(0, 1, 2)))


def _jax_mixture(jax: Any) -> Any:
    value = likelihood(jax.numpy, jax.scipy.special.logsumexp)
    return jax.jit(jax.grad(value, argnums=(0, 1, 2)))


def _points(scale: float) -> tuple[Any, ...]:
    n, k, d, random = scaled(1e5, scale), 25, 10, rng()
    shapes = ((k,), (k, d), (k, d), (n, d))
    weights, means, scales, x = (random.normal(size=s) for s in shapes)
    return weights, means, 0.1 * scales, x


def _chains() -> list[Workload]:
    return [
        Workload(
            f"elementwise chain, {title}",
            chain(np),
            lambda torch: torch.compile(chain(torch)),
            lambda jax: jax.jit(chain(jax.numpy)),
            lambda scale, n=n, dtype=dtype: (rng().normal(size=scaled(n, scale)).astype(dtype),),
            lambda x: 2 * x.nbytes,
            tolerance,
        )
        for title, n, dtype, tolerance in (
            ("1e7", 1e7, np.float64, 1e-12),
            ("1e8, float32", 1e8, np.float32, 1e-5),
            ("1e3", 1e3, np.float64, 1e-12),
        )
    ]


WORKLOADS = (
    *_chains(),
    Workload(
        "Black-Scholes, value and gradient, 1e7",
        deltas,
        _torch_deltas,
        _jax_deltas,
        _options,
        lambda s, k, t: moved(s, s, k, t),
    ),
    Workload("gradient of a Gaussian mixture", mixture, _torch_mixture, _jax_mixture, _points),
)
