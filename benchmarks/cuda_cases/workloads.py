"""Workloads of benchmarks/cuda.py: the same numbers by wengert and by PyTorch, on a card.

    WORKLOADS    by name: makes arguments, a function of wengert, and one of torch
    Workload     one of them

Arrays are made on the host by NumPy with fixed seeds, and put on the card before the time runs.
`bytes` is what a run must read and write at least; kernels that are bound by memory are compared
with the bandwidth of the card. PyTorch's functions are the compiled ones where it compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from wengert.scipy.special import logsumexp, ndtr


class Workload(NamedTuple):
    """A workload.

    name : in the table.
    ours : function of wengert, to be compiled.
    theirs : ``theirs(torch)`` returns the function of tensors.
    arguments : ``arguments(scale)`` returns arrays; a scale of 1 is the published size.
    bytes : ``bytes(*arguments)``, or None if arithmetic is the limit.
    """

    name: str
    ours: Callable[..., Any]
    theirs: Callable[[Any], Callable[..., Any]]
    arguments: Callable[[float], tuple[Any, ...]]
    bytes: Callable[..., int] | None = None


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


# ---- elementwise ---------------------------------------------------------------------------------


def chain(x: Any) -> Any:
    """A chain of elementwise operations."""
    return np.tanh(x) * np.exp(-x * x) + np.sqrt(np.abs(x) + 1.0)


def _torch_chain(torch: Any) -> Any:
    return torch.compile(
        lambda x: torch.tanh(x) * torch.exp(-x * x) + torch.sqrt(torch.abs(x) + 1.0)
    )


def price(s: Any, k: Any, t: Any) -> Any:
    """Values of call options (F. Black, M. Scholes, 1973)."""
    d = (np.log(s / k) + 0.07 * t) / (0.2 * np.sqrt(t))
    return s * ndtr(d) - k * np.exp(-0.05 * t) * ndtr(d - 0.2 * np.sqrt(t))


def deltas(s: Any, k: Any, t: Any) -> Any:
    """Values, and derivatives with respect to the price."""
    return wg.value_and_grad(lambda s: np.sum(price(s, k, t)))(s)


def _torch_deltas(torch: Any) -> Any:
    def price(s: Any, k: Any, t: Any) -> Any:
        d = (torch.log(s / k) + 0.07 * t) / (0.2 * torch.sqrt(t))
        ndtr = torch.special.ndtr
        return s * ndtr(d) - k * torch.exp(-0.05 * t) * ndtr(d - 0.2 * torch.sqrt(t))

    total = torch.func.grad_and_value(lambda s, k, t: price(s, k, t).sum())
    return torch.compile(lambda s, k, t: total(s, k, t)[::-1])


def _options(scale: float) -> tuple[Any, ...]:
    n, rng = max(int(1e7 * scale), 10), _rng()
    return rng.uniform(50, 150, n), rng.uniform(50, 150, n), rng.uniform(0.1, 2.0, n)


# ---- mixture of Gaussians ------------------------------------------------------------------------


def mixture(weights: Any, means: Any, scales: Any, x: Any) -> Any:
    """Gradient of the log-likelihood of a mixture of diagonal Gaussians."""

    def likelihood(weights: Any, means: Any, scales: Any) -> Any:
        z = (x[:, None, :] - means) * np.exp(scales)
        terms = weights + np.sum(scales, axis=1) - 0.5 * np.sum(z * z, axis=2)
        return np.sum(logsumexp(terms, axis=1)) - len(x) * logsumexp(weights)

    return wg.grad(likelihood, argnums=(0, 1, 2))(weights, means, scales)


def _torch_mixture(torch: Any) -> Any:
    def likelihood(weights: Any, means: Any, scales: Any, x: Any) -> Any:
        z = (x[:, None, :] - means) * torch.exp(scales)
        terms = weights + scales.sum(1) - 0.5 * (z * z).sum(2)
        return torch.logsumexp(terms, 1).sum() - len(x) * torch.logsumexp(weights, 0)

    return torch.compile(torch.func.grad(likelihood, argnums=(0, 1, 2)))


def _points(scale: float) -> tuple[Any, ...]:
    n, k, d, rng = max(int(1e5 * scale), 10), 25, 10, _rng()
    return (
        rng.normal(size=k),
        rng.normal(size=(k, d)),
        0.1 * rng.normal(size=(k, d)),
        rng.normal(size=(n, d)),
    )


# ---- loops ---------------------------------------------------------------------------------------


def lorenz(x: Any) -> Any:
    """Gradients of many trajectories with respect to where they start."""

    def end(x: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            slope = [10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]]
            return s + 0.01 * np.stack(slope)

        return np.sum(wg.fori_loop(0, 100, step, x))

    return wg.vmap(wg.grad(end))(x)


def _torch_lorenz(torch: Any) -> Any:
    def end(x: Any) -> Any:
        s = x.T
        for _ in range(100):
            slope = [10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]]
            s = s + 0.01 * torch.stack(slope)
        return s.sum()

    return torch.func.grad(end)


# ---- networks and linear algebra -----------------------------------------------------------------


def perceptron(w1: Any, w2: Any, x: Any, y: Any) -> Any:
    """Loss of a network with one hidden layer, and its gradients."""
    loss = lambda w1, w2: np.mean((np.tanh(x @ w1) @ w2 - y) ** 2)  # noqa: E731
    return wg.value_and_grad(loss, argnums=(0, 1))(w1, w2)


def _torch_perceptron(torch: Any) -> Any:
    loss = lambda w1, w2, x, y: ((torch.tanh(x @ w1) @ w2 - y) ** 2).mean()  # noqa: E731
    both = torch.func.grad_and_value(loss, argnums=(0, 1))
    return torch.compile(lambda *xs: both(*xs)[::-1])


def _layers(scale: float) -> tuple[Any, ...]:
    n, rng = max(int(4096 * scale), 8), _rng()
    shapes = ((784, 512), (512, 10), (n, 784), (n, 10))
    return tuple([rng.normal(size=s).astype(np.float32) * 0.05 for s in shapes])


def small_solves(a: Any, b: Any) -> Any:
    """Many systems of three equations."""
    return np.linalg.solve(a, b[..., None])[..., 0]


def _systems(scale: float) -> tuple[Any, ...]:
    n, rng = max(int(1e6 * scale), 10), _rng()
    return rng.normal(size=(n, 3, 3)) + 3.0 * np.eye(3), rng.normal(size=(n, 3))


def _moved(*arrays: Any) -> int:
    return sum(x.nbytes for x in arrays)


WORKLOADS = (
    Workload(
        "elementwise chain, 1e7",
        chain,
        _torch_chain,
        lambda scale: (_rng().normal(size=max(int(1e7 * scale), 10)),),
        lambda x: 2 * x.nbytes,
    ),
    Workload(
        "Black-Scholes, value and gradient, 1e7",
        deltas,
        _torch_deltas,
        _options,
        lambda s, k, t: _moved(s, k, t) + s.nbytes,
    ),
    Workload(
        "sum of squares, 1e8",
        lambda x: np.sum(x * x),
        lambda torch: torch.compile(lambda x: (x * x).sum()),
        lambda scale: (_rng().normal(size=max(int(1e8 * scale), 10)),),
        lambda x: x.nbytes,
    ),
    Workload("gradient of a Gaussian mixture", mixture, _torch_mixture, _points),
    Workload(
        "Lorenz, gradients of 1e5 trajectories",
        lorenz,
        _torch_lorenz,
        lambda scale: (_rng().normal(size=(max(int(1e5 * scale), 10), 3)),),
    ),
    Workload("perceptron, value and gradient", perceptron, _torch_perceptron, _layers),
    Workload(
        "1e6 systems of 3 equations",
        small_solves,
        lambda torch: lambda a, b: torch.linalg.solve(a, b),
        _systems,
    ),
)
