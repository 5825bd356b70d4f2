"""Error functions, the normal distribution, Dawson, Faddeeva and Voigt functions: DLMF 7.

    erf, erfc, erfi, erfinv, erfcinv     error functions and their inverses
    erfcx, dawsn, wofz, voigt_profile    scaled, so that they neither overflow nor underflow
    ndtr, log_ndtr, ndtri, ndtri_exp     normal distribution function, its logarithm, their inverses

For real operands, erf and erfc are operations of wengert
(_engine/ops/elementwise/error_function.py).  For x < 0 the derivative of log_ndtr is
sqrt(2 / pi) / erfcx(-x / sqrt 2), which is accurate down to -1e300.
"""

from __future__ import annotations

from math import inf, pi, sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import call
from wengert._engine.kinds.elementwise import POSITIVE, REAL, UNIT
from wengert._engine.ops.elementwise import error_function as ours

from .error_function_derivatives import dawsn_of, erfcx_of, voigt_of, wofz_of
from .oracle_expression import OracleExpression
from .register import function

__all__ = """
    erf erfc erfi erfinv erfcinv erfcx dawsn wofz voigt_profile ndtr log_ndtr ndtri ndtri_exp
""".split()

_TWO_OVER_SQRT_PI = 2.0 / sqrt(pi)
_SQRT_HALF = sqrt(0.5)
_bell = lookup("bell")


def _is_complex(x: Any) -> bool:
    return bool(dtype_of(x).kind == "c")


def _gaussian(x: Any) -> Any:
    """exp(-x^2), accurate in the tails too."""
    return np.exp(-x * x) if _is_complex(x) else _bell(x)


_erf = function(
    "erf",
    "x",
    oracle="erf(x)",
    complex_ok=True,
    doc="Error function of complex arguments, DLMF 7.2.1.",
)
_erf.partials(lambda t, out, x: t * (_TWO_OVER_SQRT_PI * _gaussian(x)))
_erfc = function(
    "erfc",
    "x",
    oracle="erfc(x)",
    complex_ok=True,
    doc="1 - erf(x) of complex arguments, DLMF 7.2.2.",
)
_erfc.partials(lambda t, out, x: -t * (_TWO_OVER_SQRT_PI * _gaussian(x)))


def erf(x: Any) -> Any:
    """The error function of real or complex tensors."""
    return _erf(x) if _is_complex(x) else ours.erf(x)


def erfc(x: Any) -> Any:
    """1 - erf of real or complex tensors."""
    return _erfc(x) if _is_complex(x) else ours.erfc(x)


erfi = function(
    "erfi",
    "x",
    oracle="erfi(x)",
    complex_ok=True,
    doc="-i erf(i x); its derivative is 2 / sqrt(pi) exp(x^2).",
)
erfi.partials(lambda t, out, x: t * (_TWO_OVER_SQRT_PI * np.exp(x * x)))

erfinv = function(
    "erfinv",
    "x",
    domain=[UNIT],
    oracle="erfinv(x)",
    singular=True,
    doc="The inverse of erf, DLMF 7.17; its derivative is sqrt(pi) / 2 exp(erfinv(x)^2).",
)
erfinv.partials(lambda t, out, x: t * (np.exp(out * out) / _TWO_OVER_SQRT_PI))

erfcinv = function(
    "erfcinv",
    "x",
    domain=[(0.0, 2.0)],
    oracle=OracleExpression("x", "findroot(lambda y: erfc(y) - x, erfinv(1 - x))"),
    singular=True,
    doc="The inverse of erfc; its derivative is -sqrt(pi) / 2 exp(erfcinv(x)^2).",
)
erfcinv.partials(lambda t, out, x: -t * (np.exp(out * out) / _TWO_OVER_SQRT_PI))

# ---- scaled ------------------------------------------------------------------------------------

erfcx = function(
    "erfcx",
    "x",
    oracle="exp(x * x) * erfc(x)",
    complex_ok=True,
    doc="exp(x^2) erfc(x), DLMF 7.2.3 at i x; its derivative is 2 x erfcx(x) - 2 / sqrt(pi).",
)
erfcx.partials(
    lambda t, out, x: t * (1j * wofz_of(1j * x, n=1) if _is_complex(x) else erfcx_of(x, n=1))
)

dawsn = function(
    "dawsn",
    "x",
    oracle="sqrt(pi) / 2 * exp(-x * x) * erfi(x)",
    complex_ok=True,
    doc="Dawson's integral, DLMF 7.2.5; its derivative is 1 - 2 x dawsn(x).",
)
dawsn.partials(lambda t, out, x: t * (1.0 - 2.0 * x * out if _is_complex(x) else dawsn_of(x, n=1)))

wofz = function(
    "wofz",
    "x",
    oracle=OracleExpression("x", "exp(-x * x) * erfc(-1j * x)"),
    complex_ok=True,
    doc="Faddeeva function w(z) = exp(-z^2) erfc(-i z), DLMF 7.2.3; w' = -2 z w + 2 i / sqrt(pi).",
)
wofz.partials(lambda t, out, x: t * wofz_of(x, n=1))

voigt_profile = function(
    "voigt_profile",
    "x sigma gamma",
    domain=[REAL, POSITIVE, POSITIVE],
    oracle=OracleExpression(
        "x sigma gamma",
        "re((lambda z: exp(-z*z) * erfc(-1j * z))((x + 1j * gamma) / (sigma * sqrt(2))))"
        " / (sigma * sqrt(2 * pi))",
    ),
    singular=True,
    doc="Voigt profile, DLMF 7.19: the convolution of a normal and a Cauchy density.",
)
voigt_profile.partials(
    lambda t, out, x, sigma, gamma: t * voigt_of(x, sigma, gamma, n=1, part=0),
    lambda t, out, x, sigma, gamma: t * (sigma * voigt_of(x, sigma, gamma, n=2, part=0)),
    lambda t, out, x, sigma, gamma: -t * voigt_of(x, sigma, gamma, n=1, part=1),
)

# ---- the normal distribution -------------------------------------------------------------------

ndtr = function(
    "ndtr",
    "x",
    oracle="erfc(-x / sqrt(mpf(2))) / 2",
    complex_ok=True,
    doc="The normal distribution function; its derivative is the density.",
)
ndtr.cost = call(95.0)
ndtr.partials(lambda t, out, x: t * (_gaussian(x * _SQRT_HALF) / sqrt(2.0 * pi)))

log_ndtr = function(
    "log_ndtr",
    "x",
    oracle="log(erfc(-x / sqrt(mpf(2))) / 2)",
    complex_ok=True,
    doc="Logarithm of the normal distribution function; its derivative is 1 / (Mills ratio of -x).",
)


def _log_ndtr_partial(t: Any, x: Any) -> Any:
    """t / (Mills ratio of -x); for x > 0 as density / ndtr, where erfcx would overflow."""
    if _is_complex(x):
        return t * (sqrt(2.0 / pi) / erfcx(x * -_SQRT_HALF))
    left, right = np.where(x < 0.0, x, 0.0), np.where(x < 0.0, 0.0, x)
    of_left = sqrt(2.0 / pi) / erfcx(left * -_SQRT_HALF)
    of_right = _gaussian(right * _SQRT_HALF) / (sqrt(2.0 * pi) * ndtr(right))
    return t * np.where(x < 0.0, of_left, of_right)


log_ndtr.partials(lambda t, out, x: _log_ndtr_partial(t, x))

ndtri = function(
    "ndtri",
    "p",
    domain=[(0.0, 1.0)],
    oracle=OracleExpression("p", "findroot(lambda y: ncdf(y) - p, sqrt(2) * erfinv(2 * p - 1))"),
    singular=True,
    doc="The inverse of ndtr; its derivative is 1 / (density at ndtri(p)).",
)
ndtri.partials(lambda t, out, p: t * (sqrt(2.0 * pi) * np.exp(0.5 * out * out)))

ndtri_exp = function(
    "ndtri_exp",
    "y",
    domain=[(-inf, 0.0)],
    oracle=OracleExpression(
        "y", "findroot(lambda v: ncdf(v) - exp(y), sqrt(2) * erfinv(2 * exp(y) - 1))"
    ),
    singular=True,
    doc="ndtri(exp(y)), the inverse of log_ndtr; its derivative is the Mills ratio at minus it.",
)
ndtri_exp.partials(lambda t, out, y: t * (sqrt(0.5 * pi) * erfcx(out * -_SQRT_HALF)))
