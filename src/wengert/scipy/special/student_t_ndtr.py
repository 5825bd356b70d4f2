"""Student's t distribution and its inverses, Owen's T function, the Kolmogorov distribution.

    stdtr stdtrit stdtridf    Student's t distribution function, its inverses in t and in df
    owens_t                   Owen's T
    kolmogorov kolmogi        limit distribution of the Kolmogorov statistic, and its inverse
    stdtr_order, t_density    derivatives of the distribution function with respect to df, and of
                              the density

A derivative with respect to df is the integral from 0 to t of the density times a polynomial.  For
t > 1 it is computed as minus the integral from t to infinity, as the integral from 0 to infinity is
0; this avoids cancellation.
"""

from __future__ import annotations

from math import comb, factorial, inf, pi, sqrt
from typing import Any

import numpy as np
from scipy import special

from wengert._engine.ops.elementwise.error_function import erf

from .register import OracleExpression, family, inverse_partials, sampled_function
from .series_and_quadrature import (
    edge,
    exponential,
    integrals,
    log_gamma,
    log_minus_psi,
    stirling_remainder,
    zeros,
)

__all__ = ["stdtr", "stdtrit", "stdtridf", "owens_t", "kolmogorov", "kolmogi"]

_NEGLIGIBLE_FALL = 20.0  # exp(-2 * 20) is negligible compared to 1


def _constant(df: Any) -> Any:
    """gamma((df+1)/2) / (sqrt(pi df) gamma(df/2)), accurate for large df too."""
    half = 0.5 * df
    # By Stirling's formula: (h + 1/2)^h / h^(h - 1/2) is sqrt(h) (1 + 1/(2h))^h.
    exponent = (
        half * np.log1p(0.5 / half)
        - 0.5
        + stirling_remainder(half + 0.5)
        - stirling_remainder(half)
    )
    return np.exp(exponent) / sqrt(2.0 * pi)


def _log_constant_series(n: int, df: Any) -> list[Any]:
    """Coefficients 1 to n of the series of log(_constant) in a step of df."""
    half = 0.5 * df
    above, below = log_gamma(half + 0.5, n), log_gamma(half, n)
    log_constant = []
    for k in range(1, n + 1):
        coefficient = (above[k - 1] - below[k - 1]) * 0.5**k
        if k == 1:  # psi(h + 1/2) - psi(h), without cancellation
            coefficient = 0.5 * (
                log_minus_psi(half) - log_minus_psi(half + 0.5) + np.log1p(0.5 / half)
            )
        log_constant.append(coefficient - 0.5 * (-1.0) ** (k - 1) / (k * df**k))
    return log_constant


def _log_growth(df: Any, log_t: Any) -> Any:
    """log(1 + t^2 / df), also where t^2 overflows."""
    return np.logaddexp(0.0, 2.0 * log_t - np.log(df))


def _weight(n: int, df: Any, log_t: Any, log_constant: list[Any]) -> Any:
    """The coefficient of h^n in the density at df + h, divided by the density at df.

    The exponent -(df + h + 1)/2 (log(df + h + t^2) - log(df + h)) is a product of two series.
    """
    c = zeros(n, 0, log_t)
    before = growth = _log_growth(df, log_t)
    for k in range(1, n + 1):
        sign = (-1.0) ** (k - 1) / k
        here = sign * df**-k * np.expm1(-k * growth)  # (df + t^2)^-k - df^-k
        c[k, 0] = log_constant[k - 1] - 0.5 * (df + 1.0) * here - 0.5 * before
        before = here
    return exponential(c)[n, 0]


@family(
    native=True,
    oracle=OracleExpression(
        "df t",
        "diff(lambda df: gamma((df + 1) / 2) / (sqrt(pi * df) * gamma(df / 2))"
        " * (1 + t * t / df)**(-(df + 1) / 2), df, n)",
    ),
)
def t_density(df: Any, t: Any, *, n: int) -> Any:
    """The n-th derivative of the density of Student's t distribution with respect to df."""
    log_t = np.log(np.abs(t))
    size = _constant(df) * np.exp(-0.5 * (df + 1.0) * _log_growth(df, log_t))
    found = factorial(n) * size * _weight(n, df, log_t, _log_constant_series(n, df))
    found = np.where((np.abs(t) == inf) & (df > 0), 0.0, found)
    return np.where(df > 0, found, np.nan)


@family(
    native=True,
    oracle=OracleExpression(
        "df t",
        "diff(lambda df: sign(t) * betainc(mpf(1) / 2, df / 2, 0, t * t / (df + t * t),"
        " regularized=True) / 2, df, n)",
    ),
)
def stdtr_order(df: Any, t: Any, *, n: int) -> Any:
    """The derivative of order n >= 1 of the distribution function with respect to df."""
    out = np.where((df > 0) & ~np.isnan(t), 0.0, np.nan)
    inside = (df > 0) & np.isfinite(df) & (t != 0) & np.isfinite(t)
    if inside.any():
        out[inside] = np.sign(t[inside]) * _integrate_density_derivative(
            n, df[inside], np.abs(t[inside])
        )
    return out


def _integrate_density_derivative(n: int, df: Any, t: Any) -> Any:
    """The integral from 0 to t > 0 of the n-th derivative of the density, in s = log(t)."""
    start = np.log(t)
    # The side with less cancellation: from 0, also for small df if t is not far above sqrt(df).
    is_slow = (df < 0.25) & (df * (start - 0.5 * np.log(df)) < 1.0)
    outward = np.where((t < 1.0) | is_slow, -1.0, 1.0)
    log_constant = _log_constant_series(n, df)

    def exponent(s: Any, df: Any) -> Any:
        return s - 0.5 * (df + 1.0) * _log_growth(df, s)

    top = exponent(start, df)
    reach = edge(lambda d: exponent(start + outward * d, df) - top, 1.0 / np.sqrt(1.0 + df))

    def f(s: Any, i: Any) -> Any:
        column = df[i, None]
        weight = _weight(n, column, s, [r[i, None] for r in log_constant])
        return np.exp(exponent(s, column) - top[i, None]) * weight

    low = np.where(outward < 0, start - reach, start)
    # Where df + t^2 rounds to t^2, the integrand decays like exp(-df s): slowly for small df.
    last = np.where(
        df < 0.25, np.clip(0.5 * np.log(df) + _NEGLIGIBLE_FALL, low, low + reach), low + reach
    )
    total = integrals(f, low, last, (last - low) / 1.2)
    total += integrals(f, last, low + reach, df * (low + reach - last) / 1.2)
    return -outward * factorial(n) * _constant(df) * np.exp(top) * total


def _by_t(t: Any, df: Any, x: Any, n: int) -> Any:
    """The partial of t_density with respect to its argument x.

    The derivative of the density is -(df + 1) x / (df + x^2) times the density; its derivatives
    with respect to df follow from the Leibniz rule.
    """
    s = df + x * x
    total = -((df + 1.0) * x / s) * t_density(df, x, n=n)
    for k in range(1, n + 1):
        # the k-th derivative of (df + 1) x / s = x + x (1 - x^2) / s
        rate = x * (1.0 - x * x) * ((-1.0) ** k * factorial(k)) / s ** (k + 1)
        total = total - comb(n, k) * (rate * t_density(df, x, n=n - k))
    return t * total


t_density.partials(
    lambda t, out, df, x, n: t * t_density(df, x, n=n + 1),
    lambda t, out, df, x, n: _by_t(t, df, x, n),
)
stdtr_order.partials(
    lambda t, out, df, x, n: t * stdtr_order(df, x, n=n + 1),
    lambda t, out, df, x, n: t * t_density(df, x, n=n),
)


@t_density.examples
@stdtr_order.examples
def _students(rng: Any) -> Any:
    yield (rng.uniform(0.5, 6.0, size=(2, 1)), rng.normal(size=1)), {"n": 1}


_STUDENT = (
    lambda df, x: stdtr_order(df, x, n=1),
    lambda df, x: t_density(df, x, n=0),
)
_DF, _T, _P = (0.6, 6.0), (-2.0, 2.0), (0.1, 0.9)
stdtr = sampled_function(
    "stdtr",
    "df x",
    "Student's t distribution function with df degrees of freedom, DLMF 8.17.2.",
    OracleExpression(
        "df x",
        "(1 + sign(x) * betainc(mpf(1) / 2, df / 2, 0, x * x / (df + x * x), regularized=True))"
        " / 2",
    ),
    [_DF, _T],
)
stdtr.partials(
    lambda t, out, df, x: t * stdtr_order(df, x, n=1),
    lambda t, out, df, x: t * t_density(df, x, n=0),
)
stdtrit = sampled_function(
    "stdtrit",
    "df p",
    "The x at which stdtr(df, x) is p.",
    lambda df, p: (
        np.sign(p - 0.5)
        * np.sqrt(df / special.betaincinv(0.5 * df, 0.5, 2.0 * np.minimum(p, 1.0 - p)) - df)
    ),
    [_DF, _P],
)
stdtrit.partials(*inverse_partials(1, *_STUDENT))
stdtridf = sampled_function(
    "stdtridf",
    "p x",
    "The df at which stdtr(df, x) is p.",
    lambda p, x: special.stdtridf(special.stdtr(special.stdtridf(p, x), x), x),
    [(0.8, 0.82), (1.0, 1.3)],
    [(0.8, 0.82), (1.0, 1.3)],
)
stdtridf.partials(*inverse_partials(0, *_STUDENT, ends=(0.0, 1e10)))  # SciPy's interval

# ---- Owen's T ------------------------------------------------------------------------------------

owens_t = sampled_function(
    "owens_t",
    "h a",
    "Owen's T: the integral of exp(-h^2 (1 + x^2) / 2) / (1 + x^2) / (2 pi) from 0 to a.",
    OracleExpression(
        "h a", "quad(lambda x: exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [0, a]) / (2 * pi)"
    ),
    [(-1.5, 1.5), (-1.5, 1.5)],
)
owens_t.partials(
    lambda t, out, h, a: (
        -t * (np.exp(-0.5 * h * h) * erf(a * h * sqrt(0.5))) * (0.5 / sqrt(2.0 * pi))
    ),
    lambda t, out, h, a: t * (np.exp(-0.5 * h * h * (1.0 + a * a)) / (1.0 + a * a)) * (0.5 / pi),
)

# ---- Kolmogorov distribution ---------------------------------------------------------------------


@family(
    native=True,
    oracle=OracleExpression(
        "y",
        "diff(lambda y: 2 * nsum(lambda k: (-1)**(k - 1) * exp(-2 * k * k * y * y), [1, inf]),"
        " y, n)",
    ),
)
def kolmogorov_order(y: Any, *, n: int) -> Any:
    """The derivative of order n >= 1 of the Kolmogorov survival function; 0 for y <= 0."""
    out = np.where(np.isnan(y), np.nan, 0.0)
    inside = (y > 0.02) & np.isfinite(y)  # below, derivatives are less than exp(-3000)
    y = y[inside]
    low = y < 0.9
    total = np.zeros_like(y)
    for k in range(1, 12):
        # For y >= 0.9 the alternating series, else the one from Poisson summation.
        near, far = (2 * k - 1) ** 2 * pi**2 / 8.0, 2.0 * k * k
        c = zeros(n, 0, y)
        for j in range(1, n + 1):
            up = (-1.0) ** j / (j * y**j) - near * (-1.0) ** j * (j + 1.0) / y ** (j + 2)
            down = -far * (2.0 * y if j == 1 else 1.0 if j == 2 else 0.0)
            c[j, 0] = np.where(low, up, down)
        size = np.where(
            low,
            -sqrt(2.0 * pi) / y * np.exp(-near / y**2),
            2.0 * (-1.0) ** (k - 1) * np.exp(-far * y * y),
        )
        total += size * exponential(c)[n, 0]
    out[inside] = factorial(n) * total
    return out


kolmogorov_order.partials(lambda t, out, y, n: t * kolmogorov_order(y, n=n + 1))


@kolmogorov_order.examples
def _statistics(rng: Any) -> Any:
    yield (rng.uniform(0.4, 1.6, size=3),), {"n": 1}


kolmogorov = sampled_function(
    "kolmogorov",
    "y",
    "Kolmogorov survival function: the limit of the probability that the statistic exceeds y.",
    OracleExpression("y", "2 * nsum(lambda k: (-1)**(k - 1) * exp(-2 * k * k * y * y), [1, inf])"),
    [(0.4, 1.6)],
)
kolmogorov.partials(lambda t, out, y: t * kolmogorov_order(y, n=1))
kolmogi = sampled_function(
    "kolmogi",
    "p",
    "The y at which kolmogorov(y) is p.",
    lambda p: special.kolmogi(special.kolmogorov(special.kolmogi(p))),
    [_P],
)
kolmogi.partials(lambda t, out, p: t / kolmogorov_order(out, n=1))
