"""Contractions: sums over an axis of only one factor of a product.

The gradient with respect to a value that is broadcast before a product, such as the mean that is
subtracted from points, ends with a sum of a product of matrices.  Summing the one factor first
makes it a product with a vector; for a mixture of Gaussians this saves a third of all
multiplications.

The sum may overflow where the sum of products did not, if the other factor is small; sums of
products do not guarantee that either.
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
    reason="as accurate, and fewer numbers are negated",
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
    reason="the product distributes over the sum; fewer multiplications",
    example=(
        lambda x, y: sum_to(np.einsum("ij,kj->ik", x, y), shape=(1, 2)),
        _A,
        _A,
    ),
)
def sum_of_contraction(node: Node, new: NodeBuilder) -> Node | None:
    """The contraction of factors that are first summed over the axes that only one of them has."""
    context, inner = new.context, node.args[0]
    have, wanted = context.spec(inner), context.spec(node)
    if have.dtype != wanted.dtype or wanted.dtype.kind not in "fc" or node.params.get("dtype"):
        return None
    *words, result = inner.params["letters"]
    axes = _summed(node, have.shape, wanted.shape)
    if not axes or len(words) != 2 or any(len({*w}) < len(w) for w in words):
        return None
    summed = [result[k] for k in axes]
    if any(sum(c in w for w in words) != 1 for c in summed):
        return None
    operands = []
    for i, a in enumerate(inner.args):
        own = tuple(k for k, c in enumerate(words[i]) if c in summed)
        if own:
            a = new("sum", a, axis=own if len(own) > 1 else own[0], keepdims=False)
            words[i] = "".join(c for c in words[i] if c not in summed)
        operands.append(a)
    kept = "".join(c for c in result if c not in summed)
    small = new(inner.op, *operands, letters=(*words, kept))
    if context.spec(small).shape == wanted.shape:
        return small
    return new("reshape", small, shape=wanted.shape, order="C")


def _summed(node: Node, shape: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes that a node sums over; None if that depends on sizes."""
    if node.op.name == "sum":
        return axes_of(node.params.get("axis"), len(shape))
    return repeated_axes(shape, wanted)


RULES = (sum_of_negatives, sum_of_contraction)
