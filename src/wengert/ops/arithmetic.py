"""Arithmetic and powers.

Each entry states only what is its own:

    body      the value of one element, in the scalar language `s` (core/scalar.py)
    ufunc     NumPy's own function, which is what runs on arrays
    oracle    the same in mpmath's functions: an outside witness for the tests
    partials  for each operand the map t -> partial * t, in wengert operations, so that it can be
              differentiated again; None for an operand without derivative
    domain    for each operand the open interval that tests draw from
    kinks     points inside where it is continuous but not differentiable

Shape rule, dtype rule, both modes of derivative and the formula in the documentation come from
the kind (kinds/elementwise.py).  What happens at kinks and poles: docs/conventions.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.handle import value_of
from ..core.op import lookup
from ..kinds.elementwise import POSITIVE, REAL, elementwise


@elementwise(ufunc=np.add, oracle="x + y", complex_ok=True)
def add(s, x, y):
    """x + y."""
    return x + y


add.partials(lambda t, out, x, y: t, lambda t, out, x, y: t)


@elementwise(ufunc=np.subtract, oracle="x - y", complex_ok=True)
def subtract(s, x, y):
    """x - y."""
    return x - y


subtract.partials(lambda t, out, x, y: t, lambda t, out, x, y: -t)


@elementwise(ufunc=np.multiply, oracle="x * y", complex_ok=True)
def multiply(s, x, y):
    """x * y."""
    return x * y


multiply.partials(lambda t, out, x, y: t * y, lambda t, out, x, y: t * x)


@elementwise(ufunc=np.divide, oracle="x / y", domain=[REAL, POSITIVE], complex_ok=True)
def divide(s, x, y):
    """x / y, for y != 0; either sign of y, the tests draw y > 0."""
    return x / y


divide.partials(lambda t, out, x, y: t / y, lambda t, out, x, y: -t * (out / y))


@elementwise(
    ufunc=np.floor_divide, oracle="floor(x / y)", domain=[REAL, POSITIVE], discrete=True
)
def floor_divide(s, x, y):
    """The largest whole number not above x / y; a step function."""
    return s.floor(x / y)


@elementwise(ufunc=np.remainder, oracle="x - y * floor(x / y)", domain=[REAL, POSITIVE])
def remainder(s, x, y):
    """x - y floor(x / y), with the sign of y."""
    return x - y * s.floor(x / y)


remainder.partials(
    lambda t, out, x, y: t, lambda t, out, x, y: -t * np.floor_divide(value_of(x), value_of(y))
)


@elementwise(ufunc=np.negative, oracle="-x", complex_ok=True)
def negative(s, x):
    """-x."""
    return -x


negative.partials(lambda t, out, x: -t)


@elementwise(ufunc=np.positive, oracle="x", complex_ok=True)
def positive(s, x):
    """+x."""
    return x


positive.partials(lambda t, out, x: t)


@elementwise(ufunc=np.reciprocal, oracle="1 / x", domain=[POSITIVE], complex_ok=True)
def reciprocal(s, x):
    """1 / x."""
    return 1.0 / x


reciprocal.partials(lambda t, out, x: -t * (out * out))


@elementwise(ufunc=np.square, oracle="x * x", complex_ok=True)
def square(s, x):
    """x * x."""
    return x * x


square.partials(lambda t, out, x: t * (x + x))


@elementwise(ufunc=np.sqrt, oracle="sqrt(x)", domain=[POSITIVE], complex_ok=True)
def sqrt(s, x):
    """The square root; derivative infinite at 0."""
    return s.sqrt(x)


sqrt.partials(lambda t, out, x: t / (out + out))


@elementwise(ufunc=np.cbrt, oracle="sign(x) * cbrt(abs(x))", domain=[POSITIVE])
def cbrt(s, x):
    """The real cube root; derivative infinite at 0."""
    return s.cbrt(x)


cbrt.partials(lambda t, out, x: t / (3.0 * out * out))


# ---- powers: DLMF 4.2(iv) ----------------------------------------------------------------------


@elementwise(
    ufunc=np.power, oracle="x ** y", domain=[POSITIVE, (-3.0, 3.0)], complex_ok=True
)
def power(s, x, y):
    """x ** y; for negative x the exponent has to be a whole number.

    The derivative by x is y x**(y-1), and 0 where y is 0, also at x = 0.  The derivative by y is
    x**y log x, and 0 at x = 0 for y >= 0 (the limit of x**y log x for y > 0).
    """
    return s.power(x, y)


def _power_by_base(t: Any, out: Any, x: Any, y: Any) -> Any:
    where = lookup("where")
    exponent = value_of(y)
    if np.ndim(exponent) == 0:
        if exponent == 2:
            return t * (x + x)
        if exponent == 0:
            return t * (x * 0.0)
        if y is exponent:  # a plain number: the exponent y - 1 stays one too
            return t * (y * lookup("power")(x, exponent - 1))
    at_zero = np.equal(exponent, 0)
    if not at_zero.any():
        return t * (y * lookup("power")(x, y - 1))
    safe = where(at_zero, 1, y)
    return t * where(at_zero, 0.0, y * lookup("power")(x, safe - 1))


def _power_by_exponent(t: Any, out: Any, x: Any, y: Any) -> Any:
    where = lookup("where")
    base = value_of(x)
    at_zero = np.equal(base, 0)
    log = lookup("log")
    if not at_zero.any():
        return t * (out * log(x))
    return where(at_zero, 0.0, t * (out * log(where(at_zero, 1.0, x))))


power.partials(_power_by_base, _power_by_exponent)


@elementwise(ufunc=np.float_power, oracle="x ** y", domain=[POSITIVE, (-3.0, 3.0)])
def float_power(s, x, y):
    """x ** y, computed in float64 or more."""
    return s.power(x, y)


float_power.partials(_power_by_base, _power_by_exponent)
