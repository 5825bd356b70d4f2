"""Kelvin's functions, DLMF 10.61: ber + i bei is J_0 of x e^(3 pi i / 4), ker + i kei its K_0.

    ber, bei, ker, kei       the functions
    berp, beip, kerp, keip   their slopes
    kelvin                   all of them, as four complex results

Both pairs satisfy w'' = i w - w' / x, which gives the slope of a slope; w' / x of ber and bei is
smooth at 0, where it is their power series.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE

from .oracle_expression import Witness
from .register import function

__all__ = "ber bei ker kei berp beip kerp keip kelvin".split()

_SLOPE = "exp(mpc(0, 3) * pi / 4) * -besselj(1, x * exp(mpc(0, 3) * pi / 4))"
_FALL = "exp(mpc(0, 1) * pi / 4) * -besselk(1, x * exp(mpc(0, 1) * pi / 4))"

ber = function(
    "ber", "x", wide=True, oracle=Witness("x", "ber(0, x)"), doc="Kelvin's ber, DLMF 10.61.1."
)
bei = function(
    "bei", "x", wide=True, oracle=Witness("x", "bei(0, x)"), doc="Kelvin's bei, DLMF 10.61.1."
)
berp = function(
    "berp", "x", wide=True, oracle=Witness("x", f"re({_SLOPE})"), doc="The slope of ber."
)
beip = function(
    "beip", "x", wide=True, oracle=Witness("x", f"im({_SLOPE})"), doc="The slope of bei."
)
_options: dict[str, Any] = {"domain": [POSITIVE], "singular": True, "wide": True}
ker = function(
    "ker", "x", oracle=Witness("x", "ker(0, x)"), doc="Kelvin's ker, DLMF 10.61.2.", **_options
)
kei = function(
    "kei", "x", oracle=Witness("x", "kei(0, x)"), doc="Kelvin's kei, DLMF 10.61.2.", **_options
)
kerp = function(
    "kerp", "x", oracle=Witness("x", f"re({_FALL})"), doc="The slope of ker.", **_options
)
keip = function(
    "keip", "x", oracle=Witness("x", f"im({_FALL})"), doc="The slope of kei.", **_options
)

ber.partials(lambda t, out, x: t * berp(x))
bei.partials(lambda t, out, x: t * beip(x))
ker.partials(lambda t, out, x: t * kerp(x))
kei.partials(lambda t, out, x: t * keip(x))


def _coefficients(first: int) -> list[float]:
    """Of the slope over x in powers of x^4: the terms of J_0 with j = first, first + 2, ..."""
    found = []
    for j in range(first, first + 24, 2):
        sign = (-1.0) ** (j // 2)
        found.append(sign * 2 * j / (4.0**j * factorial(j) ** 2))
    return found


_BER, _BEI = _coefficients(0), _coefficients(1)


def _over(slope: Any, coefficients: list[float], x: Any, power: int) -> Any:
    """The slope of ber or bei over x: up to |x| = 4 the series x^power times one in x^4."""
    where = lookup("where")
    near = np.abs(value_of(x)) < 4.0
    close, far = where(near, x, 0.0), where(near, 4.0, x)
    fourth: Any = close * close * close * close
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * fourth + c
    if power:
        total = total * close * close
    return where(near, total, slope(far) / far)


berp.partials(lambda t, out, x: -t * (bei(x) + _over(berp, _BER[1:], x, 2)))
beip.partials(lambda t, out, x: t * (ber(x) - _over(beip, _BEI, x, 0)))
kerp.partials(lambda t, out, x: -t * (kei(x) + out / x))
keip.partials(lambda t, out, x: t * (ker(x) - out / x))


def kelvin(x: Any) -> tuple[Any, Any, Any, Any]:
    """ber + i bei, ker + i kei and their slopes, of a tensor."""
    pairs = (ber, bei), (ker, kei), (berp, beip), (kerp, keip)
    first, second, third, fourth = [real(x) + 1j * imag(x) for real, imag in pairs]
    return first, second, third, fourth
