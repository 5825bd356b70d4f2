"""Functions with kinks, and selections: absolute value, maximum, minimum, where, clip, relu ...

Selection is not multiplication by a mask: the cotangent of an operand that is not selected is zero,
never 0 * inf = NaN.  Ties are split evenly (docs/conventions.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import dtype_of, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import ARITHMETIC, AT_ORIGIN, SATURATES, call, facts
from wengert._engine.kinds.elementwise import CONDITION, POSITIVE, REAL, elementwise

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Scalar, ScalarLanguage


@facts(cost=ARITHMETIC, onnx="Abs", zero_slope=AT_ORIGIN)
@elementwise(ufunc=np.absolute, oracle="abs(x)", kinks=[0.0], complex_ok=True)
def absolute(s: ScalarLanguage, x: Scalar) -> Any:
    """|x|; derivative sign(x), and 0 at x = 0."""
    return s.abs(x)


absolute.to_real(lambda out, x: direction(x))


def direction(x: Array) -> Any:
    """x / |x|, and 0 at 0."""
    if dtype_of(x).kind != "c":
        return lookup("sign")(x)
    size = absolute(x)
    at_zero = size == 0
    return where(at_zero, 0.0, x / where(at_zero, 1.0, size))


@facts(cost=ARITHMETIC, onnx="Abs", zero_slope=AT_ORIGIN)
@elementwise(ufunc=np.fabs, oracle="abs(x)", kinks=[0.0])
def fabs(s: ScalarLanguage, x: Scalar) -> Any:
    """|x| of real x, in floating point."""
    return s.abs(x)


fabs.partials(lambda t, out, x: t * lookup("sign")(x))


def _split_ties(a_selected: Array, b_selected: Array, t: Array) -> Any:
    """t where a is selected, 0 where b is, t / 2 elsewhere."""
    return where(a_selected, t, where(b_selected, 0.0, 0.5 * t))


def _if_larger(a: Operand, b: Operand, t: Array) -> Any:
    """t where a > b, t / 2 where neither is larger."""
    return _split_ties(np.greater(a, b), np.less(a, b), t)


@facts(cost=ARITHMETIC, onnx="Max")
@elementwise(ufunc=np.maximum, commutative=True, oracle="max(x, y)", bounded=True, masks=True)
def maximum(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The larger of x and y, NaN if either is; where x == y, half to each."""
    return s.max(x, y)


maximum.partials(
    lambda t, out, x, y: _if_larger(x, y, t),
    lambda t, out, x, y: _if_larger(y, x, t),
)


@facts(cost=ARITHMETIC, onnx="Min")
@elementwise(ufunc=np.minimum, commutative=True, oracle="min(x, y)", bounded=True, masks=True)
def minimum(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The smaller of x and y, NaN if either is; where x == y, half to each."""
    return s.min(x, y)


minimum.partials(
    lambda t, out, x, y: _if_larger(y, x, t),
    lambda t, out, x, y: _if_larger(x, y, t),
)


# fmax and fmin select the operand that is not NaN, as in C.


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.fmax, commutative=True, oracle="max(x, y)", bounded=True, masks=True)
def fmax(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The larger of x and y, ignoring NaN; where x == y, half to each."""
    return s.where(s.isnan(x), y, s.where(s.isnan(y), x, s.max(x, y)))


def _beats_nan(a: Operand, b: Operand) -> Any:
    """Whether b is NaN and a is not."""
    return np.logical_and(np.isnan(value_of(b)), ~np.isnan(value_of(a)))


def _ignoring_nan(
    is_selected: np.ufunc, is_rejected: np.ufunc, a: Array, b: Operand, t: Array
) -> Any:
    """The cotangent of `a` for a selection that ignores NaN."""
    return _split_ties(
        is_selected(a, b) | _beats_nan(a, b), is_rejected(a, b) | _beats_nan(b, a), t
    )


fmax.partials(
    lambda t, out, x, y: _ignoring_nan(np.greater, np.less, x, y, t),
    lambda t, out, x, y: _ignoring_nan(np.greater, np.less, y, x, t),
)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.fmin, commutative=True, oracle="min(x, y)", bounded=True, masks=True)
def fmin(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The smaller of x and y, ignoring NaN; where x == y, half to each."""
    return s.where(s.isnan(x), y, s.where(s.isnan(y), x, s.min(x, y)))


fmin.partials(
    lambda t, out, x, y: _ignoring_nan(np.less, np.greater, x, y, t),
    lambda t, out, x, y: _ignoring_nan(np.less, np.greater, y, x, t),
)


@facts(cost=ARITHMETIC, selectors=slice(0, 1))
@elementwise(
    oracle="x if condition else y",
    domain=[CONDITION, REAL, REAL],
    complex_ok=True,
    bounded=True,
    masks=True,
)
def where(s: ScalarLanguage, condition: Scalar, x: Scalar, y: Scalar) -> Any:
    """x where the condition holds, else y; no derivative with respect to the condition."""
    return s.where(condition, x, y)


where.partials(
    None,
    lambda t, out, condition, x, y: where(condition, t, 0.0),
    lambda t, out, condition, x, y: where(condition, 0.0, t),
)


@facts(cost=ARITHMETIC)
@elementwise(oracle="0 if t == 0 and isnan(g) else g", domain=[REAL, REAL], complex_ok=True)
def strong_zero(s: Any, t: Any, g: Any) -> Any:
    """g, but 0 where t is exactly 0 and g is NaN.

    Used in graphs where a partial can be singular: g is partial * t, and 0 * inf is 0 for elements
    that are not selected.
    """
    return s.where(s.logical_and(s.equal(t, 0), s.isnan(g)), 0 * t, g)


strong_zero.partials(
    None,
    lambda s, out, t, g: where(np.logical_and(value_of(t) == 0, np.isnan(value_of(g))), 0.0, s),
)


@elementwise(
    oracle="min(max(x, low), high)",
    domain=[(-2.0, 2.0), (-1.0, -0.5), (0.5, 1.0)],
    bounded=True,
    masks=True,
)
def clip(s: ScalarLanguage, x: Scalar, low: Scalar, high: Scalar) -> Any:
    """x, but not below low and not above high: min(max(x, low), high).

    The derivative is that of this composition, so ties are split evenly.
    """
    return s.min(s.max(x, low), high)


clip.run = np.clip  # its dtype differs from the composition's: Python numbers are weak


def _unless_above(t: Array, x: Operand, low: Operand, high: Operand) -> Any:
    """The cotangent where the upper bound is not active, half of it at ties, else 0."""
    y = np.maximum(value_of(x), value_of(low))
    upper = value_of(high)
    return _if_larger(upper, y, t)


clip.partials(
    lambda t, out, x, low, high: _if_larger(x, low, _unless_above(t, x, low, high)),
    lambda t, out, x, low, high: _if_larger(low, x, _unless_above(t, x, low, high)),
    lambda t, out, x, low, high: t - _unless_above(t, x, low, high),
)


# ---- rectifiers --------------------------------------------------------------------------------
# At 0 all have the left-hand derivative; for relu it is 0.


@facts(onnx="Relu")
@elementwise(oracle="max(x, 0)", kinks=[0.0], bounded=True, masks=True)
def relu(s: ScalarLanguage, x: Scalar) -> Any:
    """max(x, 0); derivative 0 at x = 0."""
    return s.max(x, 0)


relu.partials(lambda t, out, x: where(x > 0, t, 0.0))


@elementwise(oracle="x if x > 0 else slope * x", domain=[REAL, (0.0, 0.5)], kinks=[0.0])
def leaky_relu(s: ScalarLanguage, x: Scalar, slope: Scalar) -> Any:
    """x for x > 0, else slope * x; derivative `slope` at x = 0."""
    return s.where(s.less(0, x), x, slope * x)


leaky_relu.partials(
    lambda t, out, x, slope: where(x > 0, t, t * slope),
    lambda t, out, x, slope: where(x > 0, 0.0, t * x),
)


@facts(cost=call(), zero_slope=SATURATES)
@elementwise(oracle="x if x > 0 else alpha * expm1(x)", domain=[REAL, POSITIVE], kinks=[0.0])
def elu(s: ScalarLanguage, x: Scalar, alpha: Scalar) -> Any:
    """x for x > 0, else alpha (exp(x) - 1); derivative `alpha` at x = 0."""
    return s.where(s.less(0, x), x, alpha * s.expm1(s.min(x, 0)))


def _negative_part(x: Array) -> Any:
    """x where it is negative, else 0, so that exp does not overflow."""
    return where(value_of(x) > 0, 0.0, x)


elu.partials(
    lambda t, out, x, alpha: where(x > 0, t, t * (alpha * lookup("exp")(_negative_part(x)))),
    lambda t, out, x, alpha: where(x > 0, 0.0, t * lookup("expm1")(_negative_part(x))),
)
