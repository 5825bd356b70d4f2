"""Patterns of the matrices of linear functions, for implicit differentiation (a lower layer).

pattern_of      the pattern of the matrix of a body
color_columns   groups of columns that one product computes
"""

from __future__ import annotations

from importlib import import_module
from itertools import accumulate
from typing import Any

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.op import REGISTRY
from wengert.errors import ShapeError

from .coloring import color_columns
from .dependency_sets import Sets, nothing, places, stacked
from .propagation import propagate
from .rule_context import size_of

__all__ = ["color_columns", "operation", "pattern_of"]

_MODULES = {
    "linalg.banded_solve": "wengert.scipy.linalg.banded",
    "sparse.solve": "wengert.scipy.sparse.linalg.solve_operation",
    "sparse.near_solve": "wengert.scipy.sparse.linalg.near_solve_operation",
    "scipy_solver": "wengert.scipy.optimize.solver_operation",
}


def operation(name: str) -> Any:
    """The operation of that name; `lookup` would import all of wengert.scipy to find it."""
    if name not in REGISTRY:
        import_module(_MODULES[name])
    return REGISTRY[name]


def pattern_of(body: Body, captured: int) -> Sets | None:
    """The entries of the matrix of a linear function; None if it is not sparse.

    Parameters
    ----------
    body : Body
        Its inputs after the first `captured` are the vector, its outputs the product.
    captured : int
    """
    vector = body.inputs[captured:]
    sizes = [size_of(n.spec) for n in vector]
    columns = sum(sizes)
    starts = accumulate(sizes, initial=0)
    given = [places(size, columns, start) for size, start in zip(sizes, starts, strict=False)]
    try:
        found = propagate(body, [*[None] * captured, *given], columns)
    except ShapeError:  # too many entries
        return None
    pairs = zip(found, body.outputs, strict=True)
    sets = stacked(
        [nothing(size_of(n.spec), columns) if s is None else s for s, n in pairs], columns
    )
    sets.sum_duplicates()
    return sets
