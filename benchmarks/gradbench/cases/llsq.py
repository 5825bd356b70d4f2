"""llsq: squares of the distance of a polynomial with 128 coefficients to the sign function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradbench import byhand, peers
from gradbench.task import Task, listed, number

TITLE = "llsq: linear least squares"
TEXT = (
    "A polynomial of m coefficients at n points by Horner's rule, its squared distance from the "
    "sign function, and the gradient by the coefficients. *C* goes through the points in blocks. "
    "JAX and PyTorch have the powers of the points as cumulative products, as GradBench's own "
    "program for JAX has them."
)
DERIVATIVES = ("gradient",)
SEED = 31337
POINTS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8196, 16392)


def inputs(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Numbers of points, and random coefficients."""
    random, m = np.random.RandomState(SEED), 5 if quick else 128
    for n in (16, 33) if quick else POINTS:
        yield f"n={n},m={m}", {"x": random.rand(m).tolist(), "n": n}


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C, JAX, PyTorch."""
    x, n = np.array(given["x"]), given["n"]
    plain, m = function == "primal", x.size

    def jax(j: Any) -> Any:
        xp = j.numpy

        def y(x: Any) -> Any:
            t = -1.0 + xp.arange(n) * 2.0 / (n - 1.0)
            powers = xp.cumprod(xp.full((n, m), t[:, None]).at[:, 0].set(1.0), axis=1)
            return 0.5 * xp.sum((xp.sign(t) - powers @ x) ** 2)

        return y if plain else j.grad(y)

    def torch(t: Any) -> Any:
        def y(x: Any) -> Any:
            points = -1.0 + t.arange(n, dtype=t.float64) * 2.0 / (n - 1)
            powers = t.linalg.vander(points, N=m)
            return 0.5 * ((t.sign(points) - powers @ x) ** 2).sum()

        return y if plain else peers.gradient(t, y)

    answer = number if plain else listed
    return byhand.both(
        "llsq", function, (n, m), [x], [() if plain else m], lambda out: answer(out[0])
    ) | {"JAX": peers.jax(jax, x, answer=answer), "torch": peers.torch(torch, x, answer=answer)}
