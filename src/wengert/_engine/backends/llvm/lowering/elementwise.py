"""Elementwise operations, by their bodies in the scalar language.

The loop that NumPy's ufunc would choose determines the dtype of the computation.  For
floating-point numbers the body of the operation is compiled; for integers and complex numbers the
language implements NumPy's ufuncs themselves (vector_math/integer_ops.py, vector_math/complex/),
because a body may use floating-point arithmetic.

Rounding to decimals, and the parts of floating-point numbers.

round           scales by a power of ten, rounds, and scales back, as NumPy does
modf            the fractional and the integer part
frexp           mantissa and exponent, from the bits

Families of special functions, computed elementwise where they are used.

    family    a node as an expression, whose work is that of the compiled function

special_functions/ compiles them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.spec import Spec
from wengert._engine.core.types import Scalar, ScalarLanguage

from .. import special_functions
from ..ir.llvm_types import F16, F32, F64, I64, is_supported, part_of
from ..ir.scalar_language import loop_of
from ..ir.simd_value import ComplexLane
from ..special_functions.scipy_symbols import work_of
from ..vector_math import call_leaf, has_leaf
from ..vector_math.integer_ops import has_rule
from .loop_ir import Expr, Map
from .registry import Lowering, lowers, lowers_kind

if TYPE_CHECKING:
    from wengert._engine.core.types import ScalarLanguage
    from wengert._engine.kinds.elementwise import Elementwise

    from ..vector_math import complex_functions
    from .registry import Lowering
else:
    complex_functions = LazyModule("wengert._engine.backends.llvm.vector_math.complex_functions")

_COMPARISONS = frozenset("less less_equal greater greater_equal equal not_equal".split())
_PYTHON = {"f": float, "c": complex, "i": int, "u": int, "b": bool}


def _class_of(node: Node) -> Any:
    """The argument for `resolve_dtypes`: the dtype, or the class of a Python number."""
    spec = node.spec
    return _PYTHON[spec.dtype.kind] if spec.weak and spec.dtype.kind != "b" else spec.dtype


@lowers_kind("elementwise")
def elementwise(lowering: Any, node: Node, operands: Sequence[Expr]) -> Any:
    """The body, or the language's rule for the ufunc."""
    spec = node.spec
    if node.params:
        return NotImplemented
    if lowering is None:
        rule = _rule(node, operands)
    else:
        operand_types = [(a.dtype, a.weak) for a in [x.spec for x in node.inputs]]
        are_constant = tuple([x.op is CONSTANT for x in node.inputs])
        key = (
            node.op,
            spec.dtype,
            _may_exceed(node),
            are_constant,
            *operand_types,
            *[x.dtype for x in operands],
        )
        rule = lowering.rules.get(key)
        if rule is None:
            rule = lowering.rules[key] = _rule(node, operands)
    if rule is NotImplemented:
        return rule
    return Expr(rule, operands, spec.shape, spec.dtype, node)


def _rule(node: Node, operands: Sequence[Expr]) -> Any:
    op: Any = node.op
    body = getattr(op, "body", None)
    ufunc = getattr(op, "ufunc", None)
    if not isinstance(ufunc, np.ufunc) or getattr(np, ufunc.__name__, None) is not ufunc:
        ufunc = None  # not a ufunc of NumPy: the body is compiled
    work = 0
    if body is None and ufunc is None:
        return NotImplemented
    if ufunc is None and _is_leaf(op) and node.spec.dtype.kind == "f" and not _is_complex(operands):
        combine = functools.partial(_by_leaf, op.name, node.spec.dtype)
    elif ufunc is None:
        dtypes = _dtypes_of(node)
        pairs = zip(operands, dtypes, strict=True)
        found = work_of(body, tuple(x.dtype if d is None else d for x, d in pairs))
        if found is None:
            return NotImplemented
        work = found
        combine = functools.partial(_composed, body, dtypes)
    else:
        classes = tuple(map(_class_of, node.inputs))
        if all(a.spec.weak for a in node.inputs):  # NumPy compares Python integers as objects
            classes = tuple([a.spec.dtype for a in node.inputs])
        *loop, outer = loop_of(ufunc.__name__, classes)
        if not all(map(is_supported, (*loop, outer))):
            return NotImplemented
        if _may_exceed(node):
            loop = [x.dtype if x.dtype.str[1:] == "u8" else I64 for x in operands]
        kinds = {d.kind for d in loop}
        name = ufunc.__name__
        if "c" in kinds and not complex_functions.has_rule(name):
            return NotImplemented
        if (
            (kinds & set("biu") and "f" not in kinds and (body is None or has_rule(name)))
            or "c" in kinds
            or has_leaf(name)
        ):
            combine = functools.partial(_direct, name, loop, outer)
        else:
            combine = functools.partial(_in_loop, body, loop)
        limits = _limits(node, loop)
        if limits:
            combine = functools.partial(_checked, limits, combine)
    weight = 1 if op.cost is None else op.cost.weight
    return Map(op.name, combine, weight + work)


def _limits(node: Node, loop: Sequence[Any]) -> list[tuple[int, int, int]]:
    """The integer operands that NumPy would reject outside of a range, with that range.

    These are Python integers passed at run time if the loop has a narrower dtype, and exponents of
    integers.  Constants were checked when the node was made (core/validation.py).
    """
    found = []
    if any(d.kind not in "iub" for d in loop) or _may_exceed(node):
        return []
    for k, (a, dtype) in enumerate(zip(node.inputs, loop, strict=True)):
        exponent = k == 1 and node.op.name == "power" and dtype.kind == "i"
        at_run_time = (
            a.spec.weak and a.op is not CONSTANT and a.spec.dtype == I64 and dtype.kind in "iu"
        )
        if at_run_time and dtype != I64:
            info = np.iinfo(dtype)
            found.append((k, 0 if exponent else int(info.min), min(int(info.max), 2**63 - 1)))
        elif exponent and a.spec.dtype.kind == "i" and not (a.op is CONSTANT and a.spec.weak):
            found.append((k, 0, 2**63 - 1))
    return found


def _checked(limits: Sequence[Any], combine: Any, language: Any, *lanes: Any) -> Any:
    """The element; the run fails if integers are out of range, and the interpreter raises."""
    if language.reader is not None:
        at, mask = language.reader
        for k, low, high in limits:
            x = language.cast(lanes[k], I64)
            outside = language.compare("less", x, language.constant(low, I64))
            if high < 2**63 - 1:
                above = language.compare("less", language.constant(high, I64), x)
                outside = language.binary("logical_or", outside, above)
            at.refuse(outside, mask)
    return combine(language, *lanes)


def _may_exceed(node: Node) -> bool:
    """Whether small integers are compared with a Python integer that their dtype may not hold.

    NumPy compares the values; in other operations it rejects such an integer.
    """
    if node.spec.dtype.kind != "b" or len(node.inputs) != 2 or node.op.name not in _COMPARISONS:
        return False
    specs = [a.spec for a in node.inputs]
    if any(s.dtype.kind not in "iu" for s in specs) or specs[0].weak == specs[1].weak:
        return False
    number, dtype = node.inputs[specs[1].weak], specs[specs[0].weak].dtype
    if number.op is not CONSTANT or number.value is None:
        return bool(dtype != I64)
    info = np.iinfo(dtype)
    return not info.min <= int(number.value) <= info.max


def _is_leaf(op: Elementwise) -> bool:
    """Whether an operation is a vector function of wengert, and not only named like one."""
    return has_leaf(op.name) and str(op.body.__module__).startswith("wengert.")


def _is_complex(operands: Sequence[Expr]) -> bool:
    return any(x.dtype.kind == "c" for x in operands)


def _by_leaf(name: str, dtype: np.dtype[Any], language: ScalarLanguage, *lanes: Any) -> Any:
    wide = F32 if dtype == F16 else dtype
    return call_leaf(language, name, wide, [language.cast(x, wide) for x in lanes])


def _direct(
    name: str, loop: Sequence[Any], outer: np.dtype[Any], language: ScalarLanguage, *lanes: Any
) -> Any:
    """The language's rule for the ufunc."""
    return language.computed(
        name, outer, *[language.cast(x, d) for x, d in zip(lanes, loop, strict=True)]
    )


def _in_loop(body: Any, loop: Sequence[Any], language: Any, *lanes: Any) -> Any:
    """The body, in the dtypes of NumPy's loop; float16 is computed in float32."""
    lanes = tuple([language.cast(x, d) for x, d in zip(lanes, loop, strict=True)])
    return body(language, *[language.cast(x, F32) if x.dtype == F16 else x for x in lanes])


def _dtypes_of(node: Node) -> list[Any]:
    """The dtype in which each operand is computed; None for its own."""
    specs = [a.spec for a in node.inputs]
    if node.op.name == "where":
        return [None, node.spec.dtype, node.spec.dtype]
    strong = [s for s in specs if not s.weak]
    if not strong or len(strong) == len(specs):
        return [None] * len(specs)
    dtype = node.spec.dtype
    return [(dtype if s.dtype.kind == "c" else part_of(dtype)) if s.weak else None for s in specs]


def _composed(body: Any, dtypes: Sequence[Any], language: Any, *lanes: Any) -> Any:
    """The body of an operation without a ufunc."""
    cast = [x if d is None else language.cast(x, d) for x, d in zip(lanes, dtypes, strict=True)]
    return body(language, *cast)


@lowers("cast", "discretise")
def _cast(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    dtype = np.dtype(node.params["dtype"])
    combine = lambda language, x: language.cast(x, dtype)  # noqa: E731
    return Expr(Map("cast", combine), operands, node.spec.shape, dtype, node)


@lowers("real")
def _real(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    combine = lambda language, z: getattr(z, "real", z)  # noqa: E731
    return Expr(Map("real", combine), operands, node.spec.shape, node.spec.dtype, node)


@lowers("imag")
def _imag(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    if operands[0].dtype.kind != "c":
        return NotImplemented
    return Expr(Map("imag", lambda s, z: z.imag), operands, node.spec.shape, node.spec.dtype, node)


@lowers("isclose")
def _isclose(_: Any, node: Node, operands: Sequence[Expr]) -> Any:
    if _is_complex(operands) or all(x.dtype.kind == "b" for x in operands):
        return NotImplemented
    rtol, atol = node.params.get("rtol", 1e-5), node.params.get("atol", 1e-8)
    both_nan = node.params.get("equal_nan", False)

    def combine(s: Any, x: Any, y: Any) -> Any:
        close = s.less_equal(s.abs(x - y), atol + rtol * s.abs(y))
        found = s.logical_or(s.logical_and(close, s.isfinite(y)), s.equal(x, y))
        if both_nan:
            found = s.logical_or(found, s.logical_and(s.isnan(x), s.isnan(y)))
        return found

    return Expr(Map("isclose", combine, 4), operands, node.spec.shape, node.spec.dtype, node)


@lowers("stop_gradient", "copy", "positive", "assume", "after")
def _same(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    return operands[0] if operands[0].dtype == node.spec.dtype else NotImplemented


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


@lowers_kind("opaque")
def family(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    """A special function that can be compiled; other opaque operations are opaque calls."""
    op: Any = node.op
    if not getattr(op, "native", False):
        return NotImplemented
    params, dtype = dict(node.params), node.spec.dtype
    work = special_functions.is_served(op, params, tuple(x.dtype for x in operands))
    if work is None:
        return NotImplemented
    combine = functools.partial(special_functions.called, op, params, dtype)
    return Expr(Map(op.name, combine, work), operands, node.spec.shape, dtype, node)
