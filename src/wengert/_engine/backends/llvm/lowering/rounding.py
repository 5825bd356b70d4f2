"""Rounding to decimals, and the parts of floating-point numbers.

round           scales by a power of ten, rounds, and scales back, as NumPy does
modf            the fractional and the integer part
frexp           mantissa and exponent, from the bits
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec
from wengert._engine.core.types import Scalar, ScalarLanguage

from ..ir.llvm_types import F64
from ..ir.simd_value import ComplexLane
from .loop_ir import Expr, Map
from .registry import Lowering, lowers


@lowers("round")
def _round(_: Any, node: Node, operands: Sequence[Expr]) -> Any:
    (x,) = operands
    decimals = node.params.get("decimals", 0)
    if type(decimals) is not int or x.dtype.kind == "b" or x.dtype != node.spec.dtype:
        return NotImplemented
    if x.dtype.kind in "iu":
        if decimals >= 0:
            return x
        if x.dtype.itemsize > 4:  # NumPy converts to float64, which may not be exact
            return NotImplemented
    power = 10.0 ** abs(decimals)

    def one(s: ScalarLanguage, v: Scalar) -> Any:
        if decimals == 0:
            return s.rint(v)
        return s.rint(v * power) / power if decimals > 0 else s.rint(v / power) * power

    def combine(s: Any, v: Any) -> Any:
        if type(v) is ComplexLane:
            return ComplexLane(s, one(s, v.real), one(s, v.imag), v.dtype)
        return one(s, s.cast(v, F64) if v.dtype.kind in "iu" else v)

    return Expr(Map("round", combine, 6), operands, x.shape, x.dtype, node)


def _two(node: Node, x: Expr, *combines: Callable[[Any, Any], Any]) -> Any:
    """Both results of a node."""
    specs: Any = node.spec
    if x.dtype.kind == "c" or any(s.dtype.kind == "c" for s in specs):
        return NotImplemented
    dtype = specs[0].dtype

    def expr(spec: Spec, combine: Callable[[Any, Any], Any]) -> Expr:
        whole = lambda s, v: s.cast(combine(s, s.cast(v, dtype)), spec.dtype)  # noqa: E731
        return Expr(Map(node.op.name, whole, 6), (x,), spec.shape, spec.dtype, node)

    return tuple(expr(s, c) for s, c in zip(specs, combines, strict=True))


@lowers("modf")
def _modf(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    return _two(node, operands[0], _fraction, lambda s, v: s.trunc(v))


def _fraction(s: ScalarLanguage, v: Scalar) -> Any:
    """The fractional part, with the sign of the number; 0 for infinities."""
    rest = s.where(s.isinf(v), 0.0, v - s.trunc(v))
    return s.copysign(rest, v)


@lowers("frexp")
def _frexp(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    return _two(node, operands[0], lambda s, v: _mantissa(s, v)[0], lambda s, v: _mantissa(s, v)[1])


def _mantissa(s: ScalarLanguage, x: Any) -> tuple[Any, Any]:
    """x = m 2**e with 0.5 <= |m| < 1; zeros, infinities and NaN are their own mantissa."""
    limits = np.finfo(x.dtype)
    digits, bias = limits.nmant, limits.maxexp - 1
    whole = s.bits(x).dtype
    small = s.less(s.abs(x), float(limits.tiny))
    bits = s.bits(s.where(small, x * 2.0 ** (digits + 2), x))
    field = 2 * bias + 1
    scaling = s.where(small, s.cast(digits + 2, whole), 0)
    exponent = ((bits >> digits) & field) - (bias - 1) - scaling
    mantissa = s.number((bits & ~(field << digits)) | ((bias - 1) << digits))
    unchanged = s.logical_or(s.equal(x, 0.0), s.logical_not(s.isfinite(x)))
    return s.where(unchanged, x, mantissa), s.where(unchanged, s.cast(0, whole), exponent)
