"""Bessel functions of order 0 and 1: DLMF 10.

    j0 j1, y0 y1          J and Y
    i0 i1 i0e i1e         I, and exp(-|x|) I
    k0 k1 k0e k1e         K, and exp(x) K

Their derivatives are Bessel functions of neighboring orders (DLMF 10.6.3, 10.29.3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.kinds.elementwise import POSITIVE, REAL

from .bessel import iv, ive, jv, kv, kve, yv
from .oracle_expression import OracleExpression
from .register import function

__all__ = "j0 j1 y0 y1 i0 i1 i0e i1e k0 k1 k0e k1e".split()


def _entry(name: str, doc: str, expression: str, domain: Any = POSITIVE) -> Any:
    return function(
        name,
        "x",
        domain=[domain],
        oracle=OracleExpression("x", expression),
        singular=True,
        half=False,
        doc=doc,
    )


j0 = _entry("j0", "J of order 0, DLMF 10.2.2.", "besselj(0, x)", REAL)
j1 = _entry("j1", "J of order 1, DLMF 10.2.2.", "besselj(1, x)", REAL)
y0 = _entry("y0", "Y of order 0, DLMF 10.2.3.", "bessely(0, x)")
y1 = _entry("y1", "Y of order 1, DLMF 10.2.3.", "bessely(1, x)")
j0.partials(lambda t, out, x: -t * j1(x))
j1.partials(lambda t, out, x: 0.5 * t * (j0(x) - jv(2.0, x)))
y0.partials(lambda t, out, x: -t * y1(x))
y1.partials(lambda t, out, x: 0.5 * t * (y0(x) - yv(2.0, x)))

i0 = _entry("i0", "I of order 0, DLMF 10.25.2.", "besseli(0, x)", REAL)
i1 = _entry("i1", "I of order 1, DLMF 10.25.2.", "besseli(1, x)", REAL)
i0e = _entry("i0e", "exp(-|x|) times I of order 0.", "exp(-abs(x)) * besseli(0, x)", REAL)
i1e = _entry("i1e", "exp(-|x|) times I of order 1.", "exp(-abs(x)) * besseli(1, x)", REAL)
i0.partials(lambda t, out, x: t * i1(x))
i1.partials(lambda t, out, x: 0.5 * t * (i0(x) + iv(2.0, x)))
i0e.partials(lambda t, out, x: t * (i1e(x) - np.sign(x) * out))
i1e.partials(lambda t, out, x: t * (0.5 * (i0e(x) + ive(2.0, x)) - np.sign(x) * out))

k0 = _entry("k0", "K of order 0, DLMF 10.25.3.", "besselk(0, x)")
k1 = _entry("k1", "K of order 1, DLMF 10.25.3.", "besselk(1, x)")
k0e = _entry("k0e", "exp(x) times K of order 0.", "exp(x) * besselk(0, x)")
k1e = _entry("k1e", "exp(x) times K of order 1.", "exp(x) * besselk(1, x)")
k0.partials(lambda t, out, x: -t * k1(x))
k1.partials(lambda t, out, x: -0.5 * t * (k0(x) + kv(2.0, x)))
k0e.partials(lambda t, out, x: t * (out - k1e(x)))
k1e.partials(lambda t, out, x: t * (out - 0.5 * (k0e(x) + kve(2.0, x))))
