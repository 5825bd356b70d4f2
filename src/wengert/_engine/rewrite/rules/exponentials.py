"""Exponentials in derivatives: products in which one factor overflows and the other underflows.

The derivative of log(1 + exp(x)) is t / (1 + exp(x)) * exp(x), which is 0 * inf for large x even if
the function itself has been stabilized.  These rules are for gradients that are simplified after
differentiation (simplifying the function before is better, see rules/stabilize.py).  Each replaces
a product by one with bounded factors.  Where the product was 0 * inf, the result is its limit
instead of NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.graph_fingerprint import is_stopped
from wengert._engine.core.node import Node
from wengert._engine.ops.casts import sum_to
from wengert._engine.ops.elementwise import selection
from wengert._engine.ops.elementwise.exponential import sigmoid

from ..rule import AnyRule, Match, NodeBuilder, Rule, rule

_X = np.array([[-1.5, -0.25, 0.5], [2.0, -3.0, 0.125]])
_T = np.array([[0.75, 1.5, -2.0], [1.0, 0.5, -0.5]])

PRODUCTS = (
    Rule(
        "t / (1 + exp(x))",
        lambda t, x: t / (1 + np.exp(x)),
        lambda t, x: t * sigmoid(-x),
        reason="the factor is bounded",
        example=(_T, _X),
    ),
    Rule(
        "sigmoid(x) exp(-x)",
        lambda x: sigmoid(x) * np.exp(-x),
        lambda x: sigmoid(-x),
        reason="0 * inf for x < -745",
        example=(_X,),
    ),
    Rule(
        "sigmoid(-x) exp(x)",
        lambda x: sigmoid(-x) * np.exp(x),
        lambda x: sigmoid(x),
        reason="0 * inf for x > 745",
        example=(_X,),
    ),
    Rule(
        "((t sigmoid(x)) sigmoid(x)) exp(-x)",
        lambda t, x: ((t * sigmoid(x)) * sigmoid(x)) * np.exp(-x),
        lambda t, x: t * (sigmoid(x) * sigmoid(-x)),
        reason="0 * inf for x < -745",
        example=(_T, _X),
    ),
    Rule(
        "((t sigmoid(-x)) sigmoid(-x)) exp(x)",
        lambda t, x: ((t * sigmoid(-x)) * sigmoid(-x)) * np.exp(x),
        lambda t, x: t * (sigmoid(x) * sigmoid(-x)),
        reason="0 * inf for x > 745",
        example=(_T, _X),
    ),
    Rule(
        "(t sigmoid(x)) exp(-x)",
        lambda t, x: (t * sigmoid(x)) * np.exp(-x),
        lambda t, x: t * sigmoid(-x),
        reason="0 * inf for x < -745",
        example=(_T, _X),
    ),
    Rule(
        "(t sigmoid(-x)) exp(x)",
        lambda t, x: (t * sigmoid(-x)) * np.exp(x),
        lambda t, x: t * sigmoid(x),
        reason="0 * inf for x > 745",
        example=(_T, _X),
    ),
    Rule(
        "square(sigmoid(x)) exp(-x)",
        lambda x: np.square(sigmoid(x)) * np.exp(-x),
        lambda x: sigmoid(x) * sigmoid(-x),
        reason="0 * inf for x < -745",
        example=(_X,),
    ),
    Rule(
        "square(sigmoid(-x)) exp(x)",
        lambda x: np.square(sigmoid(-x)) * np.exp(x),
        lambda x: sigmoid(x) * sigmoid(-x),
        reason="0 * inf for x > 745",
        example=(_X,),
    ),
    Rule(
        "(t square(sigmoid(x))) exp(-x)",
        lambda t, x: (t * np.square(sigmoid(x))) * np.exp(-x),
        lambda t, x: t * (sigmoid(x) * sigmoid(-x)),
        reason="0 * inf for x < -745",
        example=(_T, _X),
    ),
    Rule(
        "(t square(sigmoid(-x))) exp(x)",
        lambda t, x: (t * np.square(sigmoid(-x))) * np.exp(x),
        lambda t, x: t * (sigmoid(x) * sigmoid(-x)),
        reason="0 * inf for x > 745",
        example=(_T, _X),
    ),
    Rule(
        "(t / sigmoid(x)) sigmoid(x)",
        lambda t, x: (t / sigmoid(x)) * sigmoid(x),
        lambda t, x: t,
        reason="0 / 0 for x < -745",
        example=(_T, _X),
    ),
    Rule(
        "(t / sigmoid(x)) square(sigmoid(x))",
        lambda t, x: (t / sigmoid(x)) * np.square(sigmoid(x)),
        lambda t, x: t * sigmoid(x),
        reason="0 / 0 for x < -745",
        example=(_T, _X),
    ),
    Rule(
        "(t / sigmoid(x)) (sigmoid(x) y)",
        lambda t, x, y: (t / sigmoid(x)) * (sigmoid(x) * y),
        lambda t, x, y: t * y,
        reason="0 / 0 for x < -745",
        example=(_T, _X, _T),
    ),
    Rule(
        "(t / exp(x)) exp(x)",
        lambda t, x: (t / np.exp(x)) * np.exp(x),
        lambda t, x: t,
        reason="0 * inf for x > 709, inf * 0 for x < -745",
        example=(_T, _X),
    ),
)


# ---- quotients by sums of exponentials ---------------------------------------------------------


def _quotient(e: Any, t: Any) -> Any:
    return t / np.sum(e, axis=1, keepdims=True) * e


_BROADCASTS = ("reshape", "expand_dims", "broadcast_to")


@rule(
    "(t / sum(exp(x))) exp(x)",
    "multiply",
    "exp",
    reason="0 * inf if a sum of exponentials overflows",
    example=(lambda x, cotangent: _quotient(np.exp(x), cotangent), _X, _T[:, :1]),
)
def softmax_quotient(node: Node, new: NodeBuilder) -> Node | None:
    """t times the softmax of x, computed from shifted exponentials."""
    for quotient, e in (node.args, node.args[::-1]):
        if e.op.name != "exp" or new.context.spec(e).dtype.kind != "f":
            continue
        if any(type(n) is int and n == 0 for n in new.context.spec(e).shape):
            continue  # an empty array has no maximum
        broadcasts = []
        while quotient.op.name in _BROADCASTS:
            broadcasts.append(quotient)
            quotient = quotient.args[0]
        if quotient.op.name != "divide" or quotient.args[1].op.name != "sum":
            continue
        cotangent, total = quotient.args
        if total.args[0] is not e or any(map(is_stopped, (quotient, total, e, *broadcasts))):
            continue
        if not _keeps_summed_axes(total, broadcasts, e, new):
            continue
        cotangent = new("broadcast_to", cotangent, shape=new.context.spec(quotient).shape)
        for step in reversed(broadcasts):
            cotangent = new(step.op, cotangent, **step.params)
        return new("multiply", cotangent, _shifted_softmax(e.args[0], total.params["axis"], new))
    return None


def _keeps_summed_axes(total: Node, broadcasts: list[Node], e: Node, new: NodeBuilder) -> bool:
    """Whether the sum is broadcast along the axes that it sums over (kept, or inserted again)."""
    shape = new.context.spec(e).shape
    axis = total.params.get("axis")
    summed = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    keepdims_shape = tuple(
        1 if i in {a % len(shape) for a in summed} else n for i, n in enumerate(shape)
    )
    shapes = [new.context.spec(n).shape for n in (total, *broadcasts)]
    return keepdims_shape in shapes or (axis is None and () in shapes)


def _shifted_softmax(x: Node, axis: int | None, new: NodeBuilder) -> Node:
    maximum = new("stop_gradient", new("max", x, axis=axis, keepdims=True))
    e = new("exp", new("subtract", x, maximum))
    return new("divide", e, new("sum", e, axis=axis, dtype=None, keepdims=True))


@rule(
    "sum of quotients",
    "sum_to",
    ("divide", "multiply"),
    reason="one division, after the sum",
    example=(lambda x, t: sum_to(x * (t / np.sum(t, 1, keepdims=True)), shape=(2, 1)), _X, _X),
)
def sum_of_quotients(node: Node, new: NodeBuilder) -> Node | None:
    """The quotient of the sum, if the divisor is constant along the summed axes."""
    inner, shape = node.args[0], new.context.spec(node).shape
    factor, quotient = None, inner
    if inner.op.name == "multiply":
        for a, b in (inner.args, inner.args[::-1]):
            if b.op.name == "divide" and not is_stopped(b):
                factor, quotient = a, b
    if quotient.op.name != "divide":
        return None
    numerator, divisor = quotient.args
    if new.context.spec(divisor).shape != shape or divisor.op.name != "sum":
        return None
    if new.context.spec(node).dtype.kind != "f":
        return None
    if factor is not None:
        numerator = new("multiply", factor, numerator)
    if new.context.spec(numerator).shape != new.context.spec(inner).shape:
        return None
    return new("divide", new("sum_to", numerator, shape=shape), divisor)


# ---- strong zeros between the factors -----------------------------------------------------------


def _is_shallow(match: Match) -> bool:
    g = match["g"]
    return bool(g.op.name != "strong_zero" or g.args[1].op.name != "strong_zero")


_S, _G = np.array([0.0, 2.0, 0.0]), np.array([np.nan, 3.0, 0.0])
GUARDED = (
    # Only for a product with an exponential, and not for nested guards: all guards of a long chain
    # would be moved to its end.
    Rule(
        "strong_zero(s, g) exp(x)",
        lambda s, g, x: selection.strong_zero(s, g) * np.exp(x),
        lambda s, g, x: selection.strong_zero(s, g * np.exp(x)),
        reason="the backward pass is linear: a zero cotangent gives zero contributions",
        condition=_is_shallow,
        example=(_S, _G, _S),
    ),
    Rule(
        "strong_zero(s, t / sigmoid(x)) sigmoid(x)",
        lambda s, t, x: selection.strong_zero(s, t / sigmoid(x)) * sigmoid(x),
        lambda s, t, x: selection.strong_zero(s, t),
        reason="0 / 0 for x < -745",
        example=(_T, _T, _X),
    ),
    Rule(
        "strong_zero(s, t / sigmoid(x)) square(sigmoid(x))",
        lambda s, t, x: selection.strong_zero(s, t / sigmoid(x)) * np.square(sigmoid(x)),
        lambda s, t, x: selection.strong_zero(s, t * sigmoid(x)),
        reason="0 / 0 for x < -745",
        example=(_T, _T, _X),
    ),
    Rule(
        "strong_zero(s, t / sigmoid(x)) (sigmoid(x) y)",
        lambda s, t, x, y: selection.strong_zero(s, t / sigmoid(x)) * (sigmoid(x) * y),
        lambda s, t, x, y: selection.strong_zero(s, t * y),
        reason="0 / 0 for x < -745",
        example=(_T, _T, _X, _T),
    ),
    Rule(
        "strong_zero(s, -g)",
        lambda s, g: selection.strong_zero(s, -g),
        lambda s, g: -selection.strong_zero(s, g),
        reason="signs that are moved outwards cancel; the sign of a zero may change",
        example=(_S, _G),
    ),
)

# The gradient of the binary cross entropy of a sigmoid, y log(s) + (1 - y) log(1 - s).
LOGISTIC = (
    Rule(
        "(t / sigmoid(-x) - w / sigmoid(x)) sigmoid(x) sigmoid(-x)",
        lambda s, t, r, w, x: (
            (selection.strong_zero(s, t / sigmoid(-x)) - selection.strong_zero(r, w / sigmoid(x)))
            * (sigmoid(x) * sigmoid(-x))
        ),
        lambda s, t, r, w, x: (
            selection.strong_zero(s, t * sigmoid(x)) - selection.strong_zero(r, w * sigmoid(-x))
        ),
        reason="0 / 0 for large and for small x",
        example=(_T, _T, _T, _T, _X),
    ),
    Rule(
        "(t / sigmoid(x) - w / sigmoid(-x)) sigmoid(x) sigmoid(-x)",
        lambda s, t, r, w, x: (
            (selection.strong_zero(s, t / sigmoid(x)) - selection.strong_zero(r, w / sigmoid(-x)))
            * (sigmoid(x) * sigmoid(-x))
        ),
        lambda s, t, r, w, x: (
            selection.strong_zero(s, t * sigmoid(-x)) - selection.strong_zero(r, w * sigmoid(x))
        ),
        reason="0 / 0 for large and for small x",
        example=(_T, _T, _T, _T, _X),
    ),
)

RULES: tuple[AnyRule, ...] = (*LOGISTIC, *GUARDED, *PRODUCTS, softmax_quotient, sum_of_quotients)
