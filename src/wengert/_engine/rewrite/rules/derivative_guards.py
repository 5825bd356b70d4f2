"""Derivative guards: strong zeros and sums that properties of the values make unnecessary.

A traced backward pass does not know values, so after a selection and at a pole it uses
`strong_zero(t, g)`, which is g, but 0 where t is exactly 0 and g is NaN.  It equals g if t is never
zero, if g cannot be NaN, or if g is a sum of multiples of t with finite factors.  If t has one
element that is not zero, as a row of a Jacobian has at its beginning, and g is a multiple of it,
only that element is computed, and placed among zeros.

Cotangents that a store has cleared are zeros, to which others are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.node import CONSTANT, ConstantLeaf, Node
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import derivation
from wengert._engine.ops.elementwise import selection
from wengert._engine.ops.indexing.getitem import scatter
from wengert._engine.ops.linalg import matmul

from ..rule import NodeBuilder, rule

_MAX_DEPTH = 8  # operations between t and g
_MAX_LENGTH = 64  # elements of a vector with one element that is not zero


@rule(
    "strong zero",
    "strong_zero",
    reason="the cotangent is nowhere zero, or the result has no NaN where it is zero",
    exact=True,
    example=(lambda x: selection.strong_zero(np.ones(3), x), np.array([1.0, np.nan, np.inf])),
)
def strong_zero(node: Node, new: NodeBuilder) -> Node | None:
    """The second operand."""
    t, g = node.inputs
    context = new.context
    if context.spec(g) != context.spec(node):
        return None
    if (
        context.has(t, "nonzero", "number")
        or context.has(g, "number")
        or _vanishes(_without_sign(t), g, context, _MAX_DEPTH)
    ):
        return g
    return None


def _without_sign(t: Node) -> Node:
    """The value that has the zeros of another one."""
    while t.op.name in ("negative", "positive", "absolute"):
        t = t.inputs[0]
    return t


def _vanishes(t: Node, g: Node, context: Any, depth: int) -> bool:
    """Whether g is zero where t is."""
    if g is t:
        return True
    name = g.op.name
    if depth == 0 or not g.args:
        return name in ("full", "constant") and context.number(g) == 0
    if name in ("negative", "positive", "absolute"):
        return _vanishes(t, g.args[0], context, depth - 1)
    if name in ("add", "subtract", "where", "strong_zero"):
        terms = g.args[1:] if name in ("where", "strong_zero") else g.args
        return all(_vanishes(t, a, context, depth - 1) for a in terms)
    if name == "multiply":
        a, b = g.args
        return (context.has(b, "finite") and _vanishes(t, a, context, depth - 1)) or (
            context.has(a, "finite") and _vanishes(t, b, context, depth - 1)
        )
    if name == "divide":
        a, b = g.args
        return context.has(b, "nonzero", "number") and _vanishes(t, a, context, depth - 1)
    return False


@rule(
    "strong zero twice",
    "strong_zero",
    "strong_zero",
    reason="the guard is idempotent",
    exact=True,
    example=(lambda x: selection.strong_zero(x, selection.strong_zero(x, 1.0 / x)), np.zeros(2)),
)
def strong_zero_twice(node: Node, new: NodeBuilder) -> Node | None:
    """The inner guard, if it has the same condition."""
    t, g = node.args
    has_same_condition = (
        g.op is node.op and g.args[0] is t and new.context.spec(g) == new.context.spec(node)
    )
    return g if has_same_condition else None


@rule(
    "strong zeros but one",
    "strong_zero",
    "multiply",
    reason="one product instead of many; in derivatives the sign of a zero has no meaning",
    example=(lambda x: selection.strong_zero(np.eye(3)[1], np.eye(3)[1] * x), np.float64(2.0)),
)
def strong_zeros_but_one(node: Node, new: NodeBuilder) -> Node | None:
    """The element that may not be zero, among zeros."""
    t, g = node.args
    context = new.context
    spec = context.spec(node)
    if len(spec.shape) != 1 or g.op.name != "multiply" or context.spec(t) != spec:
        return None
    factor = next((b for a, b in (g.inputs, g.inputs[::-1]) if _is_same(a, t)), None)
    if factor is None or context.spec(factor) != Spec((), spec.dtype):
        return None
    if t.op is scatter and len(t.args) == 1 and type(t.params["index"]) is int:
        element, index = t.args[0], t.params["index"]
        product = new("strong_zero", element, new("multiply", element, factor))
        return new("scatter", product, index=index, shape=spec.shape)
    found = _unit_vector(t)
    return None if found is None else new("scatter", factor, index=found, shape=spec.shape)


def _is_same(a: Node, b: Node) -> bool:
    """Whether two nodes are the same, or the same constant."""
    is_constant = a.op is b.op is CONSTANT and a.spec == b.spec
    return a is b or (is_constant and np.array_equal(a.value, b.value))


def _unit_vector(t: Node) -> int | None:
    """The position of the one in a short vector of zeros."""
    if t.op is not CONSTANT or not isinstance(t, ConstantLeaf) or t.spec.shape[0] > _MAX_LENGTH:
        return None
    (places,) = np.nonzero(t.value)
    return int(places[0]) if len(places) == 1 and t.value[places[0]] == 1 else None


@rule(
    "strong contraction",
    "strong_einsum",
    reason="no zero is multiplied by an infinity",
    exact=True,
    example=(
        lambda x: matmul.strong_einsum(x, np.eye(2), subscripts=("ab", "bc", "ac")),
        np.ones((2, 2)),
    ),
)
def strong_contraction(node: Node, new: NodeBuilder) -> Node | None:
    """The plain contraction."""
    t, *others = node.args
    context = new.context
    if context.has(t, "nonzero") or all(context.has(a, "finite") for a in others):
        return new("einsum", *node.args, **node.params)
    return None


def _with_zeros(t: Any) -> Any:
    with derivation(1):
        return t + 0.0


@rule(
    "added to zeros",
    "add",
    reason="no cotangent is added; in derivatives the sign of a zero has no meaning",
    example=(_with_zeros, np.ones(3)),
)
def added_to_zeros(node: Node, new: NodeBuilder) -> Node | None:
    """The other term of a sum in a derivative."""
    if node.level == 0:
        return None
    context = new.context
    for term, zeros in (node.args, node.args[::-1]):
        if context.spec(term) == context.spec(node) and context.number(zeros) == 0:
            return term  # type: ignore[no-any-return]
    return None


RULES = (strong_zero, strong_zero_twice, strong_zeros_but_one, strong_contraction, added_to_zeros)
