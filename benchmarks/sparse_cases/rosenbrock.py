"""Rosenbrock's function of many numbers: its tridiagonal Hessian as entries.

The function is written for arrays, as everybody writes it; the entries are those of the three
diagonals, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from loop_cases.peers import by_hand
from native import libraries
from native.case import Call, Case

from . import peers

TITLE = "Rosenbrock: sparse Hessian"
TEXT = (
    "Tridiagonal, float64. *wengert* is the vector of entries, `.plan(x).values`; *wengert, "
    "matrix* what `sparse_hessian` gives. *JAX* has colors and pattern made by hand (`vmap` of "
    "`jvp` of `grad`). *CasADi* finds both, *CasADi, compiled* is its C. *C* writes the "
    "formulas of the entries."
)
PEERS = ("JAX", "CasADi")
TARGET = "within 5 times of C (column C at least 0.2)"


def rosenbrock(x: Any) -> Any:
    """The function."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def pattern(n: int) -> tuple[Any, Any]:
    """Rows and columns of the entries, in order."""
    pairs = [(i, j) for i in range(n) for j in (i - 1, i, i + 1) if 0 <= j < n]
    rows, columns = np.array(pairs).T
    return rows, columns


def cases(quick: bool) -> Iterator[Case]:
    """Of several sizes."""
    for n in (100,) if quick else (1000, 100_000):
        x = np.linspace(-1.2, 1.1, n)
        rows, columns = pattern(n)
        out = np.zeros(rows.size)
        hand = by_hand("brusselator", "rosenbrock", (n, x, out), lambda _, out=out: out)
        yield Case(f"n = {n}", contestants(x, rows, columns) | hand, within=1e-12)


def contestants(x: Any, rows: Any, columns: Any) -> dict[str, Any]:
    """All but C."""

    def wengert() -> Call:
        import wengert as wg

        return peers.entries(wg.sparse_hessian(rosenbrock), x)

    def wrapped() -> Call:
        import wengert as wg

        return peers.matrix(wg.sparse_hessian(rosenbrock), x)

    def jax() -> Call:
        j = libraries.jax()
        gradient = j.grad(rosenbrock)
        colors = np.arange(x.size) % 3
        return peers.jax_columns(
            lambda x, d: j.jvp(gradient, (x,), (d,))[1], x, colors, rows, columns
        )

    def casadi(c: Any, x: Any) -> Any:
        value = c.sum1(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
        return c.hessian(value, x)[0]

    found = {"wengert": wengert, "wengert, matrix": wrapped, "JAX": jax}
    return found | peers.casadi_rows(casadi, x)
