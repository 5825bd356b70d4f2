"""lse: the logarithm of a sum of exponentials of 2,500 to 1,280,000 numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradbench import byhand, peers
from gradbench.task import Task, listed, number

TITLE = "lse: the logarithm of a sum of exponentials"
TEXT = (
    "Written with maximum, exponential, sum and logarithm, as GradBench asks. *C* as written calls "
    "libm for each exponential; with -ffast-math gcc computes several at once."
)
DERIVATIVES = ("gradient",)
SEED = 31337
LENGTHS = tuple(2500 * 2**i for i in range(10))


def inputs(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Random numbers from 0 to 1."""
    random = np.random.RandomState(SEED)
    for n in (3, 100) if quick else LENGTHS:
        yield f"n={n}", {"x": random.rand(n).tolist()}


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C, JAX, PyTorch, autograd."""
    x, plain = np.array(given["x"]), function == "primal"

    def jax(j: Any) -> Any:
        def lse(x: Any) -> Any:
            largest = j.numpy.max(x)
            return largest + j.numpy.log(j.numpy.sum(j.numpy.exp(x - largest)))

        return lse if plain else j.grad(lse)

    def torch(t: Any) -> Any:
        def lse(x: Any) -> Any:
            largest = t.max(x)
            return largest + t.log(t.sum(t.exp(x - largest)))

        return lse if plain else peers.gradient(t, lse)

    def autograd(a: Any) -> Any:
        import autograd.numpy as anp

        def lse(x: Any) -> Any:
            largest = anp.max(x)
            return largest + anp.log(anp.sum(anp.exp(x - largest)))

        return lse if plain else a.grad(lse)

    answer = number if plain else listed
    return byhand.both(
        "lse", function, (x.size,), [x], [() if plain else x.size], lambda out: answer(out[0])
    ) | {
        "JAX": peers.jax(jax, x, answer=answer),
        "torch": peers.torch(torch, x, answer=answer),
        "autograd": peers.autograd(autograd, x, answer=answer),
    }
