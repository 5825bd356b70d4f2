"""gmm: the log posterior of a mixture of k Gaussians in d dimensions, 1000 points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import lgamma, log, pi, prod
from typing import Any

import numpy as np

from gradbench import byhand, peers
from gradbench.task import Task, number

TITLE = "gmm: a mixture of Gaussians"
TEXT = (
    "The log posterior of k Gaussians in d dimensions with a Wishart prior, at n = 1000 points, "
    "and its gradient by all parameters. *C* goes through blocks of points and uses that the "
    "factors are triangular; the libraries are batched, and multiply with BLAS."
)
DERIVATIVES = ("jacobian",)
SEED = 31337
SIZES = sorted(product((2, 10, 20, 32, 64), (5, 10, 25, 50, 100)), key=prod)
PARAMETERS = ("alpha", "mu", "q", "l")


def generate(d: int, k: int, n: int, m: int = 0, gamma: float = 1.0) -> dict[str, Any]:
    """Return an input; every size starts its random numbers anew."""
    random = np.random.default_rng(seed=SEED)
    return {
        "d": d, "k": k, "n": n, "x": [random.normal(size=d).tolist() for _ in range(n)],
        "m": m, "gamma": gamma, "alpha": random.normal(size=k).tolist(),
        "mu": [random.uniform(size=d).tolist() for _ in range(k)],
        "q": [random.normal(size=d).tolist() for _ in range(k)],
        "l": [random.normal(size=d * (d - 1) // 2).tolist() for _ in range(k)],
    }  # fmt: skip


def inputs(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Dimensions and numbers of components."""
    if quick:
        yield "2_3_7", generate(2, 3, 7)
        yield "4_2_70", generate(4, 2, 70, m=2, gamma=0.7)
    else:
        yield from ((f"{d}_{k}_1000", generate(d, k, 1000)) for d, k in SIZES)


def constant(d: int, k: int, n: int, m: int, gamma: float) -> float:
    """What does not depend on the parameters."""
    nu = d + m + 1
    gammas = 0.25 * d * (d - 1) * log(pi) + sum(lgamma(0.5 * (nu - j)) for j in range(d))
    return k * (nu * d * (log(gamma) - 0.5 * log(2)) - gammas) - 0.5 * n * d * log(2 * pi)


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C, JAX, PyTorch."""
    sizes = [given[name] for name in ("d", "k", "n", "m")]
    gamma, plain = given["gamma"], function == "objective"
    fixed = constant(*sizes, gamma)
    parameters = [np.array(given[name]) for name in PARAMETERS]
    x = np.array(given["x"])

    def answer(out: Any) -> Any:
        if plain:
            return number(out[0] if isinstance(out, list) else out)
        return {name: np.asarray(bar).tolist() for name, bar in zip(PARAMETERS, out, strict=True)}

    def jax(j: Any) -> Any:
        def triangular(q: Any, below: Any) -> Any:
            full = j.numpy.zeros((len(q), q.shape[1], q.shape[1]))
            return full.at[:, rows, columns].set(below)

        columns, rows = np.triu_indices(sizes[0], 1)
        lse = j.scipy.special.logsumexp
        f = posterior(j.numpy, triangular, lambda v, axis: lse(v, axis=axis), sizes, gamma, fixed)
        return f if plain else j.grad(f, (0, 1, 2, 3))

    def torch(t: Any) -> Any:
        def triangular(q: Any, below: Any) -> Any:
            full = t.zeros((len(q), q.shape[1], q.shape[1]), dtype=t.float64)
            full[:, rows, columns] = below
            return full

        columns, rows = map(t.from_numpy, np.triu_indices(sizes[0], 1))
        f = posterior(t, triangular, lambda v, axis: t.logsumexp(v, axis), sizes, gamma, fixed)

        def gradient(*arguments: Any) -> Any:
            leaves = [a.detach().requires_grad_() for a in arguments[:4]]
            return t.autograd.grad(f(*leaves, arguments[4]), leaves)

        return f if plain else gradient

    outputs = [()] if plain else [p.shape for p in parameters]
    arrays = [*parameters, x]
    given_to_c = [*arrays, [gamma], [fixed]]
    return byhand.both("gmm", function, sizes, given_to_c, outputs, answer) | {
        "JAX": peers.jax(jax, *arrays, answer=answer),
        "torch": peers.torch(torch, *arrays, answer=answer),
    }


def posterior(
    xp: Any, triangular: Any, logsumexp: Any, sizes: list[int], gamma: float, fixed: float
) -> Any:
    """The objective over a namespace, with what lies below the diagonal times centred points."""
    n, m = sizes[2:]

    def f(alpha: Any, mu: Any, q: Any, below: Any, x: Any) -> Any:
        diagonals = xp.exp(q)
        centred = x[:, None, :] - mu[None]
        product = xp.einsum("kij,nkj->nki", triangular(q, below), centred)
        whitened = diagonals * centred + product
        beta = alpha + q.sum(1) - 0.5 * (whitened**2).sum(2)
        likelihood = logsumexp(beta, 1).sum() - n * logsumexp(alpha, 0)
        squares = (diagonals**2).sum() + (below**2).sum()
        return fixed + likelihood - 0.5 * gamma**2 * squares + m * q.sum()

    return f
