"""Activation functions: x times a smooth step function of x, and softsign.

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

from math import pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import SATURATES, call, facts
from wengert._engine.kinds.elementwise import elementwise

from .error_function import bell, erf_near_zero, erfc, scaled_erfc
from .exponential import sigmoid

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Scalar, ScalarLanguage

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
