"""Loops of a batch: gradients of trajectories, likelihoods of Kalman filters.

    WORKLOADS

PyTorch's loops are loops of Python, which `torch.compile` would unroll for minutes; JAX has `scan`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg

from .case import Workload, rng, scaled

_STEPS, _OBSERVED = 100, 50
_MOVE = np.eye(4) + 0.1 * np.eye(4, k=2)
_NOISE = 0.1 * np.kron([[1e-3 / 3, 5e-3], [5e-3, 0.1]], np.eye(2))
_SEEN = np.eye(2, 4)


def slope(xp: Any, s: Any) -> Any:
    """One step of Lorenz' system."""
    parts = [10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]]
    return s + 0.01 * xp.stack(parts)


def lorenz(x: Any) -> Any:
    """Gradients of many trajectories with respect to where they start."""
    end = lambda x: np.sum(wg.fori_loop(0, _STEPS, lambda i, s: slope(np, s), x))  # noqa: E731
    return wg.vmap(wg.grad(end))(x)


def _torch_lorenz(torch: Any) -> Any:
    def end(x: Any) -> Any:
        s = x.T
        for _ in range(_STEPS):
            s = slope(torch, s)
        return s.sum()

    return torch.func.grad(end)


def _jax_lorenz(jax: Any) -> Any:
    def end(x: Any) -> Any:
        move = lambda s, _: (slope(jax.numpy, s), None)  # noqa: E731
        return jax.lax.scan(move, x, None, length=_STEPS)[0].sum()

    return jax.jit(jax.vmap(jax.grad(end)))


def filtered(xp: Any, q: Any, state: Any, y: Any) -> Any:
    """One step of Kalman's filter: the state, and the log-likelihood of an observation."""
    move, noise, seen = (xp.asarray(x) for x in (_MOVE, _NOISE, _SEEN))
    mean, p = state
    mean, p = move @ mean, move @ p @ move.T + q * noise
    gain = p @ seen.T
    s = seen @ gain + 0.04 * xp.asarray(np.eye(2))
    away = y - seen @ mean
    solved = xp.linalg.solve(s, away[:, None])[:, 0]
    mean = mean + gain @ solved
    p = p - gain @ xp.linalg.solve(s, gain.T)
    return (mean, p), -0.5 * (away @ solved + xp.linalg.slogdet(s)[1])


def kalman(q: Any, y: Any) -> Any:
    """Log-likelihoods of many series."""

    def one(q: Any, y: Any) -> Any:
        start = np.zeros(4), np.eye(4)
        return np.sum(wg.scan(lambda state, y: filtered(np, q, state, y), start, y)[1])

    return wg.vmap(one)(q, y)


def _torch_kalman(torch: Any) -> Any:
    def run(q: Any, y: Any) -> Any:
        move, noise, seen = (torch.asarray(x, device=y.device) for x in (_MOVE, _NOISE, _SEEN))
        eye = torch.eye(2, dtype=y.dtype, device=y.device)
        mean = torch.zeros(len(q), 4, 1, dtype=y.dtype, device=y.device)
        p = torch.eye(4, dtype=y.dtype, device=y.device).expand(len(q), 4, 4)
        total = torch.zeros_like(q)
        for k in range(_OBSERVED):
            mean, p = move @ mean, move @ p @ move.T + q[:, None, None] * noise
            gain = p @ seen.T
            s = seen @ gain + 0.04 * eye
            away = y[:, k, :, None] - seen @ mean
            solved = torch.linalg.solve(s, away)
            mean = mean + gain @ solved
            p = p - gain @ torch.linalg.solve(s, gain.mT)
            total = total - 0.5 * ((away * solved).sum((1, 2)) + torch.linalg.slogdet(s)[1])
        return total

    return run


def _jax_kalman(jax: Any) -> Any:
    xp = jax.numpy

    def one(q: Any, y: Any) -> Any:
        start = xp.zeros(4), xp.eye(4)
        return jax.lax.scan(lambda state, y: filtered(xp, q, state, y), start, y)[1].sum()

    return jax.jit(jax.vmap(one))


def _series(scale: float) -> tuple[Any, ...]:
    n, random = scaled(1e5, scale, 40), rng()
    return random.uniform(0.5, 2.0, n), np.cumsum(random.normal(size=(n, _OBSERVED, 2)), axis=1)


WORKLOADS = (
    Workload(
        "Lorenz, gradients of 1e5 trajectories",
        lorenz,
        _torch_lorenz,
        _jax_lorenz,
        lambda scale: (rng().normal(size=(scaled(1e5, scale, 40), 3)),),
    ),
    Workload("Kalman, likelihoods of 1e5 series", kalman, _torch_kalman, _jax_kalman, _series),
)
