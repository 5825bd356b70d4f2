"""Airy's functions, DLMF 9: Ai, Ai', Bi, Bi', which solve w'' = z w, and scaled ones.

    airy      Ai, Ai', Bi, Bi', also complex
    airye     Ai and Ai' times e^zeta, Bi and Bi' times e^-|Re zeta|, zeta = 2/3 z^(3/2)

The slope of a scaled function is that of the function plus sqrt(z) times it, a difference that
loses its digits for large z: from `_ASYMPTOTIC_FROM` on the asymptotic series DLMF 9.7 is
differentiated.
"""

from __future__ import annotations

from math import comb, pi, sqrt
from typing import Any

import numpy as np
import scipy.special as theirs

from wengert._engine.core.handle import dtype_of, value_of
from wengert._engine.kinds.elementwise import POSITIVE
from wengert._engine.ops.elementwise.selection import where as choose

from .derivative_families import family
from .oracle_expression import Witness
from .register import function

__all__ = ["airy", "airye"]


def _airy(which: int, doc: str, oracle: str) -> Any:
    witness = Witness("z", oracle)
    return function("airy", "z", result=which, oracle=witness, complex_ok=True, doc=doc)


ai = _airy(0, "Ai(z), DLMF 9.2.2.", "airyai(z)")
aip = _airy(1, "The slope of Ai.", "airyai(z, derivative=1)")
bi = _airy(2, "Bi(z), DLMF 9.2.3.", "airybi(z)")
bip = _airy(3, "The slope of Bi.", "airybi(z, derivative=1)")
ai.partials(lambda t, out, z: t * aip(z))
aip.partials(lambda t, out, z: t * (z * ai(z)))
bi.partials(lambda t, out, z: t * bip(z))
bip.partials(lambda t, out, z: t * (z * bi(z)))


def airy(z: Any) -> tuple[Any, Any, Any, Any]:
    """Ai, Ai', Bi and Bi' of a tensor."""
    return ai(z), aip(z), bi(z), bip(z)


# ---- scaled ------------------------------------------------------------------------------------

_ASYMPTOTIC_FROM = 10.0  # from here on the asymptotic series has all digits
_SERIES = [1.0]  # the numbers u_k of DLMF 9.7.2
for _k in range(1, 40):
    _ratio = (6 * _k - 5) * (6 * _k - 3) * (6 * _k - 1) / (216 * _k * (2 * _k - 1))
    _SERIES.append(_SERIES[-1] * _ratio)


def _power_slope(exponent: float, n: int, x: Any) -> Any:
    """The derivative of order n of x^exponent."""
    factor = 1.0
    for k in range(n):
        factor *= exponent - k
    return factor * x ** (exponent - n)


@family(
    native=True,
    oracle=Witness(
        "x",
        "diff(lambda v: [airyai, airybi][growing](v) * exp((2 - 4*growing) * v**1.5 / 3), x, n)",
    ),
)
def airye_of(x: Any, *, n: int, growing: int) -> Any:
    """The derivative of order n of Ai(x) e^zeta, or of Bi(x) e^-zeta, at x > 0.

    Below `_ASYMPTOTIC_FROM` by f'' = +-(2 sqrt(x) f' + f / (2 sqrt(x))), n - 2 times
    differentiated.
    """
    sign = -1.0 if growing else 1.0
    far = x >= _ASYMPTOTIC_FROM
    y = np.where(far, x, 2.0 * _ASYMPTOTIC_FROM)
    total = np.zeros_like(x)
    for k in range(len(_SERIES) - 1, -1, -1):
        term = _SERIES[k] * (-1.5 * sign) ** k
        total = total + term * _power_slope(-0.25 - 1.5 * k, n, y)
    outer = total / ((1.0 if growing else 2.0) * sqrt(pi))
    z = np.where(far, 1.0, x)
    value, slope = theirs.airye(z)[2 * growing : 2 * growing + 2]
    found = [value, slope + sign * np.sqrt(z) * value]
    for order in range(n - 1):
        parts = [
            comb(order, k)
            * (
                2.0 * _power_slope(0.5, k, z) * found[order + 1 - k]
                + 0.5 * _power_slope(-0.5, k, z) * found[order - k]
            )
            for k in range(order + 1)
        ]
        found.append(sign * sum(parts))
    return np.where(far, outer, found[n])


airye_of.partials(lambda t, out, x, *, n, growing: t * airye_of(x, n=n + 1, growing=growing))


@airye_of.examples
def _(rng: np.random.Generator) -> Any:
    for n, growing in ((0, 0), (1, 0), (1, 1), (2, 1)):
        yield (np.exp(rng.normal(size=3)),), {"n": n, "growing": growing}
    yield (np.array([9.0, 11.0, 40.0]),), {"n": 1, "growing": 1}


def _scaled(which: int, doc: str, oracle: str, complex_ok: bool) -> Any:
    witness = Witness("z", oracle)
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


_UP, _DOWN = "exp(2 * z * sqrt(z) / 3)", "exp(-2 * z * sqrt(z) / 3)"
eai = _scaled(0, "Ai(z) e^zeta.", f"airyai(z) * {_UP}", True)
eaip = _scaled(1, "Ai'(z) e^zeta.", f"airyai(z, derivative=1) * {_UP}", True)
ebi = _scaled(2, "Bi(z) e^-|Re zeta| of real z.", f"airybi(z) * {_DOWN}", False)
ebip = _scaled(3, "Bi'(z) e^-|Re zeta|.", f"airybi(z, derivative=1) * {_DOWN}", False)


def _decaying_slope(out: Any, z: Any) -> Any:
    if dtype_of(z).kind == "c":
        return eaip(z) + np.sqrt(z) * eai(z)
    return airye_of(z, n=1, growing=0)


def _growing_slope(z: Any, factor: Any, slope: Any) -> Any:
    """`factor` times the slope of what is scaled at z >= 0; `slope` below, where nothing is."""
    below = value_of(z) < 0
    up, down = choose(below, 1.0, z), choose(below, z, -1.0)
    return choose(below, slope(down), factor(up) * airye_of(up, n=1, growing=1))


eai.partials(lambda t, out, z: t * _decaying_slope(out, z))
eaip.partials(lambda t, out, z: t * (np.sqrt(z) * _decaying_slope(out, z)))
ebi.partials(lambda t, out, z: t * _growing_slope(z, lambda x: 1.0, bip))
ebip.partials(lambda t, out, z: t * _growing_slope(z, lambda x: -np.sqrt(x), lambda x: x * bi(x)))


def airye(z: Any) -> tuple[Any, Any, Any, Any]:
    """The scaled functions of a tensor; of complex z, Bi times a scale that is real."""
    if dtype_of(z).kind != "c":
        return eai(z), eaip(z), ebi(z), ebip(z)
    scale = np.exp(-np.abs(np.real(z * np.sqrt(z)) * (2.0 / 3.0)))
    return eai(z), eaip(z), bi(z) * scale, bip(z) * scale
