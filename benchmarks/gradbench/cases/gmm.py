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
    "and its gradient with respect to all parameters. *C* goes through blocks of points and uses "
    "that the factors are triangular. wengert maps a function of one component over all; JAX and "
    "PyTorch the same (`lax.map`, Python's loop) and, *vmap*, all at once."
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

    columns, rows = np.triu_indices(sizes[0], 1)

    def jax(j: Any, mapped: Any) -> Any:
        def triangular(q: Any, below: Any) -> Any:
            return j.numpy.diag(j.numpy.exp(q)).at[rows, columns].set(below)

        f = posterior(j.numpy, triangular, mapped, j.scipy.special.logsumexp, sizes, gamma, fixed)
        return f if plain else j.grad(f, (0, 1, 2, 3))

    def torch(t: Any, mapped: Any) -> Any:
        at = t.from_numpy(rows), t.from_numpy(columns)

        def triangular(q: Any, below: Any) -> Any:
            return t.index_put(t.diag(t.exp(q)), at, below)

        f = posterior(t, triangular, mapped, t.logsumexp, sizes, gamma, fixed)

        def gradient(*arguments: Any) -> Any:
            leaves = [a.detach().requires_grad_() for a in arguments[:4]]
            return t.autograd.grad(f(*leaves, arguments[4]), leaves)

        return f if plain else gradient

    def python_map(t: Any) -> Any:
        def mapped(f: Any, parameters: Any) -> Any:
            found = [f(p) for p in zip(*parameters, strict=True)]
            return tuple(t.stack(part) for part in zip(*found, strict=True))

        return mapped

    def all_at_once(vmap: Any) -> Any:
        return lambda f, parameters: vmap(f)(parameters)

    ways = {
        "JAX": peers.jax(lambda j: jax(j, j.lax.map), *parameters, x, answer=answer),
        "JAX, vmap": peers.jax(
            lambda j: jax(j, all_at_once(j.vmap)), *parameters, x, answer=answer
        ),
        "torch": peers.torch(lambda t: torch(t, python_map(t)), *parameters, x, answer=answer),
        "torch, vmap": peers.torch(
            lambda t: torch(t, all_at_once(t.func.vmap)), *parameters, x, answer=answer
        ),
    }
    outputs = [()] if plain else [p.shape for p in parameters]
    given_to_c = [*parameters, x, [gamma], [fixed]]
    return byhand.both("gmm", function, sizes, given_to_c, outputs, answer) | ways


def posterior(
    xp: Any, triangular: Any, mapped: Any, logsumexp: Any, sizes: list[int], gamma: float,
    fixed: float,
) -> Any:  # fmt: skip
    """The objective over a namespace, one component after the other or all at once: evals/gmm."""
    n, m = sizes[2:]

    def f(alpha: Any, mu: Any, q: Any, below: Any, x: Any) -> Any:
        def component(parameters: Any) -> Any:
            alpha, mu, q, below = parameters
            factor = triangular(q, below)
            whitened = (x - mu) @ factor.T
            beta = alpha + q.sum() - 0.5 * (whitened**2).sum(1)
            return beta, m * q.sum() - 0.5 * gamma**2 * (factor**2).sum()

        beta, prior = mapped(component, (alpha, mu, q, below))
        return fixed + logsumexp(beta, 0).sum() - n * logsumexp(alpha, 0) + prior.sum()

    return f
