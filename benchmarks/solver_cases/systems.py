"""Sparse linear systems that depend on conductivities: value and gradient of the sum of squares.

bar       -(k u')' = 1 on a line: a tridiagonal matrix
plate     -div(k grad u) = 1 on a square by differences, a conductivity for each pair of neighbors
finite    the same by linear finite elements, a conductivity for each triangle
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

from . import fresh

TITLE = "Sparse linear systems: value and gradient"
TEXT = (
    "-div(k grad u) = 1 with u = 0 on the boundary; the sum of u^2 and its gradient with respect "
    "to all conductivities, which change in each call, so that factors are computed anew. "
    "*bar*, *plate*: *wengert* is `custom_linear_solve` of a function, whose pattern it finds. "
    "*finite elements*: *wengert* is `coo_array`, assembled in the program, and `spsolve`. *JAX* "
    "is `tridiagonal_solve`, and `experimental.sparse.linalg.spsolve`, which is SciPy's and "
    "factorizes twice. *SciPy* has assembly and derivative by hand, with one factorization "
    "(LAPACK's `pttrf` for the bar, otherwise `splu` without row exchanges)."
)
PEERS = ("JAX", "SciPy")
TARGET = "not slower than SciPy with a derivative by hand"


def cases(quick: bool) -> Iterator[Case]:
    """Of one size each."""
    n = 100 if quick else 10_000
    k = generator(93).uniform(0.5, 2.0, n + 1)
    yield Case(f"bar, {n} unknowns", bar(k), within=1e-6)
    side = 10 if quick else 100
    k = generator(94).uniform(0.5, 2.0, 2 * side * (side + 1))
    yield Case(f"plate, {side * side} unknowns", plate(side, k), within=1e-6)
    side = 10 if quick else 317
    k = generator(95).uniform(0.5, 2.0, 2 * (side + 1) ** 2)
    yield Case(f"finite elements, {side * side} unknowns", elements(side, k), within=1e-6)


def bar(k: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for the line."""
    n = k.size - 1
    load = np.full(n, 1.0 / n**2)

    def wengert() -> Call:
        import wengert as wg

        def loss(k: Any) -> Any:
            def flow(u: Any) -> Any:
                return -np.diff(k * np.diff(u, prepend=0.0, append=0.0))

            return np.sum(wg.custom_linear_solve(flow, load) ** 2)

        return fresh.each_call(libraries.wengert(loss, k))

    def jax() -> Call:
        j = libraries.jax()

        def loss(k: Any) -> Any:
            zero = j.numpy.zeros(1)
            low = j.numpy.concatenate([zero, -k[1:-1]])
            high = j.numpy.concatenate([-k[1:-1], zero])
            solve = j.lax.linalg.tridiagonal_solve
            return (solve(low, k[:-1] + k[1:], high, j.numpy.asarray(load)[:, None]) ** 2).sum()

        return fresh.each_call(libraries.jax_gradient(loss, k))

    def scipy() -> Call:
        from scipy.linalg.lapack import dpttrf, dpttrs

        def by_hand(k: Any) -> Any:
            d, e, _ = dpttrf(k[:-1] + k[1:], -k[1:-1])
            u, _ = dpttrs(d, e, load)
            adjoint, _ = dpttrs(d, e, 2.0 * u)
            slopes = [np.diff(v, prepend=0.0, append=0.0) for v in (u, adjoint)]
            return u @ u, -slopes[0] * slopes[1]

        return fresh.each_call(Call(by_hand, (k,)))

    return {"wengert": wengert, "JAX": jax, "SciPy": scipy}


class Assembly:
    """A matrix whose entries are linear in k: entry ``value * k[source]`` at (row, column).

    ``data`` of the compressed rows is ``entries @ k``.
    """

    def __init__(
        self, rows: Any, columns: Any, source: Any, value: Any, n: int, parameters: int
    ) -> None:
        import scipy.sparse as sp

        self.rows, self.columns, self.source, self.value, self.n = rows, columns, source, value, n
        places, slots = np.unique(rows * n + columns, return_inverse=True)
        shape = len(places), parameters
        self.entries = sp.coo_array((value, (slots, source)), shape=shape).tocsr()
        self.indices = (places % n).astype(np.int32)
        self.indptr = np.searchsorted(places, n * np.arange(n + 1)).astype(np.int32)

    def by_hand(self, load: Any, k: Any) -> Call:
        """Value and gradient with SciPy's factors; the matrix is symmetric."""
        import scipy.sparse as sp
        from scipy.sparse.linalg import splu

        options = {"SymmetricMode": True}

        def run(k: Any) -> Any:
            data = self.entries @ k
            matrix = sp.csc_array((data, self.indices, self.indptr), shape=(self.n, self.n))
            factors = splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
            u = factors.solve(load)
            adjoint = factors.solve(2.0 * u)
            products = adjoint[self.rows] * self.value * u[self.columns]
            return u @ u, -np.bincount(self.source, products, k.size)

        return Call(run, (k,))

    def jax(self, load: Any, k: Any) -> Call:
        """JAX's interface to SciPy's solver."""
        from jax.experimental.sparse.linalg import spsolve

        j = libraries.jax()
        entries = self.entries.tocoo()
        slots, source, value = (
            j.numpy.asarray(a) for a in (entries.row, entries.col, entries.data)
        )
        indices, indptr, b = (j.numpy.asarray(a) for a in (self.indices, self.indptr, load))

        def loss(k: Any) -> Any:
            data = j.ops.segment_sum(value * k[source], slots, len(self.indices))
            return (spsolve(data, indices, indptr, b) ** 2).sum()

        return libraries.jax_gradient(loss, k)


def plate(side: int, k: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for the square; first conductivities downward, then to the right."""
    n = side * side
    load = np.full(n, 1.0 / n)
    shape, half = (side, side), side * (side + 1)

    def wengert() -> Call:
        import wengert as wg

        def loss(k: Any) -> Any:
            down, right = k[:half].reshape(side + 1, side), k[half:].reshape(side, side + 1)

            def flow(u: Any) -> Any:
                u = u.reshape(shape)
                first = down * np.diff(u, axis=0, prepend=0.0, append=0.0)
                second = right * np.diff(u, axis=1, prepend=0.0, append=0.0)
                return -(np.diff(first, axis=0) + np.diff(second, axis=1)).ravel()

            return np.sum(wg.custom_linear_solve(flow, load) ** 2)

        return fresh.each_call(libraries.wengert(loss, k))

    wide = np.full((side + 2, side + 2), -1)
    wide[1:-1, 1:-1] = np.arange(n).reshape(shape)
    start = np.concatenate([wide[:-1, 1:-1].ravel(), wide[1:-1, :-1].ravel()])
    end = np.concatenate([wide[1:, 1:-1].ravel(), wide[1:-1, 1:].ravel()])
    pairs = [(start, start, 1.0), (end, end, 1.0), (start, end, -1.0), (end, start, -1.0)]
    rows, columns = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
    values = np.concatenate([np.full(k.size, pair[2]) for pair in pairs])
    inside = (rows >= 0) & (columns >= 0)
    source = np.tile(np.arange(k.size), 4)[inside]
    matrix = Assembly(rows[inside], columns[inside], source, values[inside], n, k.size)
    return {
        "wengert": wengert,
        "JAX": lambda: fresh.each_call(matrix.jax(load, k)),
        "SciPy": lambda: fresh.each_call(matrix.by_hand(load, k)),
    }


def elements(side: int, k: Any) -> dict[str, Callable[[], Call]]:
    """Contestants for finite elements: two triangles for each square of a grid."""
    n = side * side
    load = np.full(n, 1.0 / n)
    wide = np.full((side + 2, side + 2), -1)
    wide[1:-1, 1:-1] = np.arange(n).reshape(side, side)
    a, b, c, d = (w.ravel() for w in (wide[:-1, :-1], wide[1:, :-1], wide[:-1, 1:], wide[1:, 1:]))
    triangles = np.concatenate([np.stack([a, b, c], 1), np.stack([d, c, b], 1)])
    local = np.array([[2.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]) / 2
    rows, columns = np.repeat(triangles, 3, axis=1).ravel(), np.tile(triangles, (1, 3)).ravel()
    inside = (rows >= 0) & (columns >= 0)
    source = np.repeat(np.arange(len(triangles)), 9)[inside]
    values = np.tile(local.ravel(), len(triangles))[inside]
    rows, columns = rows[inside], columns[inside]

    def wengert() -> Call:
        from wengert.scipy.sparse import coo_array
        from wengert.scipy.sparse.linalg import spsolve

        def loss(k: Any) -> Any:
            matrix = coo_array((k[source] * values, (rows, columns)), shape=(n, n)).tocsr()
            return np.sum(spsolve(matrix, load) ** 2)

        return fresh.each_call(libraries.wengert(loss, k))

    matrix = Assembly(rows, columns, source, values, n, k.size)
    return {"wengert": wengert, "SciPy": lambda: fresh.each_call(matrix.by_hand(load, k))}
