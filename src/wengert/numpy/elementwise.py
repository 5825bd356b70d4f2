"""NumPy's elementwise functions.

Ufuncs *are* NumPy's ufuncs: `wengert.numpy.exp is numpy.exp`.  Plain arrays have no overhead and
give exactly NumPy's result with all arguments; tensors are dispatched to the operation of the ufunc
by `__array_ufunc__`, and so are `.reduce`, `.outer` and `.at` (ufuncs.py).  This module adds the
functions that are not one operation:

    two results        divmod, modf, frexp
    compositions       sign of complex numbers, angle, nan_to_num, real_if_close, unwrap
    bounds             clip with one bound, two, or none
    tests              isclose, isreal, iscomplex, isposinf, isneginf
    step functions     round, around, fix
"""

from __future__ import annotations

from importlib import import_module
from math import pi
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, link, possibly, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.ops.elementwise import (
    arithmetic,
    comparison,
    number_parts,
    selection,
    trigonometric,
)
from wengert._engine.tensor.numpy_dispatch import counterpart, values
from wengert._engine.tensor.numpy_protocols import deliver, implements
from wengert._engine.tensor.operand_conversion import needed

from ..errors import IntegerRangeError, at, user_line
from .creation import zeros_like

_UFUNCS = """
    add subtract multiply divide true_divide floor_divide remainder mod fmod divmod power pow
    float_power negative positive reciprocal square sqrt cbrt
    exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2
    sin cos tan arcsin arccos arctan arctan2 asin acos atan atan2 hypot
    deg2rad rad2deg radians degrees
    sinh cosh tanh arcsinh arccosh arctanh asinh acosh atanh
    abs absolute fabs sign floor ceil trunc rint copysign nextafter spacing heaviside
    ldexp frexp modf maximum minimum fmax fmin
    less less_equal greater greater_equal equal not_equal
    logical_and logical_or logical_xor logical_not isnan isinf isfinite signbit conj conjugate
    bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_invert invert bitwise_count
    bitwise_left_shift bitwise_right_shift left_shift right_shift gcd lcm
""".split()
_FUNCTIONS = """
    sinc clip round around fix nan_to_num real imag angle real_if_close unwrap
    isclose isreal iscomplex isrealobj iscomplexobj isposinf isneginf
""".split()
globals().update({name: getattr(np, name) for name in _UFUNCS})
__all__ = [*_UFUNCS, *_FUNCTIONS]

_UMATH: Any = import_module("numpy._core.umath")
_ABSENT: Any = getattr(np, "_NoValue", object())


# ---- ufuncs that are not one operation ---------------------------------------------------------

implements(np.conjugate)(number_parts.conjugate)


def _bounds(dtype: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Bounds that are Python integers; None if they include the whole range of the dtype.

    Raises
    ------
    IntegerRangeError
        NumPy's OverflowError.
    """
    info = np.iinfo(dtype)
    if type(low) is int and low <= info.min:
        low = None
    if type(high) is int and high >= info.max:
        high = None
    for bound in (low, high):
        if type(bound) is int and not info.min <= bound <= info.max:
            raise IntegerRangeError(
                f"clip of {dtype} with the bound {bound}: Python integer {bound} out of bounds for "
                f"{dtype}. Cast the array, x.astype(np.int64){at(user_line())}."
            )
    return low, high


@implements(np.sign)
def _sign(x: Any) -> Any:
    """The sign; for complex numbers x / |x|, and 0 at 0."""
    if dtype_of(x).kind != "c":
        return number_parts.sign(x)
    size = selection.absolute(x)
    zero, far = value_of(size) == 0, np.isinf(value_of(size))
    found = selection.where(zero, 0.0, x / selection.where(zero | far, 1.0, size))
    if not possibly(far):
        return found
    return selection.where(far, _direction(value_of(x)), found)


def _direction(x: Any) -> Any:
    """x / |x| where |x| is infinite: along an axis if one part is infinite, NaN if both are."""
    endless = np.isinf(x.real), np.isinf(x.imag)
    real, imag = (
        selection.where(this, np.copysign(1.0, part), 0.0)
        for this, part in zip(endless, (x.real, x.imag), strict=True)
    )
    axis = selection.where(endless[0] & endless[1], complex(np.nan, np.nan), real + 1j * imag)
    small = 0.25 * x  # |x| may overflow although both parts are finite
    return selection.where(endless[0] | endless[1], axis, small / selection.absolute(small))


@implements(np.divmod)
def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient and remainder, as in Python."""
    return arithmetic.floor_divide(x, y), arithmetic.remainder(x, y)


implements(np.modf)(number_parts.modf)
implements(np.frexp)(number_parts.frexp)


# ---- selection ---------------------------------------------------------------------------------


@counterpart(np.clip)
def clip(
    a: Any,
    a_min: Any = _ABSENT,
    a_max: Any = _ABSENT,
    out: Any = None,
    *,
    min: Any = _ABSENT,
    max: Any = _ABSENT,
    **_: Any,
) -> Any:
    """``numpy.clip``: the elements limited to the interval from `a_min` to `a_max`.

    Parameters
    ----------
    a : array or Tensor
    a_min, a_max : array, Tensor or None
        The bounds, also called `min` and `max`; None for no bound on that side.
    out : Tensor or array, optional

    Notes
    -----
    The derivative is that of ``minimum(maximum(a, a_min), a_max)``: where an element equals its
    bound, half goes to each (docs/conventions.md).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.clip(x, 0.0, 1.0).sum())(np.array([-1.0, 0.0, 0.5, 2.0]))
    array([0. , 0.5, 1. , 0. ])
    """
    low, high = (v if w is _ABSENT else w for v, w in ((a_min, min), (a_max, max)))
    low, high = (None if v is _ABSENT else v for v in (low, high))
    if dtype_of(a).kind in "iu":
        low, high = _bounds(dtype_of(a), low, high)
    if low is None and high is None:
        result = arithmetic.positive(a)
    elif low is None:
        result = selection.minimum(a, high)
    elif high is None:
        result = selection.maximum(a, low)
    else:
        result = selection.clip(a, low, high)
    return result if out is None else deliver(result, out)


implements(_UMATH.clip)(clip)  # called by the method of plain arrays


@counterpart(np.nan_to_num)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """``numpy.nan_to_num``: NaN and infinities replaced by numbers; there the derivative is 0.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.nan_to_num(x * x).sum())(np.array([3.0, np.nan]))
    array([6., 0.])
    """
    dtype = dtype_of(x)
    if dtype.kind not in "fc":
        result = x
    elif dtype.kind == "c":
        parts = [nan_to_num(part(x), True, nan, posinf, neginf) for part in (real, imag)]
        result = parts[0] + 1j * parts[1]
    else:
        value, limits = values(x), np.finfo(dtype)
        top = limits.max if posinf is None else posinf
        bottom = limits.min if neginf is None else neginf
        result = selection.where(np.isnan(value), nan, x)
        result = selection.where(np.isposinf(value), top, result)
        result = selection.where(np.isneginf(value), bottom, result)
    if not copy and isinstance(x, Handle):
        x._assign(result)  # type: ignore[attr-defined]
        return x
    return result


# ---- complex numbers ---------------------------------------------------------------------------


@counterpart(np.real)
def real(val: Any) -> Any:
    """``numpy.real``: the real part, a view; `val` itself if it is real."""
    return number_parts.real(val) if dtype_of(val).kind == "c" else val


@counterpart(np.imag)
def imag(val: Any) -> Any:
    """``numpy.imag``: the imaginary part, a view; read-only zeros if `val` is real."""
    if dtype_of(val).kind == "c":
        return number_parts.imag(val)
    part = _no_imaginary(val)
    link(part, val, _no_imaginary, None, shares=True)
    return part


def _no_imaginary(x: Any) -> Any:
    return zeros_like(x) if is_traced(x) else wrap(constant(np.imag(value_of(x))))


@counterpart(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    """``numpy.angle``: the argument of a complex number, in (-pi, pi]; derivative 0 at z = 0.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.angle)(np.array(2.0j)).round(2)
    np.complex128(-0.5+0j)
    """
    # In NumPy the imaginary part of integers and booleans is the number 0.
    part = imag(z) if dtype_of(z).kind in "fc" else 0
    result = trigonometric.arctan2(part, real(z))
    return result * (180.0 / pi) if deg else result


@counterpart(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    """``numpy.real_if_close``: the real part if all imaginary parts are within rounding of 0."""
    if dtype_of(a).kind != "c":
        return a
    value = needed(a, "np.real_if_close", "the dtype of the result", "Use x.real")
    return a if np.iscomplexobj(np.real_if_close(value, tol)) else real(a)


@counterpart(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * pi) -> Any:
    """``numpy.unwrap``: jumps larger than half a period are removed; the derivative is 1."""
    if is_traced(p):
        return _unwrapped(p, discont, axis, period)
    value = np.asarray(value_of(p))
    jumps = np.unwrap(value, value_of(discont), axis, period=period) - value
    return p + jumps.astype(np.result_type(value.dtype, jumps.dtype), copy=False)


def _unwrapped(p: Any, discont: Any, axis: int, period: Any) -> Any:
    """`unwrap` by operations, for a graph."""
    value = value_of(p)
    dd = np.diff(value, axis=axis)
    dtype = np.result_type(dd.dtype, period)
    whole = dtype.kind in "iu"
    half = period // 2 if whole else period / 2
    even = not whole or period % 2 == 0
    moved = np.remainder(dd + half, period) - half
    if even:
        moved = np.where((moved == -half) & (dd > 0), half, moved)
    limit = half if discont is None else value_of(discont)
    steps = np.where(np.absolute(dd) < limit, 0, moved - dd)
    jumps = np.cumsum(steps, axis=axis)
    first = np.zeros_like(value[(slice(None),) * (axis % p.ndim) + (slice(0, 1),)], dtype)
    return p + np.concatenate([first, jumps.astype(dtype)], axis=axis)


# ---- steps and tests ---------------------------------------------------------------------------


@counterpart(np.sinc)
def sinc(x: Any) -> Any:
    """``numpy.sinc``: sin(pi x) / (pi x), and 1 at 0."""
    return trigonometric.sinc(x)


@counterpart(np.round, np.around)
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """``numpy.round``: round to a number of decimals; a step function."""
    result = number_parts.round(a, decimals=decimals)
    return result if out is None else deliver(result, out)


around = round


@counterpart(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    """``numpy.fix``: round toward zero; a step function."""
    result = number_parts.trunc(x)
    return result if out is None else deliver(result, out)


@counterpart(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """``numpy.isclose``: whether |a - b| <= atol + rtol |b|."""
    return comparison.isclose(a, b, rtol=value_of(rtol), atol=value_of(atol), equal_nan=equal_nan)


@counterpart(np.isreal)
def isreal(x: Any) -> Any:
    """``numpy.isreal``: whether the imaginary part is 0."""
    return lookup("equal")(imag(x), 0)


@counterpart(np.iscomplex)
def iscomplex(x: Any) -> Any:
    """``numpy.iscomplex``: whether the imaginary part is not 0."""
    return lookup("not_equal")(imag(x), 0)


@counterpart(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    """``numpy.iscomplexobj``: whether the dtype is complex."""
    return dtype_of(x).kind == "c"


@counterpart(np.isrealobj)
def isrealobj(x: Any) -> bool:
    """``numpy.isrealobj``: whether the dtype is not complex."""
    return dtype_of(x).kind != "c"


@counterpart(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    """``numpy.isposinf``."""
    result = comparison.isinf(x) & ~comparison.signbit(x)
    return result if out is None else deliver(result, out)


@counterpart(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    """``numpy.isneginf``."""
    result = comparison.isinf(x) & comparison.signbit(x)
    return result if out is None else deliver(result, out)
