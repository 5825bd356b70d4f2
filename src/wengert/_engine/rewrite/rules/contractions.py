"""Contractions: sums over an axis of only one factor of a product.

The gradient with respect to a value that is broadcast before a product, such as the mean that is
subtracted from points, ends with the sum of a matrix product.  If the factor with the summed axis
is summed first, the product is one with a vector; for a mixture of Gaussians this saves a third of
all multiplications.

The sum of a factor may overflow where the sum of products does not, if the other factor is small.
This is accepted, because a sum of products may overflow in intermediate sums too.
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
    """The negative of the sum."""
    x = node.args[0].args[0]
    operand_spec, result_spec = new.context.spec(x), new.context.spec(node)
    if (
        operand_spec.dtype != result_spec.dtype
        or result_spec.dtype.kind not in "fc"
        or node.params.get("dtype")
    ):
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
    inner_spec, result_spec = context.spec(inner), context.spec(node)
    if (
        inner_spec.dtype != result_spec.dtype
        or result_spec.dtype.kind not in "fc"
        or node.params.get("dtype")
    ):
        return None
    *subscripts, result = inner.params["subscripts"]
    axes = _summed_axes(node, inner_spec.shape, result_spec.shape)
    if not axes or len(subscripts) != 2 or any(len({*w}) < len(w) for w in subscripts):
        return None
    summed = [result[k] for k in axes]
    if any(sum(c in w for w in subscripts) != 1 for c in summed):
        return None
    operands = []
    for i, a in enumerate(inner.args):
        own_axes = tuple(k for k, c in enumerate(subscripts[i]) if c in summed)
        if own_axes:
            a = new("sum", a, axis=own_axes if len(own_axes) > 1 else own_axes[0], keepdims=False)
            subscripts[i] = "".join(c for c in subscripts[i] if c not in summed)
        operands.append(a)
    result_labels = "".join(c for c in result if c not in summed)
    contraction = new(inner.op, *operands, subscripts=(*subscripts, result_labels))
    if context.spec(contraction).shape == result_spec.shape:
        return contraction
    return new("reshape", contraction, shape=result_spec.shape, order="C")


def _summed_axes(
    node: Node, shape: tuple[int, ...], result_shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The axes that a node sums over; None if that depends on sizes."""
    if node.op.name == "sum":
        return axes_of(node.params.get("axis"), len(shape))
    return repeated_axes(shape, result_shape)


RULES = (sum_of_negatives, sum_of_contraction)
