"""Exponential and logarithm: DLMF 4.2, derivatives 4.7."""

from __future__ import annotations

import numpy as np

from ..kinds.elementwise import POSITIVE, elementwise


@elementwise(ufunc=np.exp, oracle="exp(x)", complex_ok=True)
def exp(s, x):
    """e**x; overflows to inf above 709.78 in float64."""
    return s.exp(x)


exp.partials(lambda t, out, x: t * out)


@elementwise(ufunc=np.log, oracle="log(x)", domain=[POSITIVE], complex_ok=True)
def log(s, x):
    """The natural logarithm."""
    return s.log(x)


log.partials(lambda t, out, x: t / x)
