"""Costs: what one line of a list costs, by its operation and the specs of its operands.

The counts are estimates of the usual kind: one floating-point operation for each element of an
elementwise line, two for each product of a contraction, the textbook terms of highest order for
factorizations of matrices.  What moves or looks up elements counts none.  What cannot be known (an
operation of a user) is None, and a report says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ..core.apply import PART
from ..core.node import Node

# Multiples of n**3 for a square matrix of n rows: Golub and Van Loan, "Matrix Computations",
# 4th ed., tables of chapters 3, 4, 5, 7 and 8.
CUBES = {
    "solve": 2 / 3,
    "inv": 2.0,
    "det": 2 / 3,
    "slogdet": 2 / 3,
    "cholesky": 1 / 3,
    "qr": 4 / 3,
    "eigh": 9.0,
    "eig": 25.0,
    "svd": 21.0,
    "pinv": 21.0,
    "matrix_rank": 4 / 3,
    "expm": 20.0,
}
STILL = frozenset({"view", "indexing", "creation", "effect"})
# Opaque to the engine, but one pass over their elements.
PASSES = frozenset({"cumprod", "running", "recurrence", "modf", "frexp", "cumsum"})
NOTHING = frozenset({"after", "slide", "stop_gradient"})


def flops_of(node: Node, operands: Sequence[Any], spec: Any) -> float | None:
    """How many floating-point operations a line takes; None if that cannot be known.

    Parameters
    ----------
    node : Node
    operands : sequence of Spec
        Specs of the operands, with numbers for sizes.
    spec : Spec, or tuple of Spec
        Of the result.
    """
    op: Any = node.op
    name = op.name
    if op is PART or op.effect or name in NOTHING:
        return 0.0
    if name in PASSES:
        return float(operands[0].size)
    if name in CUBES:
        return _matrix(CUBES[name], operands)
    if name == "solve_triangular":
        return _matrix(0.0, operands)
    if name == "convolve":
        return 2.0 * operands[0].size * operands[1].size
    rule = _BY_KIND.get(op.kind)
    if rule is None:
        return 0.0 if op.kind in STILL else None
    return rule(node, operands, spec)


def _elementwise(node: Node, operands: Sequence[Any], spec: Any) -> float:
    return float(spec.size)


def _reduction(node: Node, operands: Sequence[Any], spec: Any) -> float:
    return float(operands[0].size)


def _contraction(node: Node, operands: Sequence[Any], spec: Any) -> float:
    op: Any = node.op
    *words, _ = op.letters(*[s.ndim for s in operands], **node.params)
    lengths: dict[str, int] = {}
    for word, s in zip(words, operands, strict=True):
        for letter, n in zip(word, s.shape, strict=True):
            lengths[letter] = max(lengths.get(letter, 1), n) if n else 0
    # More than two operands are taken in pairs, in an order found later: an upper bound.
    return float(max(1, 2 * (len(words) - 1)) * prod(lengths.values()))


_BY_KIND: dict[str, Callable[[Node, Sequence[Any], Any], float]] = {
    "elementwise": _elementwise,
    "reduction": _reduction,
    "contraction": _contraction,
}


def _matrix(cubes: float, operands: Sequence[Any]) -> float:
    """For a stack of matrices; two right-hand-side passes for each column of a second operand."""
    *stack, m, n = operands[0].shape
    total = cubes * max(m, n) * min(m, n) ** 2
    if len(operands) > 1 and operands[1].shape:
        second = operands[1].shape
        columns = second[-1] if len(second) > 1 else 1
        total += 2.0 * n * n * columns
    return float(prod(stack) * total)
