"""Exponential and logarithm: DLMF 4.2, derivatives 4.7; sigmoid and its integral.

The partials are accurate to relative precision in the tails: sigmoid(-x) rather than
1 - sigmoid(x), exp(x) rather than expm1(x) + 1, and so on.  Functions that could be compositions of
others are operations because the composition would overflow or lose accuracy.

Activation functions: x times a smooth step function of x, and softsign.

    silu            x sigmoid(x)
    gelu            x Phi(x), Phi the normal distribution function
    mish            x tanh(log(1 + e**x))
    softsign        x / (1 + |x|)

Each is a primitive because the composition is NaN at an infinity (-inf times 0) or loses accuracy
in a tail.  For large |x| the step is exactly 0 or 1; x is clamped (`_EXP_UNDERFLOWS`) before it is
multiplied by a step of 0, so that the product and its derivative are 0.

Sources: D. Hendrycks and K. Gimpel, "Gaussian error linear units", arXiv:1606.08415; D. Misra,
"Mish", arXiv:1908.08681.
"""

from __future__ import annotations

from math import log as log_of_number
from math import pi, sqrt
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

from .error_function import bell, erf_near_zero, erfc, scaled_erfc

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


_EXP_UNDERFLOWS = 2000.0  # exp(-2000) is 0, in float64 too
_ROOT_HALF = sqrt(0.5)


def _clamped(x: Array) -> Any:
    """x clamped to finite values."""
    return lookup("clip")(x, -_EXP_UNDERFLOWS, _EXP_UNDERFLOWS)


# ---- the logistic step -------------------------------------------------------------------------


@facts(zero_slope=SATURATES)
@elementwise(oracle="x / (1 + exp(-x))")
def silu(s: ScalarLanguage, x: Scalar) -> Any:
    """x sigmoid(x), also called swish; 0 at -inf."""
    half = s.exp(-0.5 * s.abs(x))  # exp(-|x|) may underflow before its product with x does
    e = half * half
    below = s.min(s.max(x, -_EXP_UNDERFLOWS), 0) * half * (half / (1.0 + e))
    return s.where(s.less(x, 0), below, x / (1.0 + e))


silu.partials(lambda t, out, x: t * (sigmoid(x) * (1.0 + _clamped(x) * sigmoid(-x))))


# ---- the normal distribution function ----------------------------------------------------------


@facts(zero_slope=SATURATES, cost=call(95.0), onnx="Gelu")
@elementwise(oracle="x * ncdf(x)")
def gelu(s: ScalarLanguage, x: Scalar) -> Any:
    """x Phi(x), accurate in the lower tail; 0 at -inf."""
    a = s.abs(x)
    is_near = s.less(a, 0.7)
    near = x * (0.5 + 0.5 * erf_near_zero(_ROOT_HALF * s.where(is_near, x, 0.0)))
    far = s.where(is_near, 0.75, s.min(a, 40.0))
    # exp(-far**2 / 2), split so that the rounding error of the square does not affect the result.
    z = s.rint(far * 64.0) * (1.0 / 64.0)
    half = s.exp(-0.25 * z * z)
    tail = 0.5 * far * scaled_erfc(_ROOT_HALF * far)
    tail = tail * half * s.exp(0.5 * ((z - far) * (z + far))) * half
    return s.where(is_near, near, s.where(s.less(x, 0.0), -tail, x - tail))


def _gelu_slope(x: Array) -> Any:
    """Phi(x) + x phi(x)."""
    clamped = _clamped(x)
    z = _ROOT_HALF * clamped
    return 0.5 * erfc(-z) + clamped * (bell(z) * (1.0 / sqrt(2.0 * pi)))


gelu.partials(lambda t, out, x: t * _gelu_slope(x))

# ---- the step of mish --------------------------------------------------------------------------
# With n = e**-|x|, tanh(log(1 + e**x)) is (1 + 2 n) / (1 + 2 n + 2 n**2) for x >= 0 and
# n (n + 2) / (n (n + 2) + 2) below: nothing overflows or cancels.


@facts(zero_slope=SATURATES, onnx="Mish")
@elementwise(oracle="x * tanh(log1p(exp(x)))")
def mish(s: ScalarLanguage, x: Scalar) -> Any:
    """x tanh(softplus(x)); 0 at -inf."""
    half = s.exp(-0.5 * s.abs(x))
    n = half * half
    below = n + 2.0
    above = 1.0 + 2.0 * n
    far = s.min(s.max(x, -_EXP_UNDERFLOWS), 0) * half * (half * (below / (n * below + 2.0)))
    return s.where(s.less(x, 0), far, x * (above / (above + 2.0 * n * n)))


def _mish_slope(x: Array) -> Any:
    """w + x sigmoid(x) (1 - w**2), where w = tanh(softplus(x))."""
    clamped = _clamped(x)
    p, q = sigmoid(clamped), sigmoid(-clamped)
    # In terms of p and q = 1 - p: w = (1 - q**2) / (1 + q**2), and 1 - q is p.
    denominator = 1.0 + q * q
    return p * (1.0 + q) / denominator + clamped * p * (2.0 * q / denominator) ** 2


mish.partials(lambda t, out, x: t * _mish_slope(x))


# ---- the smooth sign ---------------------------------------------------------------------------


@facts(onnx="Softsign")
@elementwise(oracle="x / (1 + abs(x))")
def softsign(s: ScalarLanguage, x: Scalar) -> Any:
    """x / (1 + |x|), in [-1, 1]; -1 and 1 at the infinities."""
    a = s.abs(x)
    return s.where(s.isinf(x), s.sign(x), x / (1.0 + s.where(s.isinf(x), 0.0, a)))


softsign.partials(lambda t, out, x: t / (1.0 + np.absolute(x)) / (1.0 + np.absolute(x)))
