"""Reductions, whose time is that of reading memory: sums, softmax, layer normalization.

WORKLOADS
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from wengert.nn import functional

from .case import Workload, rng, scaled

_WIDTH = 1024


def _square(scale: float) -> tuple[Any, ...]:
    return (rng().normal(size=(scaled(1e4, scale**0.5), scaled(1e4, scale**0.5))),)


def _rows(scale: float) -> tuple[Any, ...]:
    return (rng().normal(size=(scaled(65536, scale), _WIDTH)).astype(np.float32),)


def _normed(scale: float) -> tuple[Any, ...]:
    random = rng()
    ends = [random.normal(size=_WIDTH).astype(np.float32) for _ in range(2)]
    return (*_rows(scale), *ends)


def _norm(xp: Any) -> Any:
    def norm(x: Any, w: Any, b: Any) -> Any:
        away = x - x.mean(-1, keepdims=True)
        return away / xp.sqrt((away * away).mean(-1, keepdims=True) + 1e-5) * w + b

    return norm


def _norm_gradient(xp: Any) -> Any:
    return lambda x, w, b: (xp.sin(_norm(xp)(x, w, b))).sum()


def _torch_norm(torch: Any) -> Any:
    norm = torch.nn.functional.layer_norm
    return torch.compile(lambda x, w, b: norm(x, (_WIDTH,), w, b))


def _torch_norm_gradient(torch: Any) -> Any:
    norm = torch.nn.functional.layer_norm
    value = lambda x, w, b: torch.sin(norm(x, (_WIDTH,), w, b)).sum()  # noqa: E731
    return torch.compile(torch.func.grad(value, argnums=(0, 1, 2)))


def _sums() -> list[Workload]:
    return [
        Workload(
            f"sum along axis {axis} of 1e4 x 1e4",
            lambda x, axis=axis: np.sum(x, axis=axis),
            lambda torch, axis=axis: torch.compile(lambda x: x.sum(axis)),
            lambda jax, axis=axis: jax.jit(lambda x: x.sum(axis)),
            _square,
            lambda x: x.nbytes,
        )
        for axis in (0, 1)
    ]


WORKLOADS = (
    Workload(
        "sum of squares, 1e8",
        lambda x: np.sum(x * x),
        lambda torch: torch.compile(lambda x: (x * x).sum()),
        lambda jax: jax.jit(lambda x: (x * x).sum()),
        lambda scale: (rng().normal(size=scaled(1e8, scale)),),
        lambda x: x.nbytes,
    ),
    *_sums(),
    Workload(
        "softmax of 65536 rows of 1024",
        functional.softmax,
        lambda torch: torch.compile(lambda x: torch.softmax(x, -1)),
        lambda jax: jax.jit(lambda x: jax.nn.softmax(x, -1)),
        _rows,
        lambda x: 2 * x.nbytes,
        1e-5,
    ),
    Workload(
        "layer norm of 65536 rows of 1024",
        lambda x, w, b: functional.layer_norm(x, (_WIDTH,), w, b),
        _torch_norm,
        lambda jax: jax.jit(_norm(jax.numpy)),
        _normed,
        lambda x, w, b: 2 * x.nbytes,
        1e-4,
    ),
    Workload(
        "layer norm, gradients",
        wg.grad(
            lambda x, w, b: np.sum(np.sin(functional.layer_norm(x, (_WIDTH,), w, b))),
            argnums=(0, 1, 2),
        ),
        _torch_norm_gradient,
        lambda jax: jax.jit(jax.grad(_norm_gradient(jax.numpy), argnums=(0, 1, 2))),
        _normed,
        lambda x, w, b: 2 * x.nbytes,
        1e-3,
    ),
)
