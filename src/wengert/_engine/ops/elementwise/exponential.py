"""Exponential and logarithm: DLMF 4.2, derivatives 4.7; sigmoid and its integral.

The partials are accurate to relative precision in the tails: sigmoid(-x) rather than
1 - sigmoid(x), exp(x) rather than expm1(x) + 1, and so on.  Functions that could be compositions of
others are operations because the composition would overflow or lose accuracy.
"""

from __future__ import annotations

from math import log as log_of_number
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import possibly, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import (
    GUARD,
    NONNEGATIVE,
    SATURATES,
    UNDERFLOW,
    Remedy,
    ValueRange,
    call,
    facts,
)
from wengert._engine.kinds.elementwise import POSITIVE, elementwise

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Scalar, ScalarLanguage

LN2 = log_of_number(2.0)
LN10 = log_of_number(10.0)


@facts(
    cost=call(23.0),
    remedy=Remedy(
        overflow="Subtract the largest operand first, or use np.logaddexp, logsumexp or softmax"
    ),
    onnx="Exp",
    zero_slope=UNDERFLOW,
    range=NONNEGATIVE,
)
@elementwise(ufunc=np.exp, oracle="exp(x)", complex_ok=True)
def exp(s: ScalarLanguage, x: Scalar) -> Any:
    """e**x; inf above 709.78 in float64."""
    return s.exp(x)


exp.partials(lambda t, out, x: t * out)


@facts(
    cost=call(23.0),
    remedy=Remedy(overflow="Subtract the largest operand first, or use np.logaddexp2"),
    zero_slope=UNDERFLOW,
    range=NONNEGATIVE,
)
@elementwise(ufunc=np.exp2, oracle="2 ** x", complex_ok=True)
def exp2(s: ScalarLanguage, x: Scalar) -> Any:
    """2**x."""
    return s.exp2(x)


exp2.partials(lambda t, out, x: t * (out * LN2))


@facts(
    cost=call(31.0),
    remedy=Remedy(overflow="Keep the operand below 700, or work with logarithms"),
    zero_slope=UNDERFLOW,
)
@elementwise(ufunc=np.expm1, oracle="expm1(x)", complex_ok=True)
def expm1(s: ScalarLanguage, x: Scalar) -> Any:
    """e**x - 1, accurate also for small x."""
    return s.expm1(x)


expm1.partials(lambda t, out, x: t * exp(x))


@facts(
    cost=call(31.0),
    remedy=Remedy(
        singular=f"{GUARD}; or np.log(x + eps); near 1 use np.log1p, for sums of exponentials "
        "np.logaddexp"
    ),
    onnx="Log",
)
@elementwise(ufunc=np.log, oracle="log(x)", domain=[POSITIVE], complex_ok=True, singular=True)
def log(s: ScalarLanguage, x: Scalar) -> Any:
    """The natural logarithm."""
    return s.log(x)


log.partials(lambda t, out, x: t / x)


@facts(cost=call(37.0), remedy=Remedy(singular=GUARD))
@elementwise(
    ufunc=np.log2, oracle="log(x) / log(mpf(2))", domain=[POSITIVE], complex_ok=True, singular=True
)
def log2(s: ScalarLanguage, x: Scalar) -> Any:
    """The logarithm to base 2."""
    return s.log2(x)


log2.partials(lambda t, out, x: t / (x * LN2))


@facts(cost=call(37.0), remedy=Remedy(singular=GUARD))
@elementwise(ufunc=np.log10, oracle="log10(x)", domain=[POSITIVE], complex_ok=True, singular=True)
def log10(s: ScalarLanguage, x: Scalar) -> Any:
    """The logarithm to base 10."""
    return s.log10(x)


log10.partials(lambda t, out, x: t / (x * LN10))


@facts(cost=call(37.0), remedy=Remedy(singular=GUARD))
@elementwise(
    ufunc=np.log1p, oracle="log1p(x)", domain=[(-1.0, float("inf"))], complex_ok=True, singular=True
)
def log1p(s: ScalarLanguage, x: Scalar) -> Any:
    """log(1 + x) for x > -1; accurate even where 1 + x rounds to 1."""
    return s.log1p(x)


log1p.partials(lambda t, out, x: t / (1.0 + x))


# ---- the smooth step ---------------------------------------------------------------------------


@facts(
    cost=call(31.0),
    onnx="Sigmoid",
    zero_slope=SATURATES,
    range=ValueRange(always=frozenset({"nonnegative"}), of_numbers=frozenset({"finite"})),
)
@elementwise(oracle="1 / (1 + exp(-x))")
def sigmoid(s: ScalarLanguage, x: Scalar) -> Any:
    """1 / (1 + exp(-x)), accurate in both tails: e = exp(-|x|) never overflows."""
    e = s.exp(-s.abs(x))
    return s.where(s.less(x, 0), e, 1.0) / (1.0 + e)


sigmoid.partials(lambda t, out, x: t * (out * sigmoid(-x)))


@facts(cost=call(60.0), onnx="Softplus", zero_slope=SATURATES, range=NONNEGATIVE)
@elementwise(oracle="log1p(exp(x))")
def softplus(s: ScalarLanguage, x: Scalar) -> Any:
    """log(1 + exp(x)), the smooth relu; no overflow, and accurate for very negative x."""
    return s.max(x, 0) + s.log1p(s.exp(-s.abs(x)))


softplus.partials(lambda t, out, x: t * sigmoid(x))


@facts(cost=call(), zero_slope=SATURATES)
@elementwise(oracle="-log1p(exp(-x))")
def log_sigmoid(s: ScalarLanguage, x: Scalar) -> Any:
    """log(sigmoid(x)) = -softplus(-x)."""
    return s.min(x, 0) - s.log1p(s.exp(-s.abs(x)))


log_sigmoid.partials(lambda t, out, x: t * sigmoid(-x))


# ---- sums of exponentials ----------------------------------------------------------------------
# The share of x in exp(x) + exp(y) is sigmoid(x - y), which is more accurate than exp(x - out):
# whose exponent has the rounding error of a large out.


def _log_ratio(x: Array, y: Operand) -> Any:
    """x - y; but for equal infinities 0 for inf (equal shares) and -inf for -inf (an empty sum)."""
    a, b = value_of(x), value_of(y)
    same = np.logical_and(np.equal(a, b), np.isinf(a))
    if not possibly(same):
        return x - y
    where = lookup("where")
    difference = where(same, 0.0, x) - where(same, 0.0, y)
    return where(same & np.less(a, 0), -np.inf, difference)


@facts(cost=call(95.0), zero_slope=SATURATES)
@elementwise(ufunc=np.logaddexp, commutative=True, oracle="log(exp(x) + exp(y))")
def logaddexp(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """log(exp(x) + exp(y)) without overflow."""
    smooth = s.max(x, y) + s.log1p(s.exp(-s.abs(x - y)))
    return s.where(s.equal(x, y), x + LN2, smooth)


logaddexp.partials(
    lambda t, out, x, y: t * sigmoid(_log_ratio(x, y)),
    lambda t, out, x, y: t * sigmoid(_log_ratio(y, x)),
)


@facts(cost=call(95.0), zero_slope=SATURATES)
@elementwise(ufunc=np.logaddexp2, commutative=True, oracle="log(2**x + 2**y) / log(mpf(2))")
def logaddexp2(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """log2(2**x + 2**y) without overflow."""
    smooth = s.max(x, y) + s.log1p(s.exp2(-s.abs(x - y))) * (1.0 / LN2)
    return s.where(s.equal(x, y), x + 1.0, smooth)


logaddexp2.partials(
    lambda t, out, x, y: t * sigmoid(_log_ratio(x, y) * LN2),
    lambda t, out, x, y: t * sigmoid(_log_ratio(y, x) * LN2),
)
