"""Circular functions and their inverses: DLMF 4.14 to 4.26."""

from __future__ import annotations

import numpy as np

from ..kinds.elementwise import elementwise


@elementwise(ufunc=np.sin, oracle="sin(x)", complex_ok=True)
def sin(s, x):
    """The sine of x radians."""
    return s.sin(x)


sin.partials(lambda t, out, x: t * cos(x))


@elementwise(ufunc=np.cos, oracle="cos(x)", complex_ok=True)
def cos(s, x):
    """The cosine of x radians."""
    return s.cos(x)


cos.partials(lambda t, out, x: -t * sin(x))
