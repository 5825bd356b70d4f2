"""Numerical stabilization: the same function without overflow and cancellation.

Each replacement is at least as accurate as the original for all operands, and accurate where the
original overflows or cancels; the tests compare both with mpmath.  NaN stays NaN.

    sums of exponentials    log(sum(exp(x))), softmax and its logarithm
    near zero               log(1 + x), exp(x) - 1, log(exp(x))
    sigmoid                 1 / (1 + exp(-x)), its logarithm, log(1 + exp(x))
    roots and moments       sqrt(x**2), mean(x**2) - mean(x)**2

These rules are more effective before differentiation than after it: the derivative of
log(sum(exp(x))) is a quotient of overflowed numbers, that of logsumexp(x) is not.  The gradient of
the cross entropy of a softmax or sigmoid becomes p - y (docs/rewriting.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.grad import stop_gradient
from wengert._engine.core.graph_fingerprint import is_stopped
from wengert._engine.core.node import Node
from wengert._engine.ops.elementwise.exponential import log_sigmoid, sigmoid, softplus
from wengert._engine.ops.reductions import logsumexp

from ..rule import AnyRule, Match, NodeBuilder, Rule, rule

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

_X = np.array([[-1.5, -0.25, 0.5], [2.0, -3.0, 0.125]])
_Y = np.array([[0.75, 1.5, -2.0], [1.0, 0.5, -0.5]])
_P = np.array([[0.2, 0.5, 0.3], [0.1, 0.6, 0.3]])

# ---- sums of exponentials ----------------------------------------------------------------------


def _is_shifted(match: Match) -> bool:
    """Whether the maximum has already been subtracted."""
    x = match["x"]
    if x.op.name != "subtract":
        return False
    shift = x.args[1]
    while shift.op.name in ("stop_gradient", "reshape", "broadcast_to"):
        shift = shift.args[0]
    return shift.op.name in ("max", "logsumexp")


def _shifted(x: Array, axis: int) -> Any:
    # The softmax does not depend on the shift, so the maximum needs no derivative.
    return np.exp(x - stop_gradient(np.max(x, axis=axis, keepdims=True)))


def _shifted_softmax(x: Array, *, axis: int) -> Any:
    e = _shifted(x, axis)
    return e / np.sum(e, axis=axis, keepdims=True)


SUMS = (
    Rule(
        "softmax",
        lambda x, *, axis: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True),
        _shifted_softmax,
        reason="exp(x) overflows for large x; the quotient does not depend on a shift of all x",
        condition=lambda m: not _is_shifted(m),
        example=((_X,), {"axis": 1}),
    ),
    Rule(
        "log(softmax)",
        lambda x, *, axis: np.log(np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)),
        lambda x, *, axis: x - logsumexp(x, axis=axis, keepdims=True),
        reason="a small probability underflows to 0, and log(0) is -inf",
        example=((_X,), {"axis": 1}),
    ),
    Rule(
        "log(sum(exp(x)))",
        lambda x, *, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
        lambda x, *, axis, keepdims: logsumexp(x, axis=axis, keepdims=keepdims),
        reason="exp(x) overflows for x > 709 and underflows for x < -745",
        example=((_X,), {"axis": 0, "keepdims": False}),
    ),
    Rule(
        "log(exp(x) + exp(y))",
        lambda x, y: np.log(np.exp(x) + np.exp(y)),
        lambda x, y: np.logaddexp(x, y),
        reason="exp(x) overflows for x > 709 and underflows for x < -745",
        example=(_X, _Y),
    ),
)


@rule(
    "log(softmax), one operation",
    "log",
    "softmax",
    reason="a small probability underflows to 0, and log(0) is -inf",
    example=(),
)
def log_of_softmax(node: Node, new: NodeBuilder) -> Node | None:
    """The logarithm of the operation softmax (wengert.nn)."""
    inner = node.args[0]
    return new("log_softmax", inner.args[0], **inner.params)


# ---- near zero ---------------------------------------------------------------------------------

NEAR_ZERO = (
    Rule(
        "log(exp(x))",
        lambda x: np.log(np.exp(x)),
        lambda x: x,
        reason="exp(x) overflows for x > 709 and underflows for x < -745",
        example=(_X,),
    ),
    Rule(
        "log(1 + x)",
        lambda x: np.log(1 + x),
        lambda x: np.log1p(x),
        reason="1 + x loses the digits of a small x",
        example=(_P,),
    ),
    Rule(
        "log(1 - x)",
        lambda x: np.log(1 - x),
        lambda x: np.log1p(-x),
        reason="1 - x loses the digits of a small x",
        example=(_P,),
    ),
    Rule(
        "exp(x) - 1",
        lambda x: np.exp(x) - 1,
        lambda x: np.expm1(x),
        reason="exp(x) loses the digits of a small x",
        example=(_X,),
    ),
    Rule(
        "1 - exp(x)",
        lambda x: 1 - np.exp(x),
        lambda x: -np.expm1(x),
        reason="exp(x) loses the digits of a small x",
        example=(_X,),
    ),
    Rule(
        "log1p(expm1(x))",
        lambda x: np.log1p(np.expm1(x)),
        lambda x: x,
        reason="avoids two roundings and overflow",
        example=(_X,),
    ),
)

# ---- sigmoid -----------------------------------------------------------------------------------

SIGMOIDS = (
    Rule(
        "1 / (1 + exp(x))",
        lambda x: 1 / (1 + np.exp(x)),
        lambda x: sigmoid(-x),
        reason="exp(x) overflows, so that a small result loses its digits",
        example=(_X,),
    ),
    Rule(
        "exp(x) / (1 + exp(x))",
        lambda x: np.exp(x) / (1 + np.exp(x)),
        lambda x: sigmoid(x),
        reason="inf / inf is NaN for x > 709",
        example=(_X,),
    ),
    Rule(
        "1 - sigmoid(x)",
        lambda x: 1 - sigmoid(x),
        lambda x: sigmoid(-x),
        reason="the difference of two numbers near 1 cancels",
        example=(_X,),
    ),
    Rule(
        "log(sigmoid(x))",
        lambda x: np.log(sigmoid(x)),
        lambda x: log_sigmoid(x),
        reason="sigmoid(x) underflows to 0 for x < -745, and log(0) is -inf",
        example=(_X,),
    ),
    Rule(
        "log1p(-sigmoid(x))",
        lambda x: np.log1p(-sigmoid(x)),
        lambda x: log_sigmoid(-x),
        reason="sigmoid(x) is 1 for x > 37, and log1p(-1) is -inf",
        example=(_X,),
    ),
    Rule(
        "log1p(exp(x))",
        lambda x: np.log1p(np.exp(x)),
        lambda x: softplus(x),
        reason="exp(x) overflows for x > 709",
        example=(_X,),
    ),
    Rule(
        "log(where(c, 1, x))",
        lambda c, x: np.log(np.where(c, 1.0, x)),
        lambda c, x: np.where(c, 0.0, np.log(x)),
        reason="other rules apply to the logarithm of x; log(1) is 0",
        exact=True,
        dtypes={"c": bool},
        condition=lambda m: m["x"].op.name in ("sigmoid", "softmax"),
        example=(lambda x: np.log(np.where(x > 1.0, 1.0, sigmoid(x))), _X),
    ),
    Rule(
        "log1p(-where(c, 0, x))",
        lambda c, x: np.log1p(-np.where(c, 0.0, x)),
        lambda c, x: np.where(c, -0.0, np.log1p(-x)),
        reason="other rules apply to the logarithm of x; log1p(-0.0) is -0.0",
        exact=True,
        dtypes={"c": bool},
        condition=lambda m: m["x"].op.name == "sigmoid",
        example=(lambda x: np.log1p(-np.where(x > 1.0, 0.0, sigmoid(x))), _X),
    ),
)

# ---- roots and moments -------------------------------------------------------------------------

ROOTS = (
    Rule(
        "sqrt(square(x))",
        lambda x: np.sqrt(np.square(x)),
        lambda x: abs(x),
        reason="the square overflows, underflows and rounds; the derivative at 0 is 0 and not NaN",
        example=(_X,),
    ),
    Rule(
        "sqrt(x * x)",
        lambda x: np.sqrt(x * x),
        lambda x: abs(x),
        reason="the square overflows, underflows and rounds; the derivative at 0 is 0 and not NaN",
        example=(_X,),
    ),
    Rule(
        "sqrt(x ** 2)",
        lambda x: np.sqrt(x**2),
        lambda x: abs(x),
        reason="the square overflows, underflows and rounds; the derivative at 0 is 0 and not NaN",
        example=(_X,),
    ),
    *[
        Rule(
            f"mean({word}) - {other}",
            pattern,
            lambda x, *, axis, keepdims: np.var(x, axis=axis, keepdims=keepdims),
            reason="the difference of two large numbers cancels",
            example=((_X,), {"axis": 0, "keepdims": False}),
        )
        for word, other, pattern in (
            (
                "square(x)",
                "square(mean(x))",
                lambda x, *, axis, keepdims: (
                    np.mean(np.square(x), axis=axis, keepdims=keepdims)
                    - np.square(np.mean(x, axis=axis, keepdims=keepdims))
                ),
            ),
            (
                "x ** 2",
                "mean(x) ** 2",
                lambda x, *, axis, keepdims: (
                    np.mean(x**2, axis=axis, keepdims=keepdims)
                    - np.mean(x, axis=axis, keepdims=keepdims) ** 2
                ),
            ),
        )
    ],
)


@rule(
    "log(mean(exp(x)))",
    "log",
    "mean",
    reason="exp(x) overflows for x > 709 and underflows for x < -745",
    example=(lambda x: np.log(np.mean(np.exp(x), axis=0)), _X),
)
def log_of_mean(node: Node, new: NodeBuilder) -> Node | None:
    """logsumexp minus the logarithm of the number of elements."""
    inner = node.args[0]
    exponential = inner.args[0]
    if type(node) is Node and is_stopped(exponential):
        return None
    if exponential.op.name != "exp" or new.context.spec(node).dtype.kind != "f":
        return None
    x = exponential.args[0]
    operand_spec, mean_spec = new.context.spec(x), new.context.spec(inner)
    unknown = [n for n in (*operand_spec.shape, *mean_spec.shape) if type(n) is not int or n == 0]
    if unknown or operand_spec.dtype.kind != "f":
        return None
    n = math.prod(operand_spec.shape) // max(math.prod(mean_spec.shape), 1)
    return new("subtract", new("logsumexp", x, **inner.params), math.log(n))


RULES: tuple[AnyRule, ...] = (*SUMS, log_of_softmax, *NEAR_ZERO, *SIGMOIDS, *ROOTS, log_of_mean)
