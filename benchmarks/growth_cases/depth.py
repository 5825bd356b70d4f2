"""Growth with depth: a gradient through so many operations, one behind the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import points

TITLE = "Depth: operations one behind the other"
TEXT = (
    "The gradient of the sum of a chain, `x = sin(x)`, `x = 0.5 x`, `x = x + x0`, `x = x x` over "
    "and over, of 100 numbers."
)
TARGET = "compiling and calls grow no faster than it"
DEPTHS = (10, 100, 1000, 10_000)


def program(depth: int) -> tuple[Any, Any]:
    """The function of a namespace, and where its gradient is taken."""

    def f(xp: Any) -> Any:
        def run(x0: Any) -> Any:
            x = x0
            for k in range(depth):
                if k % 4 == 0:
                    x = xp.sin(x)
                elif k % 4 == 1:
                    x = 0.5 * x
                elif k % 4 == 2:
                    x = x + x0
                else:
                    x = x * x
            return x.sum()

        return run

    return f, np.linspace(0.2, 0.3, 100)


def once(point: str, library: str) -> dict[str, Any]:
    """In the fresh process."""
    return points.once(points.gradients(*program(int(point))), library)


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """A row for each depth."""
    chosen = DEPTHS[:2] if quick else DEPTHS
    return points.measure("depth", {str(n): f"{n:,} operations" for n in chosen}, threads)
