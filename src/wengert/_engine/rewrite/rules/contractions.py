"""Contractions: sums over an axis that only one factor of a product has.

A gradient with respect to what was broadcast before a product, such as the mean that points are
centred by, ends in a sum of a product of matrices.  Summing the one factor first makes a product
with a vector of it: of a mixture of Gaussians that was a third of all multiplications.

A sum of finite numbers overflows here where it did there, but for factors that take it back from
beyond the largest number; sums of products never were safe from that.
"""

from __future__ import annotations

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.constraints import repeated_axes
from wengert._engine.kinds.reduction import axes_of
from wengert._engine.ops.casts import sum_to

from ..rule import NodeBuilder, rule

_A = np.arange(6.0).reshape(2, 3)
_SUMS = ("sum_to", "sum")


@rule(
    "sum of negatives",
    _SUMS,
    "negative",
    reason="the sum of the numbers is as exact, and there is less to be negated",
    example=(lambda x: sum_to(-x, shape=(3,)), _A),
)
def sum_of_negatives(node: Node, new: NodeBuilder) -> Node | None:
    """The sum, negated."""
    x = node.args[0].args[0]
    have, wanted = new.context.spec(x), new.context.spec(node)
    if have.dtype != wanted.dtype or wanted.dtype.kind not in "fc" or node.params.get("dtype"):
        return None
    return new("negative", new(node.op, x, **node.params))


@rule(
    "sum of a contraction",
    _SUMS,
    "einsum",
    reason="a sum of multiples of one factor is a multiple of the sum, with fewer products",
    example=(
        lambda x, y: sum_to(np.einsum("ij,kj->ik", x, y), shape=(1, 2)),
        _A,
        _A,
    ),
)
def sum_of_contraction(node: Node, new: NodeBuilder) -> Node | None:
    """The contraction of factors that are summed before, over what only one of them has."""
    walk, inner = new.context, node.args[0]
    have, wanted = walk.spec(inner), walk.spec(node)
    if have.dtype != wanted.dtype or wanted.dtype.kind not in "fc" or node.params.get("dtype"):
        return None
    *words, result = inner.params["letters"]
    axes = _summed(node, have.shape, wanted.shape)
    if not axes or len(words) != 2 or any(len({*w}) < len(w) for w in words):
        return None
    gone = [result[k] for k in axes]
    if any(sum(c in w for w in words) != 1 for c in gone):
        return None
    operands = []
    for i, a in enumerate(inner.args):
        own = tuple(k for k, c in enumerate(words[i]) if c in gone)
        if own:
            a = new("sum", a, axis=own if len(own) > 1 else own[0], keepdims=False)
            words[i] = "".join(c for c in words[i] if c not in gone)
        operands.append(a)
    kept = "".join(c for c in result if c not in gone)
    small = new(inner.op, *operands, letters=(*words, kept))
    if walk.spec(small).shape == wanted.shape:
        return small
    return new("reshape", small, shape=wanted.shape, order="C")


def _summed(node: Node, shape: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes that a node sums over; None if that depends on sizes."""
    if node.op.name == "sum":
        return axes_of(node.params.get("axis"), len(shape))
    return repeated_axes(shape, wanted)


RULES = (sum_of_negatives, sum_of_contraction)
