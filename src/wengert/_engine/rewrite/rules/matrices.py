"""Rules for matrices with structure (inferred by value_properties.py).

A matrix is known to be symmetric or triangular if a constant or an assumption of the user says so.
The triangular solver raises for a singular matrix like the general one, so errors are preserved.
"""

from __future__ import annotations

import numpy as np

from wengert._engine.core.node import Node

from ..assume import assume
from ..rule import NodeBuilder, rule

_S = np.array([[2.0, 1.0], [1.0, 3.0]])
_L = np.array([[2.0, 0.0], [1.0, 3.0]])
_B = np.array([[1.0, 2.0], [0.5, -1.0]])


@rule(
    "transpose of symmetric",
    "transpose",
    reason="a symmetric matrix is its own transpose",
    exact=True,
    example=(lambda x: assume(x, symmetric=True).T + 1.0, _S),
)
def symmetric(node: Node, new: NodeBuilder) -> Node | None:
    """The matrix itself."""
    x, context = node.args[0], new.context
    ndim = len(context.spec(node).shape)
    if ndim < 2 or not context.has(x, "symmetric"):
        return None
    axes = node.params.get("axes")
    order = tuple(range(ndim))[::-1] if axes is None else tuple(a % ndim for a in axes)
    return x if order == (*range(ndim - 2), ndim - 1, ndim - 2) else None


@rule(
    "solve with a triangle",
    "solve",
    reason="a triangular system is solved by substitution, without a factorization",
    example=(lambda x, y: np.linalg.solve(assume(x, lower=True), y), _L, _B),
)
def triangle(node: Node, new: NodeBuilder) -> Node | None:
    """The triangular solver."""
    a, b = node.args
    is_lower = new.context.has(a, "lower")
    if not is_lower and not new.context.has(a, "upper"):
        return None
    return new("solve_triangular", a, b, lower=is_lower, trans=0, unit_diagonal=False)


@rule(
    "inverse times",
    "matmul",
    "inv",
    operand=0,
    reason="solving is more accurate and cheaper than inverting",
    example=(lambda x, y: np.linalg.inv(x) @ y, _S, _B),
)
def inverse_times(node: Node, new: NodeBuilder) -> Node | None:
    """solve(a, b) in place of inv(a) @ b."""
    left, b = node.args
    return new("solve", left.args[0], b)


@rule(
    "determinant of a triangle",
    "det",
    reason="the determinant of a triangular matrix is the product of its diagonal",
    example=(lambda x: np.linalg.det(assume(x, lower=True)), _L),
)
def determinant(node: Node, new: NodeBuilder) -> Node | None:
    """The product of the diagonal."""
    a = node.args[0]
    if not (new.context.has(a, "lower") or new.context.has(a, "upper")):
        return None
    return new("prod", new("diagonal", a, offset=0, axis1=-2, axis2=-1), axis=-1)


RULES = (symmetric, triangle, inverse_times, determinant)
