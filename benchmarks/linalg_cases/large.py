"""One matrix of 500 rows: what a gradient costs beside the forward run.

A loss weighs all elements of the result by fixed numbers, so the cotangents are dense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

TITLE = "One large matrix"
TEXT = (
    "500 rows and columns, float64. *forward* is the factorization or the solution alone; "
    "*gradient* is value and gradient of a weighted sum of all elements of the result, those of "
    "eigenvectors and singular vectors squared, so that their signs do not matter. *solve* has 500 "
    "right-hand sides. The last table has one divided by the other."
)
PEERS = ("JAX", "torch")
TARGET = "gradient at most 3 times the forward run"
ROWS = 500


def cases(quick: bool) -> Iterator[Case]:
    """Forward and gradient of each operation."""
    n = 50 if quick else ROWS
    random = generator(31)
    g, weights = random.normal(size=(2, n, n))
    positive = g @ g.T / n + np.eye(n)
    matrices = {
        "svd": g,
        "eigh": g + g.T,
        "cholesky": positive,
        "qr": g,
        "solve": positive,
        "inv": positive,
        "slogdet": positive,
    }
    for name, a in matrices.items():
        forward = FORWARD[name]
        yield Case(f"{name}, forward", values(forward, a, weights))
        yield Case(f"{name}, gradient", gradients(forward, a, weights), within=1e-5)


FORWARD: dict[str, Callable[..., Any]] = {
    "svd": lambda xp, a, c: tuple(xp.linalg.svd(a, full_matrices=False)),
    "eigh": lambda xp, a, c: tuple(xp.linalg.eigh(a)),
    "cholesky": lambda xp, a, c: (xp.linalg.cholesky(a),),
    "qr": lambda xp, a, c: tuple(xp.linalg.qr(a)),
    "solve": lambda xp, a, c: (xp.linalg.solve(a, c),),
    "inv": lambda xp, a, c: (xp.linalg.inv(a),),
    "slogdet": lambda xp, a, c: (xp.linalg.slogdet(a)[1],),
}


def loss(forward: Any, xp: Any, c: Any) -> Any:
    """A weighted sum of squares of all results."""

    def f(a: Any) -> Any:
        found = forward(xp, a, c)
        return sum((x * x * c).sum() if x.ndim == 2 else (x * x).sum() for x in found)

    return f


def sizes(result: Any) -> Any:
    """Without signs, which are not unique."""
    found = [x.detach().numpy() if hasattr(x, "detach") else np.asarray(x) for x in result]
    return [np.abs(x) for x in found]


def values(forward: Any, a: Any, c: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for the forward run."""

    def jax() -> Call:
        j = libraries.jax()
        weights = j.numpy.asarray(c)
        call = libraries.jax_call(lambda a: forward(j.numpy, a, weights), a)
        return Call(call.function, call.arguments, call.ready, sizes)

    def torch() -> Call:
        t = libraries.torch()
        weights = t.from_numpy(c)
        return Call(lambda a: forward(t, a, weights), (t.from_numpy(a),), numbers=sizes)

    return {
        "wengert": lambda: Call(libraries.jit(lambda a: forward(np, a, c)), (a,), numbers=sizes),
        "JAX": jax,
        "torch": torch,
        "NumPy": lambda: Call(lambda a: forward(np, a, c), (a,), numbers=sizes),
    }


def gradients(forward: Any, a: Any, c: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for value and gradient."""

    def eager() -> Call:
        import wengert as wg

        return Call(wg.value_and_grad(loss(forward, np, c)), (a,))

    def jax() -> Call:
        j = libraries.jax()
        return libraries.jax_gradient(loss(forward, j.numpy, j.numpy.asarray(c)), a)

    def torch() -> Call:
        t = libraries.torch()
        return libraries.torch_gradient(loss(forward, t, t.from_numpy(c)), a)

    return {
        "wengert": lambda: libraries.wengert(loss(forward, np, c), a),
        "wengert, eager": eager,
        "JAX": jax,
        "torch": torch,
    }
