"""The scalar language of elementwise operations, written as ONNX nodes.

The body of an elementwise operation (_engine/kinds/elementwise.py) is evaluated with values that
are names in the file.  So every elementwise operation, also of the user, can be exported if ONNX
has operators for the functions in its body, with the same numerical stability.

    OnnxScalar     a value: its name and its dtype
    OnnxLanguage   the functions of the scalar language
    write_body     a node, by the body of its operation
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.node import ConstantLeaf, Node

from .graph_writer import GraphWriter
from .registry import exports_kind, unsupported

_BOOL = np.dtype(bool)
_SAME = {
    "abs": "Abs",
    "sign": "Sign",
    "floor": "Floor",
    "ceil": "Ceil",
    "rint": "Round",
    "sqrt": "Sqrt",
    "exp": "Exp",
    "log": "Log",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "arcsin": "Asin",
    "arccos": "Acos",
    "arctan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "tanh": "Tanh",
    "arcsinh": "Asinh",
    "arccosh": "Acosh",
    "arctanh": "Atanh",
}
_COMPARISONS = {"less": "Less", "less_equal": "LessOrEqual", "equal": "Equal"}
_TRUTHS = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}


class NoOnnxOperator(Exception):
    """A function of the scalar language for which ONNX has no operator."""


class OnnxScalar:
    """A value in the file.

    Parameters
    ----------
    writer : Writer
    name : str
    dtype : numpy.dtype
    weak : bool
        Whether it is a Python number, which takes the dtype of the other operand.
    """

    __array_ufunc__ = None

    def __init__(self, writer: GraphWriter, name: str, dtype: Any, weak: bool = False) -> None:
        self.writer = writer
        self.name = name
        self.dtype = np.dtype(dtype)
        self.weak = weak

    def to(self, dtype: Any) -> OnnxScalar:
        """The same value in another dtype."""
        return OnnxScalar(self.writer, self.writer.cast(self.name, self.dtype, dtype), dtype)

    def __add__(self, other: Any) -> OnnxScalar:
        return _binary(self.writer, "Add", self, other)

    def __radd__(self, other: Any) -> OnnxScalar:
        return _binary(self.writer, "Add", other, self)

    def __sub__(self, other: Any) -> OnnxScalar:
        return _binary(self.writer, "Sub", self, other)

    def __rsub__(self, other: Any) -> OnnxScalar:
        return _binary(self.writer, "Sub", other, self)

    def __mul__(self, other: Any) -> OnnxScalar:
        return _binary(self.writer, "Mul", self, other)

    def __rmul__(self, other: Any) -> OnnxScalar:
        return _binary(self.writer, "Mul", other, self)

    def __truediv__(self, other: Any) -> OnnxScalar:
        return _binary(self.writer, "Div", self, other)

    def __rtruediv__(self, other: Any) -> OnnxScalar:
        return _binary(self.writer, "Div", other, self)

    def __neg__(self) -> OnnxScalar:
        return OnnxScalar(self.writer, self.writer.op("Neg", self.name), self.dtype)

    def __pos__(self) -> OnnxScalar:
        return self

    def __abs__(self) -> OnnxScalar:
        return OnnxScalar(self.writer, self.writer.op("Abs", self.name), self.dtype)


def _common(*xs: Any) -> np.dtype[Any]:
    """The common dtype of values; Python numbers are weak."""
    strong = [x.dtype for x in xs if isinstance(x, OnnxScalar) and not x.weak]
    weak = [
        {"b": False, "i": 0, "u": 0, "f": 0.0}[x.dtype.kind]
        if isinstance(x, OnnxScalar)
        else _python(x)
        for x in xs
        if not isinstance(x, OnnxScalar) or x.weak
    ]
    return np.dtype(np.result_type(*strong, *weak))


def _python(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


def _as(writer: GraphWriter, x: Any, dtype: Any) -> OnnxScalar:
    if isinstance(x, OnnxScalar):
        return x.to(dtype)
    return OnnxScalar(writer, writer.constant(np.asarray(x, dtype)), dtype)


def _binary(writer: GraphWriter, kind: str, a: Any, b: Any, result: Any = None) -> OnnxScalar:
    dtype = _common(a, b)
    x, y = _as(writer, a, dtype), _as(writer, b, dtype)
    return OnnxScalar(writer, writer.op(kind, x.name, y.name), result or dtype)


class OnnxLanguage:
    """The functions of the scalar language, as ONNX nodes."""

    def __init__(self, writer: GraphWriter) -> None:
        self.writer = writer

    def __getattr__(self, leaf: str) -> Any:
        w = self.writer
        if leaf in _SAME:
            return lambda x: OnnxScalar(w, w.op(_SAME[leaf], x.name), x.dtype)
        if leaf in _COMPARISONS:
            return lambda x, y: _binary(w, _COMPARISONS[leaf], x, y, _BOOL)
        if leaf in _TRUTHS:
            return lambda x, y: self._logical(_TRUTHS[leaf], x, y)
        raise NoOnnxOperator(leaf)

    def _logical(self, kind: str, x: Any, y: Any) -> OnnxScalar:
        names = [_as(self.writer, a, _BOOL).name for a in (x, y)]
        return OnnxScalar(self.writer, self.writer.op(kind, *names), _BOOL)

    def special(self, name: str, *operands: Any) -> Any:
        """A function of scipy.special; only erf is supported."""
        if name == "erf":
            (x,) = operands
            return OnnxScalar(self.writer, self.writer.op("Erf", x.name), x.dtype)
        raise NoOnnxOperator(f"special.{name}")

    def not_equal(self, x: Any, y: Any) -> OnnxScalar:
        """x != y."""
        return self.logical_not(self.equal(x, y))

    def logical_not(self, x: OnnxScalar) -> OnnxScalar:
        """x == 0."""
        return OnnxScalar(self.writer, self.writer.op("Not", x.to(_BOOL).name), _BOOL)

    def isnan(self, x: OnnxScalar) -> OnnxScalar:
        """Whether x is NaN."""
        if x.dtype.kind != "f":
            return _as(self.writer, False, _BOOL)
        return OnnxScalar(self.writer, self.writer.op("IsNaN", x.name), _BOOL)

    def isinf(self, x: OnnxScalar) -> OnnxScalar:
        """Whether x is infinite."""
        if x.dtype.kind != "f":
            return _as(self.writer, False, _BOOL)
        return self.equal(self.abs(x), np.inf)

    def isfinite(self, x: OnnxScalar) -> OnnxScalar:
        """Whether x is neither NaN nor infinite."""
        return self.less(self.abs(x), np.inf) if x.dtype.kind == "f" else self.equal(x, x)

    def conj(self, x: OnnxScalar) -> OnnxScalar:
        """The conjugate; values are real."""
        return x

    def where(self, condition: Any, x: Any, y: Any) -> OnnxScalar:
        """x where the condition is true, else y."""
        w, dtype = self.writer, _common(x, y)
        names = [_as(w, condition, _BOOL).name, _as(w, x, dtype).name, _as(w, y, dtype).name]
        return OnnxScalar(w, w.op("Where", *names), dtype)

    def max(self, x: Any, y: Any) -> OnnxScalar:
        """The larger one."""
        return self._extreme("Max", x, y)

    def min(self, x: Any, y: Any) -> OnnxScalar:
        """The smaller one."""
        return self._extreme("Min", x, y)

    def _extreme(self, kind: str, x: Any, y: Any) -> OnnxScalar:
        if _common(x, y) == _BOOL:
            return self._logical("Or" if kind == "Max" else "And", x, y)
        return _binary(self.writer, kind, x, y)

    def power(self, x: Any, y: Any) -> OnnxScalar:
        """x**y."""
        return _binary(self.writer, "Pow", x, y)

    def fmod(self, x: Any, y: Any) -> OnnxScalar:
        """The remainder with the sign of x."""
        dtype = _common(x, y)
        a, b = _as(self.writer, x, dtype), _as(self.writer, y, dtype)
        return OnnxScalar(self.writer, self.writer.op("Mod", a.name, b.name, fmod=1), dtype)

    def trunc(self, x: OnnxScalar) -> OnnxScalar:
        """Round toward zero."""
        return self.where(self.less(x, 0), self.ceil(x), self.floor(x))

    def heaviside(self, x: Any, y: Any) -> OnnxScalar:
        """0, y or 1 for x below, at or above 0."""
        steps = self.where(self.less(x, 0), 0.0, self.where(self.equal(x, 0), y, 1.0))
        return self.where(self.isnan(x), x, steps)

    def signbit(self, x: OnnxScalar) -> OnnxScalar:
        """x < 0 or x is -0.0, which its reciprocal distinguishes from 0.0."""
        if x.dtype.kind != "f":
            return self.less(x, 0)
        minus = self.logical_and(self.equal(x, 0.0), self.less(1.0 / x, 0.0))
        return self.logical_or(self.less(x, 0.0), minus)

    def copysign(self, x: Any, y: Any) -> OnnxScalar:
        """The magnitude of x with the sign of y."""
        dtype = _common(x, y)
        a = self.abs(_as(self.writer, x, dtype))
        return self.where(self.signbit(_as(self.writer, y, dtype)), -a, a)

    def arctan2(self, y: Any, x: Any) -> OnnxScalar:
        """The angle of the point (x, y), by the arctangent of the smaller over the larger side."""
        dtype = _common(x, y)
        y, x = _as(self.writer, y, dtype), _as(self.writer, x, dtype)
        a, b = self.abs(y), self.abs(x)
        low, high = self.min(a, b), self.max(a, b)
        ratio = self.where(self.equal(low, high), 1.0, low / high)
        angle = self.arctan(self.where(self.equal(high, 0.0), 0.0, ratio))
        angle = self.where(self.less(b, a), float(np.pi / 2) - angle, angle)
        angle = self.where(self.signbit(x), float(np.pi) - angle, angle)
        return self.copysign(angle, y)

    # Functions without an ONNX operator, by numerically stable expressions of others.

    def exp2(self, x: OnnxScalar) -> OnnxScalar:
        """2**x."""
        return self.power(_as(self.writer, 2.0, x.dtype), x)

    def expm1(self, x: OnnxScalar) -> OnnxScalar:
        """e**x - 1 by Kahan's (u - 1) x / log(u) with u = e**x: the errors of u cancel."""
        u = self.exp(x)
        less = u - 1.0
        plain = self.logical_or(self.less(u, 0.25), self.less(4.0, u))
        safe = self.where(self.logical_or(plain, self.equal(u, 1.0)), 2.0, u)
        near = self.where(self.equal(u, 1.0), x, less * x / self.log(safe))
        return self.where(plain, less, self.where(self.isnan(x), x, near))

    def log1p(self, x: OnnxScalar) -> OnnxScalar:
        """log(1 + x) by Kahan's log(u) x / (u - 1) with u = 1 + x: the errors of u cancel."""
        u = 1.0 + x
        far = self.less(1.0, self.abs(x))
        safe = self.where(self.logical_or(far, self.equal(u, 1.0)), 2.0, u)
        near = self.where(self.equal(u, 1.0), x, self.log(u) * x / (safe - 1.0))
        return self.where(far, self.log(u), near)

    def log2(self, x: OnnxScalar) -> OnnxScalar:
        """log(x) / log(2)."""
        return self.log(x) / float(np.log(2.0))

    def log10(self, x: OnnxScalar) -> OnnxScalar:
        """log(x) / log(10)."""
        return self.log(x) / float(np.log(10.0))

    def cbrt(self, x: OnnxScalar) -> OnnxScalar:
        """The cube root: the power 1/3 (a rounded exponent), corrected by a Newton step."""
        a = self.abs(x)
        safe = self.where(self.logical_and(self.less(0.0, a), self.isfinite(a)), a, 1.0)
        root = self.power(safe, 1.0 / 3.0)
        root = root - (root * root * root - safe) / (3.0 * root * root)
        return self.where(self.equal(a, safe), self.sign(x) * root, x)


@exports_kind("elementwise")
def write_body(w: GraphWriter, node: Node, *names: Any) -> str:
    """Write a node by the body of its operation."""
    language, dtype = OnnxLanguage(w), node.spec.dtype
    operands = [_operand(w, a, name, dtype) for a, name in zip(node.inputs, names, strict=True)]
    try:
        out = node.op.body(language, *operands)  # type: ignore[union-attr]
    except NoOnnxOperator as leaf:
        raise unsupported(node, f"needs {leaf}, for which ONNX has no operator") from None
    if isinstance(out, tuple):
        raise unsupported(node, "has several results, for which ONNX has no operator")
    return _as(w, out, dtype).name


def _operand(w: GraphWriter, node: Node, name: str, dtype: np.dtype[Any]) -> OnnxScalar:
    """An operand, cast to the dtype of the result if that is floating point."""
    have = node.spec.dtype
    if dtype.kind == "f" and have.kind in "iuf":
        return OnnxScalar(w, w.cast(name, have, dtype), dtype)
    return OnnxScalar(w, name, have, weak=is_python(node))


def is_python(node: Node) -> bool:
    """Whether a node is a Python number, whose dtype is weak."""
    return node.spec.weak or (type(node) is ConstantLeaf and type(node.value) in (bool, int, float))
