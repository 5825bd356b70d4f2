"""ode: 1 to 100 Runge-Kutta steps of a chain of 1,000 to 100,000 equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradbench import byhand, peers
from gradbench.task import Task, listed

TITLE = "ode: Runge-Kutta steps"
TEXT = (
    "s steps for a chain of n equations, and the gradient of the last element. JAX has the same "
    "program, and *JAX, roll* turns the state round, as GradBench's own does. *C* keeps the "
    "states and recomputes the stages in the backward pass. *C, closed form* differentiates the "
    "true solution, a product, without any step: GradBench's own program does that. It is another "
    "program than the one in question, and not in the ratios. At these sizes the gradient is "
    "zero: a step carries a change four elements far."
)
DERIVATIVES = ("gradient",)
SEED = 31337
SIZES = sorted(product((1000, 10000, 100000), (1, 10, 100)), key=prod)


def inputs(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Random x."""
    random = np.random.RandomState(SEED)
    for n, s in [(4, 1), (6, 3)] if quick else SIZES:
        yield f"n={n},s={s}", {"x": random.rand(n).tolist(), "s": s}


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C in two ways, and JAX in two."""
    x, s = np.array(given["x"]), given["s"]
    n, plain = x.size, function == "primal"

    def jax(j: Any, roll: bool = False) -> Any:
        h, xp = 2.0 / s, j.numpy

        def solve(x: Any) -> Any:
            first = xp.arange(n) == 0

            def rate(y: Any) -> Any:
                if roll:
                    return xp.where(first, x, x * xp.roll(y, 1))
                return x * xp.concatenate([xp.ones(1), y[:-1]])

            def step(y: Any, _: Any) -> Any:
                a = rate(y)
                b = rate(y + h / 2 * a)
                c = rate(y + h / 2 * b)
                d = rate(y + h * c)
                return y + h / 6 * (a + 2 * b + 2 * c + d), None

            return j.lax.scan(step, xp.zeros_like(x), None, length=s)[0]

        return solve if plain else j.grad(lambda x: solve(x)[-1])

    def answer(out: Any) -> Any:
        return listed(out[0])

    made = byhand.both("ode", function, (n, s), [x], [n], answer)
    if not plain and n >= 1000:
        made["C, closed form"] = lambda: byhand.task(
            "ode", "closed_gradient", (n, s), [x], [n], answer
        )
    return made | {"JAX": peers.jax(jax, x), "JAX, roll": peers.jax(lambda j: jax(j, True), x)}
