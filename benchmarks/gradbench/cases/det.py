"""det: a determinant by expansion of minors, of 5 by 5 to 11 by 11."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradbench import byhand
from gradbench.task import Task, listed, number

TITLE = "det: expansion by minors"
TEXT = (
    "wengert and *C* compute each minor once, as arrays and as a table by sets of columns; the "
    "gradient of C goes back through it. *C, recursive* computes a minor anew wherever it "
    "occurs, and the gradient as the signed minors of all entries; that is what GradBench's own "
    "program does, and it is not in the ratios. GradBench's JAX and PyTorch have no program for it."
)
DERIVATIVES = ("gradient",)
SEED = 31337
SIZES = (5, 6, 7, 8, 9, 10, 11)


def inputs(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Random matrices."""
    random = np.random.RandomState(SEED)
    for ell in (2, 4) if quick else SIZES:
        yield f"{ell}", {"A": random.rand(ell * ell).tolist(), "ell": ell}


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C in two ways."""
    a, n, plain = np.array(given["A"]), given["ell"], function == "primal"
    answer, shape = (number, ()) if plain else (listed, n * n)
    anew = "recursive" if plain else "recursive_gradient"

    def made(function: str) -> Callable[[], Task]:
        return lambda: byhand.task("det", function, (n,), [a], [shape], lambda out: answer(out[0]))

    return {"C": made(function), "C, recursive": made(anew)}
