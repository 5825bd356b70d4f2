"""Growth with the number of parameters: the gradient with respect to a container of n arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from native import libraries
from native.case import Call

from . import points

TITLE = "Parameters: arrays in a container"
TEXT = (
    "The gradient of a sum of squares, `sum((p x)²)` for each of so many arrays p of eight "
    "numbers in a list, x the same for all."
)
TARGET = "compiling and calls grow no faster than it"
LEAVES = (1, 10, 100, 1000, 10_000)


def calls(count: int) -> dict[str, Any]:
    """Value and gradient in every library."""
    x = np.linspace(0.5, 1.5, 8)
    parameters = [x + 0.001 * k for k in range(count)]

    def f(parameters: Any, x: Any) -> Any:
        total = 0.0
        for p in parameters:
            total = total + ((p * x) ** 2).sum()
        return total

    def eager() -> Call:
        import wengert as wg

        return Call(wg.value_and_grad(f), (parameters, x))

    def torch() -> Call:
        t = libraries.torch()
        leaves = [t.from_numpy(p).requires_grad_() for p in parameters]

        def run(x: Any) -> Any:
            out = f(leaves, x)
            return out, t.autograd.grad(out, leaves)

        return Call(run, (t.from_numpy(x),))

    return {
        "wengert": lambda: libraries.wengert(f, parameters, x),
        "wengert, eager": eager,
        "JAX": lambda: libraries.jax_gradient(f, parameters, x),
        "torch": torch,
        "autograd": lambda: libraries.autograd_gradient(f, parameters, x),
    }


def once(point: str, library: str) -> dict[str, Any]:
    """In the fresh process."""
    return points.once(calls(int(point)), library)


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """A row for each number."""
    chosen = LEAVES[:3] if quick else LEAVES
    return points.measure("leaves", {str(n): f"{n:,} arrays" for n in chosen}, threads)
