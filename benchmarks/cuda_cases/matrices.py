"""Many small matrices: systems, inverses, factorizations and products.

WORKLOADS
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg

from .case import Workload, moved, rng, scaled


def solves(xp: Any) -> Any:
    """Systems with one right-hand side each."""
    return lambda a, b: xp.linalg.solve(a, b[..., None])[..., 0]


def densities(xp: Any) -> Any:
    """Log-densities of Gaussian vectors, by Cholesky's factorization."""

    def value(a: Any, b: Any) -> Any:
        root = xp.linalg.cholesky(a @ a.mT)
        away = xp.linalg.solve(root, b[..., None])[..., 0]
        diagonal = (root * xp.asarray(np.eye(a.shape[-1]))).sum(-1)
        return -0.5 * (away * away).sum(-1) - xp.log(diagonal).sum(-1)

    return value


def _torch_densities(torch: Any) -> Any:
    def value(a: Any, b: Any) -> Any:
        root = torch.linalg.cholesky(a @ a.mT)
        away = torch.linalg.solve_triangular(root, b[..., None], upper=False)[..., 0]
        return -0.5 * (away * away).sum(-1) - torch.log(torch.diagonal(root, 0, -2, -1)).sum(-1)

    return torch.func.grad(lambda a, b: value(a, b).sum(), argnums=(0, 1))


def _ours_densities(a: Any, b: Any) -> Any:
    return wg.grad(lambda a, b: np.sum(densities(np)(a, b)), argnums=(0, 1))(a, b)


def _jax_densities(jax: Any) -> Any:
    value = densities(jax.numpy)
    return jax.jit(jax.grad(lambda a, b: value(a, b).sum(), argnums=(0, 1)))


def congruence(a: Any, s: Any) -> Any:
    """Products of small matrices."""
    return a @ s @ a.mT + s


def _systems(n: int, count: float) -> Any:
    def make(scale: float) -> tuple[Any, ...]:
        rows, random = scaled(count, scale), rng()
        return random.normal(size=(rows, n, n)) + n * np.eye(n), random.normal(size=(rows, n))

    return make


WORKLOADS = (
    *[
        Workload(
            f"{title} systems of {n} equations",
            solves(np),
            lambda torch: solves(torch),
            lambda jax: jax.jit(solves(jax.numpy)),
            _systems(n, count),
            lambda a, b: moved(a, b, b),
        )
        for title, n, count in (("1e6", 3, 1e6), ("1e5", 8, 1e5))
    ],
    Workload(
        "1e6 densities of 4 dimensions, gradients",
        _ours_densities,
        _torch_densities,
        _jax_densities,
        _systems(4, 1e6),
        tolerance=1e-8,
    ),
    Workload(
        "1e6 products a s a' + s of 4 x 4",
        congruence,
        lambda torch: torch.compile(congruence),
        lambda jax: jax.jit(congruence),
        lambda scale: tuple(rng().normal(size=(2, scaled(1e6, scale), 4, 4))),
        lambda a, s: moved(a, s, s),
    ),
)
