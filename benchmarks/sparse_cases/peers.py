"""How the entries of a sparse derivative are asked of each library.

All give the vector of entries in the order of compressed rows; wengert finds the pattern and the
colors by itself, and so does CasADi, which gives compressed columns (sorted when they are compared,
not when they are timed).  JAX has both by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from native import libraries
from native.case import Call

Function = Callable[..., Any]


def entries(derivative: Any, x: Any) -> Call:
    """The compiled function from the argument to the entries, as wengert's plan keeps it."""
    return Call(derivative.plan(x).values, (x,))


def matrix(derivative: Any, x: Any) -> Call:
    """What is called without thinking: a SciPy matrix."""
    derivative(x)
    return Call(derivative, (x,), numbers=lambda found: found.data)


def dense(function: Function, x: Any, rows: Any, columns: Any) -> Call:
    """All zeros too."""
    return Call(libraries.jit(function), (x,), numbers=lambda found: found[rows, columns])


def jax_columns(push: Function, x: Any, colors: Any, rows: Any, columns: Any) -> Call:
    """Columns of one color pushed together, ``push(x, direction)``; colors are made by hand."""
    j = libraries.jax()
    seeds = j.numpy.asarray(np.eye(int(colors.max()) + 1)[colors].T)
    place = j.numpy.asarray(colors[columns]), j.numpy.asarray(rows)

    def run(x: Any) -> Any:
        return j.vmap(lambda seed: push(x, seed))(seeds)[place]

    return libraries.jax_call(run, x)


def in_rows(found: Any) -> Any:
    """The entries of a matrix of CasADi row by row."""
    from scipy.sparse import csc_array

    pattern = found.sparsity()
    starts, inside = np.array(pattern.colind()), np.array(pattern.row())
    values = np.array(found.nonzeros())
    rows = csc_array((values, inside, starts), shape=pattern.shape).tocsr()
    rows.sort_indices()
    return rows.data


def casadi_rows(build: Function, x: Any) -> dict[str, Callable[[], Call]]:
    """A function of ``build(casadi, symbol)``, a sparse matrix of its own; and its C."""

    def make() -> Any:
        import casadi

        symbol = casadi.SX.sym("x", x.size)
        return casadi.Function("f", [symbol], [build(casadi, symbol)])

    def read(called: Callable[[], Call]) -> Callable[[], Call]:
        return lambda: replace(called(), numbers=in_rows)

    return {name: read(called) for name, called in libraries.casadi(make, x).items()}
