"""The Brusselator with diffusion on a line: the sparse Jacobian of its right-hand side.

u' = a + u^2 v - (b + 1) u + k u_xx and v' = b u - u^2 v + k v_xx, values at the ends held fixed,
n numbers: u at n/2 points, then v.  A row has four entries, two or three of which are constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from loop_cases.peers import by_hand
from native import libraries
from native.case import Call, Case, generator

from . import peers

TITLE = "Brusselator: sparse Jacobian"
TEXT = (
    "n numbers, four entries a row, float64. *wengert* is the vector of entries, "
    "`.plan(x).values`, whose pattern and colors it finds by itself; *wengert, matrix* is what "
    "`sparse_jacobian` gives, a SciPy matrix around it; *wengert, dense* is `jit(jacobian(f))`. "
    "*JAX* has colors and pattern made by hand (`vmap` of `jvp`, entries gathered). *CasADi* "
    "finds both; its result is its own matrix of compressed columns. *C* writes the formulas of "
    "the entries."
)
PEERS = ("JAX", "CasADi")
TARGET = "within 5 times of C (column C at least 0.2)"
A, B = 1.0, 3.0


def diffusion(points: int) -> float:
    """The coefficient, divided by the square of the distance of points."""
    return 0.02 * (points + 1) ** 2 / 1000.0


def right_hand_side(xp: Any, points: int) -> Any:
    """The function of n numbers."""
    k = diffusion(points)

    def f(x: Any) -> Any:
        u, v = x[:points], x[points:]
        left, right = xp.full(1, A), xp.full(1, B / A)
        wide_u = xp.concatenate([left, u, left])
        wide_v = xp.concatenate([right, v, right])
        du = A + u * u * v - (B + 1.0) * u + k * (wide_u[:-2] - 2.0 * u + wide_u[2:])
        dv = B * u - u * u * v + k * (wide_v[:-2] - 2.0 * v + wide_v[2:])
        return xp.concatenate([du, dv])

    return f


def pattern(points: int) -> tuple[Any, Any]:
    """Rows and columns of the entries, in order."""
    from scipy.sparse import block_array, diags_array, eye_array

    line = diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(points, points))
    one = eye_array(points)
    return block_array([[line, one], [one, line]], format="csr").nonzero()


def cases(quick: bool) -> Iterator[Case]:
    """Of several sizes."""
    for n in (100,) if quick else (1000, 10_000, 100_000):
        points = n // 2
        x = generator(80).uniform(0.5, 2.0, n)
        rows, columns = pattern(points)
        out = np.zeros(rows.size)
        given = (points, B, diffusion(points), x, out)
        hand = by_hand("brusselator", "brusselator", given, lambda _, out=out: out)
        yield Case(f"n = {n}", contestants(x, rows, columns) | hand, within=1e-12)


def contestants(x: Any, rows: Any, columns: Any) -> dict[str, Any]:
    """All but C."""
    points = x.size // 2
    f = right_hand_side(np, points)

    def wengert() -> Call:
        import wengert as wg

        return peers.entries(wg.sparse_jacobian(f), x)

    def wrapped() -> Call:
        import wengert as wg

        return peers.matrix(wg.sparse_jacobian(f), x)

    def dense() -> Call:
        import wengert as wg

        return peers.dense(wg.jacobian(f), x, rows, columns)

    def jax() -> Call:
        j = libraries.jax()
        g = right_hand_side(j.numpy, points)
        colors = np.concatenate([np.arange(points) % 3, 3 + np.arange(points) % 3])
        return peers.jax_columns(lambda x, d: j.jvp(g, (x,), (d,))[1], x, colors, rows, columns)

    found = {"wengert": wengert, "wengert, matrix": wrapped}
    if x.size <= 1000:
        found["wengert, dense"] = dense
    return found | {"JAX": jax} | peers.casadi_rows(casadi, x)


def casadi(c: Any, x: Any) -> Any:
    """The Jacobian in CasADi's symbols."""
    points = x.numel() // 2
    k = diffusion(points)
    u, v = x[:points], x[points:]
    wide_u, wide_v = c.vertcat(A, u, A), c.vertcat(B / A, v, B / A)
    du = A + u * u * v - (B + 1.0) * u + k * (wide_u[:-2] - 2.0 * u + wide_u[2:])
    dv = B * u - u * u * v + k * (wide_v[:-2] - 2.0 * v + wide_v[2:])
    return c.jacobian(c.vertcat(du, dv), x)
