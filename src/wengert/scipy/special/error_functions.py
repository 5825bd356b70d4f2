"""Error functions, the normal distribution, Dawson, Faddeeva and Voigt functions: DLMF 7.

    erf, erfc, erfi, erfinv, erfcinv     error functions and their inverses
    erfcx, dawsn, wofz, voigt_profile    scaled, so that they neither overflow nor underflow
    ndtr, log_ndtr, ndtri, ndtri_exp     normal distribution function, its logarithm, their inverses
    erfcx_of                             of e^(x^2) erfc(x): (-2)^n M_n, M_n = 2 / sqrt(pi) int t^n
                                         exp(-t^2 - 2 x t) dt
    dawsn_of                             of Dawson's integral
    wofz_of                              of w(z) = e^(-z^2) erfc(-i z), complex
    voigt_of                             of w((x + i gamma) / (sigma sqrt 2)) / (sigma sqrt(2 pi))

For real operands, erf and erfc are operations of wengert
(_engine/ops/elementwise/error_function.py).  For x < 0 the derivative of log_ndtr is
sqrt(2 / pi) / erfcx(-x / sqrt 2), which is accurate down to -1e300.

Each function satisfies a differential equation f' = -2 x f + c, from which derivatives of all
orders follow; but for large x this cancels 2 log10(x) digits.  There, M_(n+1) / M_n is computed by
a continued fraction (DLMF 7.9.3 is the first of them), which needs Re x > 0, or the asymptotic
series (DLMF 7.12) is differentiated term by term.
"""

from __future__ import annotations

from math import factorial, inf, pi, sqrt
from typing import Any

import numpy as np
import scipy.special as theirs

from wengert._engine.core.handle import dtype_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import call
from wengert._engine.kinds.elementwise import POSITIVE, REAL, UNIT
from wengert._engine.ops.elementwise import error_function as ours

from .register import OracleExpression, family, function
from .series_and_quadrature import repeat

__all__ = """
    erf erfc erfi erfinv erfcinv erfcx dawsn wofz voigt_profile ndtr log_ndtr ndtri ndtri_exp
""".split()


_LEVELS = 160  # of the continued fraction; sufficient for Re x >= 1.5
_CONTINUED_FRACTION_FROM = 1.5
_ASYMPTOTIC_FROM = 6.0
_TERMS = 34


def _moments(n: int, first: Any, x: Any) -> Any:
    """M_n from M_0 by the differential equation; accurate for x <= 0 and small x."""
    before, now = np.zeros_like(first), first
    for k in range(n):
        step = 1.0 / sqrt(pi) if k == 0 else 0.5 * k * before
        before, now = now, step - x * now
    return now


def _moments_by_fraction(n: int, first: Any, x: Any) -> Any:
    """M_n from M_0 by the continued fraction, for Re x >= 1.5."""
    (ratio,) = repeat(
        lambda k, ratio: (0.5 * (n + _LEVELS + 1.0 - k) / (x + ratio),),
        (np.zeros_like(first),),
        _LEVELS + 1,
    )
    for k in range(n - 1, -1, -1):
        ratio = 0.5 * (k + 1) / (x + ratio)
        first = first * ratio
    return first


@family(
    native=True,
    oracle=OracleExpression(
        "x", "2 / sqrt(pi) * quad(lambda t: (-2*t)**n * exp(-t*t - 2*x*t), [0, 0.5, 1, 3, 8, 30])"
    ),
)
def erfcx_of(x: Any, *, n: int) -> Any:
    """The derivative of order n of e^(x^2) erfc(x)."""
    found, far = _moments(n, theirs.erfcx(x), x), x >= _CONTINUED_FRACTION_FROM
    if far.any():
        found[far] = _moments_by_fraction(n, theirs.erfcx(x[far]), x[far])
    return (-2.0) ** n * found


erfcx_of.partials(lambda t, out, x, *, n: t * erfcx_of(x, n=n + 1))


def _asymptotic(n: int, z: Any) -> Any:
    """The derivative of order n of the sum of (2k - 1)!! / (2^k z^(2k + 1)), z large."""
    square = 1.0 / (z * z)
    total = np.zeros_like(z)
    for k in range(_TERMS, -1, -1):
        # the ratio of two consecutive coefficients
        ratio = (2 * k + 1) * (2 * k + 1 + n) * (2 * k + 2 + n) / (2.0 * (2 * k + 1) * (2 * k + 2))
        total = 1.0 + total * square * ratio
    return (-1.0) ** n * factorial(n) * total / z ** (n + 1)


def _by_equation(n: int, first: Any, z: Any, constant: Any) -> Any:
    """The derivative of order n of f, where f' = -2 z f + constant."""
    before, now = np.zeros_like(first), first
    for k in range(n):
        before, now = now, (constant if k == 0 else -2.0 * k * before) - 2.0 * z * now
    return now


@family(
    native=True,
    oracle=OracleExpression("x", "diff(lambda v: sqrt(pi) / 2 * exp(-v * v) * erfi(v), x, n)"),
)
def dawsn_of(x: Any, *, n: int) -> Any:
    """The derivative of order n of Dawson's integral."""
    far = np.abs(x) >= _ASYMPTOTIC_FROM
    close = np.where(far, 0.0, x)
    near = _by_equation(n, theirs.dawsn(close), close, 1.0)
    return np.where(far, 0.5 * _asymptotic(n, np.where(far, x, _ASYMPTOTIC_FROM)), near)


dawsn_of.partials(lambda t, out, x, *, n: t * dawsn_of(x, n=n + 1))


def _gaussian_derivative(n: int, z: Any) -> Any:
    """The derivative of order n of exp(-z^2)."""
    return _by_equation(n, np.exp(-z * z), z, 0.0)


def _upper_half_plane(n: int, z: Any) -> Any:
    """The derivative of order n of w at z, for Im z >= 0."""
    high, far = z.imag >= _CONTINUED_FRACTION_FROM, np.abs(z) >= _ASYMPTOTIC_FROM
    out = np.zeros_like(z)
    if high.any():
        x = -1j * z[high]
        out[high] = (2j) ** n * _moments_by_fraction(n, theirs.wofz(1j * x), x)
    outer, inner = far & ~high, ~(far | high)
    if outer.any():
        y = z[outer]
        on_axis = y.imag < 1e-15  # where the series lacks the term exp(-z^2)
        gaussian = np.where(on_axis, _gaussian_derivative(n, np.where(on_axis, y, 0.0)), 0.0)
        out[outer] = 1j / sqrt(pi) * _asymptotic(n, y) + gaussian
    if inner.any():
        y = z[inner]
        out[inner] = _by_equation(n, theirs.wofz(y), y, 2j / sqrt(pi))
    return out


@family(
    native=True,
    oracle=OracleExpression("z", "diff(lambda v: exp(-v*v) * erfc(-1j * v), z, n)"),
    complex_ok=True,
)
def wofz_of(z: Any, *, n: int) -> Any:
    """The derivative of order n of w(z); for Im z < 0 that of 2 exp(-z^2) - w(-z)."""
    z = z + 0j
    below = z.imag < 0
    w = _upper_half_plane(n, np.where(below, -z, z))
    if below.any():
        w[below] = 2.0 * _gaussian_derivative(n, z[below]) - (-1.0) ** n * w[below]
    return w


wofz_of.partials(lambda t, out, z, *, n: t * wofz_of(z, n=n + 1))


@family(
    native=True,
    oracle=OracleExpression(
        "x sigma gamma",
        "[re, im][part](diff(lambda v: (lambda z: exp(-z*z) * erfc(-1j * z) / (sigma * sqrt(2*pi)))"
        "((v + 1j * gamma) / (sigma * sqrt(2))), x, n))",
    ),
)
def voigt_of(x: Any, sigma: Any, gamma: Any, *, n: int, part: int) -> Any:
    """The real (part 0) or imaginary (part 1) part of the n-th derivative with respect to x."""
    no_width = sigma == 0
    width = np.where(no_width, 1.0, sigma) * sqrt(2.0)
    w = wofz_of.values((x + 1j * gamma) / width, n=n) / (width ** (n + 1) * sqrt(pi))
    pole = np.where(no_width, x + 1j * gamma, 1.0)  # a Lorentz profile
    w = np.where(no_width, 1j / pi * (-1.0) ** n * factorial(n) / pole ** (n + 1), w)
    return w.imag if part else w.real


def _by_gamma(t: Any, x: Any, sigma: Any, gamma: Any, n: int, part: int) -> Any:
    """By the Cauchy-Riemann equations, as the function is analytic in x + i gamma."""
    slope = voigt_of(x, sigma, gamma, n=n + 1, part=1 - part)
    return t * slope if part else -t * slope


voigt_of.partials(
    lambda t, out, x, s, g, *, n, part: t * voigt_of(x, s, g, n=n + 1, part=part),
    # the heat equation: d/dsigma = sigma d^2/dx^2
    lambda t, out, x, s, g, *, n, part: t * (s * voigt_of(x, s, g, n=n + 2, part=part)),
    lambda t, out, x, s, g, *, n, part: _by_gamma(t, x, s, g, n, part),
)


@erfcx_of.examples
def _(rng: np.random.Generator) -> Any:
    for n in (0, 1, 2, 4):
        yield (rng.normal(size=4),), {"n": n}
    yield (np.array([1.5, 3.0, 12.0]),), {"n": 2}


@dawsn_of.examples
def _(rng: np.random.Generator) -> Any:
    for n in (0, 1, 2):
        yield (rng.normal(size=4),), {"n": n}
    yield (np.array([-8.5, 6.5, 7.0]),), {"n": 1}


@wofz_of.examples
def _(rng: np.random.Generator) -> Any:
    for n, size in ((0, 1.0), (1, 2.0), (2, 0.7)):
        yield (size * (rng.normal(size=3) + 1j * rng.normal(size=3)),), {"n": n}
    yield (np.array([7.5 + 0.1j, -9.0 + 4.0j, 3.0 + 2.0j]),), {"n": 1}


@voigt_of.examples
def _(rng: np.random.Generator) -> Any:
    for n, part in ((0, 0), (1, 1)):
        x, s, g = rng.normal(size=3), rng.uniform(0.5, 2.0, size=3), rng.uniform(0.1, 2.0, size=3)
        yield (x, s, g), {"n": n, "part": part}


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
