"""Growth with the number of nodes: a gradient of Thomas' algorithm, whose loops are unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np

from native.case import Call

from . import points

TITLE = "Straight programs: nodes of an unrolled algorithm"
TEXT = (
    "Value and gradient of Thomas' algorithm, of which every step is a node: "
    "17 of them for each unknown, without those of the derivative. `jit(source=False)` leaves the "
    "loops to Python."
)
TARGET = "at most 0.45 ms a node for the first call"
UNKNOWNS = (15, 60, 150, 600)
NODES = 17  # for each unknown
LIBRARIES = ("wengert",)  # JAX has no assignment, and takes minutes where its loops are unrolled


def solve(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The sum of squares of the solution."""
    n = len(b)
    c, d = c.copy(), d.copy()
    c[0], d[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * c[i - 1]
        c[i] = c[i] / m
        d[i] = (d[i] - a[i] * d[i - 1]) / m
    for i in range(n - 2, -1, -1):
        d[i] = d[i] - c[i] * d[i + 1]
    return np.sum(d**2)


def program(n: int) -> Call:
    """The compiled gradient, and where it is taken."""
    import wengert as wg

    rng = np.random.default_rng(0)
    args = rng.random(n), 4.0 + rng.random(n), rng.random(n), rng.random(n)
    return Call(wg.jit(wg.value_and_grad(solve, argnums=(0, 1, 2, 3)), source=False), args)


def once(point: str, library: str) -> dict[str, Any]:
    """In the fresh process."""
    return points.once({"wengert": lambda: program(int(point) // NODES)}, library)


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """A row for each number of nodes."""
    chosen = UNKNOWNS[:2] if quick else UNKNOWNS
    rows = {str(NODES * n): f"{NODES * n:,} nodes" for n in chosen}
    return points.measure("straight", rows, threads, names=LIBRARIES)
