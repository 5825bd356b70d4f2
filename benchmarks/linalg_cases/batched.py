"""Many small matrices: systems, inverses, determinants, Cholesky, eigenvalues, and gradients.

Matrices are symmetric and positive definite, with eigenvalues apart, so that every operation has a
well-conditioned derivative at each of them and float32 can be compared; no library knows that.  A
gradient is of a sum of squares of the result, for eigh with weights on squares of vectors: what
does not depend on their signs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

TITLE = "Many small matrices"
TEXT = (
    "100,000 matrices of 2, 3, 4 and 6 rows. *solve* has one right-hand side for each. Values: the "
    "result itself; gradients: value and gradient with respect to the matrices (and right-hand "
    "sides) of a sum of squares of the result, for *eigh* of values and vectors. *NumPy* is "
    "LAPACK, one matrix after the other. A determinant of two or three rows is a few products: JAX "
    "reads the matrices at the memory's bandwidth there, as wengert does, so neither can be much "
    "faster."
)
PEERS = ("JAX", "torch")
TARGET = "value and gradient 3 times faster than the best of JAX and PyTorch"
COUNT = 100_000


def cases(quick: bool) -> Iterator[Case]:
    """float64 for all sizes, float32 for three rows."""
    sizes = [(3, "float64")] if quick else [(n, "float64") for n in (2, 3, 4, 6)] + [(3, "float32")]
    for n, dtype in sizes:
        count = 1000 if quick else COUNT
        random = generator(30, n)
        g = 0.3 * random.normal(size=(count, n, n))
        a = (g @ g.swapaxes(1, 2) + np.diag(1.0 + np.arange(n))).astype(dtype)
        b = random.normal(size=(count, n, 1)).astype(dtype)
        for name, (forward, loss, numbers) in OPERATIONS.items():
            given = (a, b) if name == "solve" else (a,)
            title = f"{name}, {n} rows, {dtype}"
            yield Case(f"{title}, value", values(forward, given, numbers), dtype)
            yield Case(f"{title}, gradient", gradients(loss, given), dtype)


def squares(x: Any) -> Any:
    """The sum of squares."""
    return (x * x).sum()


def of_spectrum(xp: Any, a: Any) -> Any:
    """A function of eigenvalues and vectors that their signs do not matter to."""
    w, v = xp.linalg.eigh(a)
    return squares(w) + (v * v * w[:, None, :]).sum()


def as_sizes(result: Any) -> Any:
    """Eigenvalues, and vectors without their signs."""
    return result[0], abs(np.asarray(result[1]))


Operation = tuple[Callable[..., Any], Callable[..., Any], Callable[[Any], Any]]
OPERATIONS: dict[str, Operation] = {
    "solve": (
        lambda xp: lambda a, b: xp.linalg.solve(a, b),
        lambda xp: lambda a, b: squares(xp.linalg.solve(a, b)),
        np.asarray,
    ),
    "inv": (
        lambda xp: lambda a: xp.linalg.inv(a),
        lambda xp: lambda a: squares(xp.linalg.inv(a)),
        np.asarray,
    ),
    "det": (
        lambda xp: lambda a: xp.linalg.det(a),
        lambda xp: lambda a: squares(xp.linalg.det(a)),
        np.asarray,
    ),
    "cholesky": (
        lambda xp: lambda a: xp.linalg.cholesky(a),
        lambda xp: lambda a: squares(xp.linalg.cholesky(a) ** 2),
        np.asarray,
    ),
    "eigvalsh": (
        lambda xp: lambda a: xp.linalg.eigvalsh(a),
        lambda xp: lambda a: squares(xp.linalg.eigvalsh(a)),
        np.asarray,
    ),
    "eigh": (
        lambda xp: lambda a: tuple(xp.linalg.eigh(a)),
        lambda xp: lambda a: of_spectrum(xp, a),
        as_sizes,
    ),
}


def values(forward: Any, given: Any, numbers: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for the operation."""

    def jax() -> Call:
        call = libraries.jax_call(forward(libraries.jax().numpy), *given)
        return Call(call.function, call.arguments, call.ready, numbers)

    def torch() -> Call:
        t = libraries.torch()
        return Call(forward(t), tuple(t.from_numpy(a) for a in given), numbers=numbers)

    return {
        "wengert": lambda: Call(libraries.jit(forward(np)), given, numbers=numbers),
        "JAX": jax,
        "torch": torch,
        "NumPy": lambda: Call(forward(np), given, numbers=numbers),
    }


def gradients(loss: Any, given: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for value and gradient."""
    argnums = tuple(range(len(given)))

    def jax() -> Call:
        return libraries.jax_gradient(loss(libraries.jax().numpy), *given, argnums=argnums)

    def torch() -> Call:
        return libraries.torch_gradient(loss(libraries.torch()), *given, by=argnums)

    return {
        "wengert": lambda: libraries.wengert(loss(np), *given, argnums=argnums),
        "JAX": jax,
        "torch": torch,
    }
