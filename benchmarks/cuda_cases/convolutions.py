"""A convolutional network: loss and gradients with respect to its kernels.

    WORKLOADS

Two convolutions with maxima of windows, as in PyTorch's first examples; single precision, no TF32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from wengert.nn import functional

from .case import Workload, rng, scaled


def _arrays(scale: float) -> tuple[Any, ...]:
    n, random = scaled(256, scale, 2), rng()
    shapes: tuple[Any, ...] = ((32, 3, 3, 3), (64, 32, 3, 3), (4096, 10), (n, 3, 32, 32), (n, 10))
    return tuple([random.normal(size=s).astype(np.float32) * 0.05 for s in shapes])


def network(convolve: Callable[..., Any], largest: Callable[..., Any], relu: Any) -> Any:
    """Its loss, given what the libraries have of their own."""

    def loss(w1: Any, w2: Any, w3: Any, x: Any, y: Any) -> Any:
        x = largest(relu(convolve(x, w1)))
        x = largest(relu(convolve(x, w2)))
        return ((x.reshape(x.shape[0], -1) @ w3 - y) ** 2).mean()

    return loss


def ours(*xs: Any) -> Any:
    """The loss and its gradients."""
    loss = network(
        lambda x, w: functional.conv2d(x, w, padding=1),
        lambda x: functional.max_pool2d(x, 2),
        functional.relu,
    )
    return wg.value_and_grad(loss, argnums=(0, 1, 2))(*xs)


def _torch(torch: Any) -> Any:
    F = torch.nn.functional
    loss = network(lambda x, w: F.conv2d(x, w, padding=1), lambda x: F.max_pool2d(x, 2), F.relu)
    both = torch.func.grad_and_value(loss, argnums=(0, 1, 2))
    return torch.compile(lambda *xs: both(*xs)[::-1], mode="reduce-overhead")


def _jax(jax: Any) -> Any:
    xp, lax = jax.numpy, jax.lax

    def largest(x: Any) -> Any:
        return lax.reduce_window(x, -xp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    loss = network(
        lambda x, w: lax.conv(x, w, (1, 1), "SAME"), largest, lambda x: xp.maximum(x, 0.0)
    )
    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


WORKLOADS = (
    Workload("two convolutions, value and gradient", ours, _torch, _jax, _arrays, tolerance=1e-3),
)
