"""Airy functions (DLMF 9) and Kelvin functions (DLMF 10.61).

    airy                    Ai, Ai', Bi, Bi', also of complex arguments
    airye                   Ai and Ai' times e^zeta, Bi and Bi' times e^-|Re zeta|, zeta = 2/3
                            z^(3/2)
    ber, bei, ker, kei      the functions
    berp, beip, kerp, keip  their derivatives
    kelvin                  all of them, as four complex results

The derivative of a scaled function f e^zeta is (f' + sqrt(z) f) e^zeta, which cancels for large z.
From `_ASYMPTOTIC_FROM` on, the asymptotic series DLMF 9.7 is differentiated instead.

Both pairs of Kelvin functions satisfy w'' = i w - w' / x, which gives the second derivatives.  For
ber and bei, w' / x is smooth at 0; near 0 it is computed from its power series.
"""

from __future__ import annotations

from math import comb, factorial, pi, sqrt
from typing import Any

import numpy as np
import scipy.special as theirs

from wengert._engine.core.handle import dtype_of, value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE
from wengert._engine.ops.elementwise.selection import where as choose

from .register import OracleExpression, family, function

__all__ = ["airy", "airye", "bei", "beip", "ber", "berp", "kei", "keip", "kelvin", "ker", "kerp"]


def _airy(which: int, doc: str, oracle: str) -> Any:
    witness = OracleExpression("z", oracle)
    return function("airy", "z", result=which, oracle=witness, complex_ok=True, doc=doc)


ai = _airy(0, "Ai(z), DLMF 9.2.2.", "airyai(z)")
aip = _airy(1, "The derivative of Ai.", "airyai(z, derivative=1)")
bi = _airy(2, "Bi(z), DLMF 9.2.3.", "airybi(z)")
bip = _airy(3, "The derivative of Bi.", "airybi(z, derivative=1)")
ai.partials(lambda t, out, z: t * aip(z))
aip.partials(lambda t, out, z: t * (z * ai(z)))
bi.partials(lambda t, out, z: t * bip(z))
bip.partials(lambda t, out, z: t * (z * bi(z)))


def airy(z: Any) -> tuple[Any, Any, Any, Any]:
    """Ai, Ai', Bi and Bi' of a tensor."""
    return ai(z), aip(z), bi(z), bip(z)


# ---- scaled ------------------------------------------------------------------------------------

_ASYMPTOTIC_FROM = 10.0  # from here on, the asymptotic series is accurate to rounding
_SERIES = [1.0]  # the coefficients u_k of DLMF 9.7.2
for _k in range(1, 40):
    _ratio = (6 * _k - 5) * (6 * _k - 3) * (6 * _k - 1) / (216 * _k * (2 * _k - 1))
    _SERIES.append(_SERIES[-1] * _ratio)


def _power_derivative(exponent: float, n: int, x: Any) -> Any:
    """The derivative of order n of x^exponent."""
    factor = 1.0
    for k in range(n):
        factor *= exponent - k
    return factor * x ** (exponent - n)


@family(
    native=True,
    oracle=OracleExpression(
        "x",
        "diff(lambda v: [airyai, airybi][growing](v) * exp((2 - 4*growing) * v**1.5 / 3), x, n)",
    ),
)
def airye_of(x: Any, *, n: int, growing: int) -> Any:
    """The derivative of order n of Ai(x) e^zeta, or of Bi(x) e^-zeta if `growing`, at x > 0.

    Below `_ASYMPTOTIC_FROM` it follows from f'' = +-(2 sqrt(x) f' + f / (2 sqrt(x))),
    differentiated n - 2 times.
    """
    sign = -1.0 if growing else 1.0
    far = x >= _ASYMPTOTIC_FROM
    y = np.where(far, x, 2.0 * _ASYMPTOTIC_FROM)
    total = np.zeros_like(x)
    for k in range(len(_SERIES) - 1, -1, -1):
        term = _SERIES[k] * (-1.5 * sign) ** k
        total = total + term * _power_derivative(-0.25 - 1.5 * k, n, y)
    asymptotic = total / ((1.0 if growing else 2.0) * sqrt(pi))
    z = np.where(far, 1.0, x)
    value, slope = theirs.airye(z)[2 * growing : 2 * growing + 2]
    derivatives = [value, slope + sign * np.sqrt(z) * value]
    for order in range(n - 1):
        terms = [
            comb(order, k)
            * (
                2.0 * _power_derivative(0.5, k, z) * derivatives[order + 1 - k]
                + 0.5 * _power_derivative(-0.5, k, z) * derivatives[order - k]
            )
            for k in range(order + 1)
        ]
        derivatives.append(sign * sum(terms))
    return np.where(far, asymptotic, derivatives[n])


airye_of.partials(lambda t, out, x, *, n, growing: t * airye_of(x, n=n + 1, growing=growing))


@airye_of.examples
def _(rng: np.random.Generator) -> Any:
    for n, growing in ((0, 0), (1, 0), (1, 1), (2, 1)):
        yield (np.exp(rng.normal(size=3)),), {"n": n, "growing": growing}
    yield (np.array([9.0, 11.0, 40.0]),), {"n": 1, "growing": 1}


def _scaled(which: int, doc: str, oracle: str, complex_ok: bool) -> Any:
    witness = OracleExpression("z", oracle)
    return function(
        "airye",
        "z",
        result=which,
        domain=[POSITIVE],
        oracle=witness,
        doc=doc,
        complex_ok=complex_ok,
        singular=True,
    )


_GROWTH, _DECAY = "exp(2 * z * sqrt(z) / 3)", "exp(-2 * z * sqrt(z) / 3)"
eai = _scaled(0, "Ai(z) e^zeta.", f"airyai(z) * {_GROWTH}", True)
eaip = _scaled(1, "Ai'(z) e^zeta.", f"airyai(z, derivative=1) * {_GROWTH}", True)
ebi = _scaled(2, "Bi(z) e^-|Re zeta|, for real z.", f"airybi(z) * {_DECAY}", False)
ebip = _scaled(3, "Bi'(z) e^-|Re zeta|, for real z.", f"airybi(z, derivative=1) * {_DECAY}", False)


def _scaled_ai_derivative(out: Any, z: Any) -> Any:
    if dtype_of(z).kind == "c":
        return eaip(z) + np.sqrt(z) * eai(z)
    return airye_of(z, n=1, growing=0)


def _scaled_bi_derivative(z: Any, factor: Any, unscaled: Any) -> Any:
    """`factor` times the derivative of Bi e^-zeta for z >= 0; `unscaled` for z < 0."""
    negative = value_of(z) < 0
    right, left = choose(negative, 1.0, z), choose(negative, z, -1.0)
    return choose(negative, unscaled(left), factor(right) * airye_of(right, n=1, growing=1))


eai.partials(lambda t, out, z: t * _scaled_ai_derivative(out, z))
eaip.partials(lambda t, out, z: t * (np.sqrt(z) * _scaled_ai_derivative(out, z)))
ebi.partials(lambda t, out, z: t * _scaled_bi_derivative(z, lambda x: 1.0, bip))
ebip.partials(
    lambda t, out, z: t * _scaled_bi_derivative(z, lambda x: -np.sqrt(x), lambda x: x * bi(x))
)


def airye(z: Any) -> tuple[Any, Any, Any, Any]:
    """The scaled functions of a tensor; for complex z, the factor of Bi is real."""
    if dtype_of(z).kind != "c":
        return eai(z), eaip(z), ebi(z), ebip(z)
    scale = np.exp(-np.abs(np.real(z * np.sqrt(z)) * (2.0 / 3.0)))
    return eai(z), eaip(z), bi(z) * scale, bip(z) * scale


# ---- Kelvin functions --------------------------------------------------------------------------


_J_DERIVATIVE = "exp(mpc(0, 3) * pi / 4) * -besselj(1, x * exp(mpc(0, 3) * pi / 4))"
_K_DERIVATIVE = "exp(mpc(0, 1) * pi / 4) * -besselk(1, x * exp(mpc(0, 1) * pi / 4))"

ber = function(
    "ber",
    "x",
    wide=True,
    oracle=OracleExpression("x", "ber(0, x)"),
    doc="Kelvin function ber, DLMF 10.61.1.",
)
bei = function(
    "bei",
    "x",
    wide=True,
    oracle=OracleExpression("x", "bei(0, x)"),
    doc="Kelvin function bei, DLMF 10.61.1.",
)
berp = function(
    "berp",
    "x",
    wide=True,
    oracle=OracleExpression("x", f"re({_J_DERIVATIVE})"),
    doc="The derivative of ber.",
)
beip = function(
    "beip",
    "x",
    wide=True,
    oracle=OracleExpression("x", f"im({_J_DERIVATIVE})"),
    doc="The derivative of bei.",
)
_options: dict[str, Any] = {"domain": [POSITIVE], "singular": True, "wide": True}
ker = function(
    "ker",
    "x",
    oracle=OracleExpression("x", "ker(0, x)"),
    doc="Kelvin function ker, DLMF 10.61.2.",
    **_options,
)
kei = function(
    "kei",
    "x",
    oracle=OracleExpression("x", "kei(0, x)"),
    doc="Kelvin function kei, DLMF 10.61.2.",
    **_options,
)
kerp = function(
    "kerp",
    "x",
    oracle=OracleExpression("x", f"re({_K_DERIVATIVE})"),
    doc="The derivative of ker.",
    **_options,
)
keip = function(
    "keip",
    "x",
    oracle=OracleExpression("x", f"im({_K_DERIVATIVE})"),
    doc="The derivative of kei.",
    **_options,
)

ber.partials(lambda t, out, x: t * berp(x))
bei.partials(lambda t, out, x: t * beip(x))
ker.partials(lambda t, out, x: t * kerp(x))
kei.partials(lambda t, out, x: t * keip(x))


def _coefficients(first: int) -> list[float]:
    """Coefficients of w' / x in powers of x^4: from the terms j = first, first + 2, ... of J_0."""
    found = []
    for j in range(first, first + 24, 2):
        sign = (-1.0) ** (j // 2)
        found.append(sign * 2 * j / (4.0**j * factorial(j) ** 2))
    return found


_BER, _BEI = _coefficients(0), _coefficients(1)


def _derivative_over_x(derivative: Any, coefficients: list[float], x: Any, power: int) -> Any:
    """The derivative of ber or bei divided by x; for |x| < 4, x^power times a series in x^4."""
    where = lookup("where")
    near = np.abs(value_of(x)) < 4.0
    close, far = where(near, x, 0.0), where(near, 4.0, x)
    fourth: Any = close * close * close * close
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * fourth + c
    if power:
        total = total * close * close
    return where(near, total, derivative(far) / far)


berp.partials(lambda t, out, x: -t * (bei(x) + _derivative_over_x(berp, _BER[1:], x, 2)))
beip.partials(lambda t, out, x: t * (ber(x) - _derivative_over_x(beip, _BEI, x, 0)))
kerp.partials(lambda t, out, x: -t * (kei(x) + out / x))
keip.partials(lambda t, out, x: t * (ker(x) - out / x))


def kelvin(x: Any) -> tuple[Any, Any, Any, Any]:
    """ber + i bei, ker + i kei, and their derivatives."""
    pairs = (ber, bei), (ker, kei), (berp, beip), (kerp, keip)
    first, second, third, fourth = [real(x) + 1j * imag(x) for real, imag in pairs]
    return first, second, third, fourth
