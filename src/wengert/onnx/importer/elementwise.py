"""Elementwise operators.

Operands of a node have one dtype in ONNX, so there is no type promotion; integer division rounds
toward zero, as in C.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.ops.casts import astype

from .registry import NodeView, as_value, imports

_NUMPY = {
    "Abs": np.abs,
    "Neg": np.negative,
    "Exp": np.exp,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Tanh": np.tanh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Sign": np.sign,
    "Not": np.logical_not,
    "IsNaN": np.isnan,
    "BitwiseNot": np.invert,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}
_OURS = {
    "Sigmoid": "sigmoid",
    "Relu": "relu",
    "Erf": "erf",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Mish": "mish",
}


def _dtype(x: Any) -> np.dtype[Any]:
    return np.dtype(x.dtype)


def weak(value: Any) -> float:
    """A float attribute, which has 32 bits, as the shortest decimal number that rounds to it."""
    return float(str(np.float32(value)))


@imports(*_NUMPY)
def _numpy(n: NodeView, *xs: Any) -> Any:
    return _NUMPY[n.kind](*xs)


@imports(*_OURS)
def _ours(n: NodeView, x: Any) -> Any:
    return lookup(_OURS[n.kind])(x)


@imports("Identity", lengths=True)
def _identity(n: NodeView, x: Any) -> Any:
    return x


@imports("Reciprocal")
def _reciprocal(n: NodeView, x: Any) -> Any:
    return 1 / x


@imports("Add", lengths=True)
def _add(n: NodeView, x: Any, y: Any) -> Any:
    return np.add(x, y)


@imports("Sub", lengths=True)
def _sub(n: NodeView, x: Any, y: Any) -> Any:
    return np.subtract(x, y)


@imports("Mul", lengths=True)
def _mul(n: NodeView, x: Any, y: Any) -> Any:
    return np.multiply(x, y)


@imports("Div", lengths=True)
def _div(n: NodeView, x: Any, y: Any) -> Any:
    if object in (x.dtype, y.dtype):
        return np.floor_divide(x, y)
    if _dtype(x).kind == "u":
        return x // y
    if _dtype(x).kind == "i":
        down = x // y
        toward = np.logical_and(down < 0, np.not_equal(down * y, x))
        return down + astype(toward, _dtype(x))
    return x / y


@imports("Mod")
def _mod(n: NodeView, x: Any, y: Any) -> Any:
    if n.get("fmod", 0):
        return np.fmod(x, y)
    return np.remainder(x, y)


@imports("Pow")
def _pow(n: NodeView, x: Any, y: Any) -> Any:
    have, other = _dtype(x), _dtype(y)
    if have.kind in "iu" and other.kind in "iu" and not isinstance(y, np.ndarray):
        return astype(np.power(astype(x, np.float64), astype(y, np.float64)), have)
    if have.kind in "iu":
        return astype(np.power(astype(x, np.float64), y), have)
    return astype(np.power(x, astype(y, have)), have)


@imports("Equal", lengths=True)
def _equal(n: NodeView, x: Any, y: Any) -> Any:
    out = np.equal(x, y)
    return out.astype(bool) if np.dtype(out.dtype).kind == "O" else out


@imports("Max", "Min", "Sum", "Mean")
def _several(n: NodeView, *xs: Any) -> Any:
    join = {"Max": np.maximum, "Min": np.minimum}.get(n.kind, np.add)
    out = xs[0]
    for x in xs[1:]:
        out = join(out, x)
    return out / len(xs) if n.kind == "Mean" else out


@imports("Where", lengths=True)
def _where(n: NodeView, condition: Any, x: Any, y: Any) -> Any:
    return np.where(condition, x, y)


@imports("IsInf")
def _isinf(n: NodeView, x: Any) -> Any:
    up, down = n.get("detect_positive", 1), n.get("detect_negative", 1)
    if up and down:
        return np.isinf(x)
    which = x > 0 if up else x < 0
    return np.logical_and(np.isinf(x), which if up or down else np.zeros((), bool))


@imports("BitShift")
def _shift(n: NodeView, x: Any, y: Any) -> Any:
    return (np.left_shift if n.get("direction") == "LEFT" else np.right_shift)(x, y)


@imports("Clip")
def _clip(n: NodeView, x: Any, low: Any = None, high: Any = None) -> Any:
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


@imports("Cast", lengths=True)
def _cast(n: NodeView, x: Any) -> Any:
    want = n.dtype(n.get("to"))
    if _dtype(x).kind == "O":
        if want.kind == "i":
            return x
        x = as_value(x)
    return _converted(n, x, want)


def _converted(n: NodeView, x: Any, want: np.dtype[Any]) -> Any:
    if _dtype(x).kind not in "biuf" or want.kind not in "biuf":
        raise n.unsupported(f"from {_dtype(x)} to {want} is not supported")
    return x.astype(want) if isinstance(x, np.ndarray) else astype(x, want)


@imports("CastLike")
def _cast_like(n: NodeView, x: Any, like: Any) -> Any:
    return _converted(n, x, _dtype(like))


# ---- activations -------------------------------------------------------------------------------


@imports("Gelu")
def _gelu(n: NodeView, x: Any) -> Any:
    n.only("approximate", "none", "tanh")
    if n.get("approximate", "none") == "none":
        return lookup("gelu")(x)
    inner = float(np.sqrt(2 / np.pi)) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + np.tanh(inner))


@imports("Swish")
def _swish(n: NodeView, x: Any) -> Any:
    alpha = weak(n.get("alpha", 1.0))
    return lookup("silu")(x) if alpha == 1.0 else x * lookup("sigmoid")(alpha * x)


@imports("LeakyRelu")
def _leaky(n: NodeView, x: Any) -> Any:
    return lookup("leaky_relu")(x, weak(n.get("alpha", 0.01)))


@imports("PRelu")
def _prelu(n: NodeView, x: Any, slope: Any) -> Any:
    return np.where(x < 0, slope * x, x)


@imports("Elu")
def _elu(n: NodeView, x: Any) -> Any:
    return _exponential(x, weak(n.get("alpha", 1.0)), 1.0)


@imports("Celu")
def _celu(n: NodeView, x: Any) -> Any:
    alpha = weak(n.get("alpha", 1.0))
    return _exponential(x, alpha, 1.0 / alpha)


@imports("Selu")
def _selu(n: NodeView, x: Any) -> Any:
    alpha = weak(n.get("alpha", 1.6732632423543772848170429916717))
    gamma = weak(n.get("gamma", 1.0507009873554804934193349852946))
    return gamma * _exponential(x, alpha, 1.0)


def _exponential(x: Any, alpha: float, scale: float) -> Any:
    below = np.minimum(x, 0)
    return np.where(x > 0, x, alpha * np.expm1(below * scale))


@imports("ThresholdedRelu")
def _thresholded(n: NodeView, x: Any) -> Any:
    return np.where(x > weak(n.get("alpha", 1.0)), x, 0)


@imports("HardSigmoid")
def _hard_sigmoid(n: NodeView, x: Any) -> Any:
    alpha, beta = weak(n.get("alpha", 0.2)), weak(n.get("beta", 0.5))
    return np.clip(alpha * x + beta, 0, 1)


@imports("HardSwish")
def _hard_swish(n: NodeView, x: Any) -> Any:
    return x * np.clip(x / 6 + 0.5, 0, 1)


@imports("Shrink")
def _shrink(n: NodeView, x: Any) -> Any:
    bias, edge = weak(n.get("bias", 0.0)), weak(n.get("lambd", 0.5))
    have = _dtype(x)
    wide = astype(x, np.float64) if have.kind in "iu" else x
    out = np.where(wide < -edge, wide + bias, np.where(wide > edge, wide - bias, 0))
    return astype(out, have)
