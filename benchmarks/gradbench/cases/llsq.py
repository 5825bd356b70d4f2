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
    "sign function, and the gradient with respect to the coefficients. *C* goes through the points "
    "in blocks. JAX has the same program (`jnp.polyval`, a scan of several steps at once; "
    "GradBench's own makes a table of all powers), PyTorch the same as Python's loop, and *torch, "
    "powers* the table. All make the points in the call."
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
            return 0.5 * xp.sum((xp.sign(t) - xp.polyval(x[::-1], t)) ** 2)

        return y if plain else j.grad(y)

    def torch(t: Any, table: bool = False) -> Any:
        def horner(x: Any, points: Any) -> Any:
            p = x[m - 1].expand(n)
            for coefficient in reversed(x[: m - 1].unbind()):
                p = p * points + coefficient
            return p

        def powers(x: Any, points: Any) -> Any:
            return t.linalg.vander(points, N=m) @ x

        polynomial = powers if table else horner

        def y(x: Any) -> Any:
            points = -1.0 + t.arange(n, dtype=t.float64) * 2.0 / (n - 1)
            return 0.5 * ((t.sign(points) - polynomial(x, points)) ** 2).sum()

        return y if plain else peers.gradient(t, y)

    answer = number if plain else listed
    return byhand.both(
        "llsq", function, (n, m), [x], [() if plain else m], lambda out: answer(out[0])
    ) | {
        "JAX": peers.jax(jax, x, answer=answer),
        "torch": peers.torch(torch, x, answer=answer),
        "torch, powers": peers.torch(lambda t: torch(t, table=True), x, answer=answer),
    }
