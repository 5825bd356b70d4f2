"""Growth with the size of an array: a gradient of so many numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import points

TITLE = "Size: numbers of an array"
TEXT = "The gradient of `sum(tanh(x w) exp(-x²))`, w the same numbers reversed, float64."
TARGET = "compiling does not depend on it; a call grows no faster than it"
SIZES = (100, 10_000, 1_000_000, 10_000_000)


def program(n: int) -> tuple[Any, Any]:
    """The function of a namespace, and where its gradient is taken."""
    x = np.linspace(-2.0, 2.0, n)

    def f(xp: Any) -> Any:
        w = xp.from_numpy(x[::-1].copy()) if hasattr(xp, "from_numpy") else xp.asarray(x[::-1])
        return lambda x: (xp.tanh(x * w) * xp.exp(-x * x)).sum()

    return f, x


def once(point: str, library: str) -> dict[str, Any]:
    """In the fresh process."""
    return points.once(points.gradients(*program(int(point))), library)


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """A row for each size."""
    chosen = SIZES[:2] if quick else SIZES
    return points.measure("size", {str(n): f"{n:,} numbers" for n in chosen}, threads)
