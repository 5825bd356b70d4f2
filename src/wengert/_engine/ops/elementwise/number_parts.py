"""Parts of numbers: rounding, sign, exponents; real and imaginary part.

Rounding, sign, and the parts of a floating-point number.

The step functions `sign`, `floor`, `rint`, `spacing` ... have derivative zero.  The fraction of
`modf` and the mantissa of `frexp` have nonzero derivatives.

Real part, imaginary part, conjugate; complex numbers from two parts.

They are not holomorphic but linear over the real numbers.  Real and imaginary part are views, as in
NumPy: writing to `z.imag` writes to z.  Their cotangents are defined in docs/conventions.md,
"complex numbers".
"""

from __future__ import annotations

import builtins
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.handle import value_of
from wengert._engine.core.op import register
from wengert._engine.core.op_facts import ARITHMETIC, AT_ORIGIN, STEPS, Jump, facts
from wengert._engine.kinds.batching import elementwise_batching
from wengert._engine.kinds.elementwise import REAL, elementwise
from wengert._engine.kinds.linear_map import linear
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops import cost_model

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Scalar, ScalarLanguage


@facts(cost=ARITHMETIC, onnx="Sign", zero_slope=AT_ORIGIN, jump=Jump(-1.0, 1.0))
@elementwise(ufunc=np.sign, oracle="sign(x)", kinks=[0.0], discrete=True)
def sign(s: ScalarLanguage, x: Scalar) -> Any:
    """-1, 0 or 1; the sign of a complex number is a composition (wengert.numpy.sign)."""
    return s.sign(x)


@facts(cost=ARITHMETIC, onnx="Floor", jump=STEPS)
@elementwise(ufunc=np.floor, oracle="floor(x)", discrete=True)
def floor(s: ScalarLanguage, x: Scalar) -> Any:
    """The largest integer not above x."""
    return s.floor(x)


@facts(cost=ARITHMETIC, onnx="Ceil", jump=STEPS)
@elementwise(ufunc=np.ceil, oracle="ceil(x)", discrete=True)
def ceil(s: ScalarLanguage, x: Scalar) -> Any:
    """The smallest integer not below x."""
    return s.ceil(x)


@facts(cost=ARITHMETIC, jump=STEPS)
@elementwise(ufunc=np.trunc, oracle="sign(x) * floor(abs(x))", discrete=True)
def trunc(s: ScalarLanguage, x: Scalar) -> Any:
    """x rounded toward zero."""
    return s.trunc(x)


@facts(cost=ARITHMETIC, onnx="Round", jump=STEPS)
@elementwise(ufunc=np.rint, oracle="nint(x)", discrete=True)
def rint(s: ScalarLanguage, x: Scalar) -> Any:
    """The nearest integer; halves round to even."""
    return s.rint(x)


class _Round(Operation):
    """Rounding to a number of decimals: a step function."""

    kind = "elementwise"
    discrete = True
    jump = STEPS
    oracle = staticmethod(
        lambda x, decimals=0: np.vectorize(lambda v: builtins.round(float(v), decimals))(x)
    )

    def run(self, x: Operand, *, decimals: int = 0) -> Any:
        """``numpy.round``."""
        return np.round(x, decimals)


round = register(_Round("round", "x rounded to `decimals` places; halves to even."))


elementwise_batching(round)


@round.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(4,)),), {}
    yield (rng.normal(size=(2, 3)) * 100,), {"decimals": 1}


# ---- the floating-point format -----------------------------------------------------------------


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.copysign, oracle="abs(x) * (1 if y >= 0 else -1)", kinks=[0.0])
def copysign(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """|x| with the sign of y; derivative 0 at x = 0, none with respect to y."""
    return s.copysign(x, y)


copysign.partials(
    lambda t, out, x, y: t * (sign(value_of(x)) * np.copysign(1.0, value_of(y))).astype(t.dtype),
    None,
)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.nextafter, oracle="x + (2.0**-1074 if y > x else -(2.0**-1074))")
def nextafter(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The floating-point number next to x toward y; derivative 1 with respect to x, none to y."""
    return s.nextafter(x, y)


nextafter.partials(lambda t, out, x, y: t, None)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.spacing, oracle="sign(x) * 2 ** (floor(log(abs(x), 2)) - 52)", discrete=True)
def spacing(s: ScalarLanguage, x: Scalar) -> Any:
    """The distance from x to the adjacent floating-point number of larger absolute value."""
    distance = s.nextafter(x, s.copysign(inf, x)) - x
    return s.where(s.equal(x, 0), s.abs(distance), distance)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.heaviside, oracle="0 if x < 0 else (y if x == 0 else 1)", kinks=[0.0])
def heaviside(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """0 for x < 0, y at x = 0, 1 for x > 0; no derivative with respect to x."""
    return s.heaviside(x, y)


heaviside.partials(None, lambda t, out, x, y: t * (value_of(x) == 0))


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.ldexp, oracle="x * mpf(2) ** y", domain=[REAL, (-5, 5)])
def ldexp(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x * 2**y for integers y; no derivative with respect to y."""
    return s.ldexp(x, y)


ldexp.partials(lambda t, out, x, y: ldexp(t, y), None)


# ---- two results -------------------------------------------------------------------------------


@facts(flops=cost_model.pass_over_operand)
@opaque(trusted=True, oracle=lambda x: (x - np.trunc(x), np.trunc(x)))
def modf(x: Operand) -> Any:
    """The fractional and integral parts of x, with the sign of x; derivatives 1 and 0."""
    return np.modf(x)


@modf.define_vjp
def _modf_back(t: tuple[Array, ...], out: tuple[Array, ...], x: Array) -> Any:
    return (t[0],)


@modf.define_jvp
def _modf_along(dots: list[Array], out: tuple[Array, ...], x: Array) -> Any:
    return dots[0], None


elementwise_batching(modf)


@modf.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(5,)) * 3,), {}
    yield (rng.normal() * 3,), {}


@facts(flops=cost_model.pass_over_operand)
@opaque(trusted=True, oracle=lambda x: _mantissas(x))
def frexp(x: Array) -> Any:
    """Mantissa m and exponent e with x = m 2**e, 0.5 <= |m| < 1; the derivative of m is 2**-e."""
    return np.frexp(x)


def _mantissas(x: Array) -> Any:
    e = np.floor(np.log2(np.abs(x))).astype(np.intc) + 1
    return x / 2.0**e, e


@frexp.define_vjp
def _frexp_back(t: tuple[Array | None, ...], out: tuple[Array, ...], x: Array) -> Any:
    return (ldexp(t[0], -value_of(out[1])),)


@frexp.define_jvp
def _frexp_along(dots: list[Array], out: tuple[Array, ...], x: Array) -> Any:
    return ldexp(dots[0], -value_of(out[1])), None


elementwise_batching(frexp)


@frexp.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(5,)) * 10,), {}
    yield (rng.normal() * 10,), {}


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.conjugate, oracle="conj(x)", complex_ok=True, bounded=True)
def conjugate(s: ScalarLanguage, x: Scalar) -> Any:
    """The complex conjugate; x itself if it is real."""
    return s.conj(x)


# The kind conjugates t before and after, so this rule is correct in both modes.
conjugate.partials(lambda t, out, x: t.conj())


@elementwise(oracle="mpc(x, y)", half=False)
def rectangular(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The complex number x + 1j * y; an infinite part does not change the other one."""
    return s.rectangular(x, y)


rectangular.partials(lambda t, out, x, y: t, lambda t, out, x, y: t * 1j)


def _complex(x: Array) -> np.dtype[Any]:
    """The complex dtype of a cotangent of `x`."""
    return np.result_type(x.dtype, np.complex64)


@linear(view=True, oracle=lambda z: (z + np.conj(z)).real / 2)
def real(z: Operand) -> Any:
    """The real part of complex z."""
    return np.real(z)


@real.transpose
def _real_back(t: Array, z: Array) -> Any:
    return t.astype(_complex(z))


@real.put
def _real_put(base: Array, view: Array) -> Any:
    return rectangular(view, imag(base))


@linear(view=True, oracle=lambda z: (z - np.conj(z)).imag / 2)
def imag(z: Operand) -> Any:
    """The imaginary part of complex z."""
    return np.imag(z)


@imag.transpose
def _imag_back(t: Array, z: Array) -> Any:
    return t.astype(_complex(z)) * np.array(1j, _complex(z))[()]


@imag.put
def _imag_put(base: Array, view: Array) -> Any:
    return rectangular(real(base), view)


for _op in (real, imag):
    elementwise_batching(_op)

    @_op.examples
    def _(rng: np.random.Generator) -> Any:
        for shape in [(5,), (2, 3), ()]:
            yield (rng.normal(size=shape) + 1j * rng.normal(size=shape),), {}
