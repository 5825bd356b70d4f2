"""det: a determinant by expansion of minors, of 5 by 5 to 11 by 11."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradbench import byhand, peers
from gradbench.evals import det
from gradbench.task import Task, listed, number

TITLE = "det: expansion by minors"
TEXT = (
    "wengert, JAX, PyTorch and *C* compute each minor once, as arrays and as a table by sets of "
    "columns; the gradient of C goes back through it. *C, recursive* computes a minor anew "
    "wherever it occurs, and the gradient as the signed minors of all entries; that is what "
    "GradBench's own program does, and it is not in the ratios. GradBench has no program of JAX "
    "and PyTorch: theirs is ours."
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
    """C in two ways, JAX, PyTorch."""
    a, n, plain = np.array(given["A"]), given["ell"], function == "primal"
    answer, shape = (number, ()) if plain else (listed, n * n)
    anew = "recursive" if plain else "recursive_gradient"

    def made(function: str) -> Callable[[], Task]:
        return lambda: byhand.task("det", function, (n,), [a], [shape], lambda out: answer(out[0]))

    def jax(j: Any) -> Any:
        f = determinant(n, j.numpy.ones(1), j.numpy.asarray)
        return f if plain else j.grad(f)

    def torch(t: Any) -> Any:
        f = determinant(n, t.ones(1, dtype=t.float64), t.from_numpy)
        return f if plain else peers.gradient(t, f)

    return {
        "C": made(function),
        "C, recursive": made(anew),
        "JAX": peers.jax(jax, a, answer=answer),
        "torch": peers.torch(torch, a, answer=answer),
    }


def determinant(n: int, ones: Any, array: Any) -> Any:
    """The program of evals/det.py with another library's arrays."""
    steps = [
        (array((-1.0) ** np.arange(m)), array(columns), array(below))
        for m, (columns, below) in enumerate(det.expansions(n), 1)
    ]

    def f(a: Any) -> Any:
        rows, minors = a.reshape(n, n), ones
        for m, (sign, columns, below) in enumerate(steps, 1):
            minors = (sign * rows[n - m][columns] * minors[below]).sum(1)
        return minors[0]

    return f
