"""Kelvin functions, DLMF 10.61: ber + i bei = J_0(x e^(3 pi i / 4)), and ker, kei from K_0.

    ber, bei, ker, kei       the functions
    berp, beip, kerp, keip   their derivatives
    kelvin                   all of them, as four complex results

Both pairs satisfy w'' = i w - w' / x, which gives the second derivatives.  For ber and bei, w' / x
is smooth at 0; near 0 it is computed from its power series.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE

from .register import OracleExpression, function

__all__ = "ber bei ker kei berp beip kerp keip kelvin".split()

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
