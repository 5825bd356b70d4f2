"""Incomplete gamma functions and their inverses, differentiable in both arguments: DLMF 8.2.

    gammainc gammaincc          P(a, x) and Q(a, x) = 1 - P(a, x)
    gammaincinv gammainccinv    their inverses, solved for x
    gammainc_order              derivatives of P(a, x) with respect to a
    gamma_density               x^(a-1) exp(-x) / gamma(a), and its derivatives

Relative accuracy: 1e-12, also in the far tails, for a from 1e-8 to 1e6 and any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from . import gamma_integrals
from .derivative_families import family
from .oracle_expression import OracleExpression
from .register import sampled_function

__all__ = ["gammainc", "gammaincc", "gammaincinv", "gammainccinv"]


@family(
    native=True,
    oracle=OracleExpression("a x", "diff(lambda a: gammainc(a, 0, x, regularized=True), a, n)"),
)
def gammainc_order(a: Any, x: Any, *, n: int) -> Any:
    """The derivative of order n >= 1 of P(a, x) with respect to a."""
    out = np.where((a >= 0) & (x >= 0), 0.0, np.nan)
    inside = (a >= 0) & np.isfinite(a) & (x > 0) & np.isfinite(x)
    if inside.any():
        # At a = 0 it is the limit from above: -E1(x) for n = 1.
        out[inside] = gamma_integrals.lower(n, np.maximum(a[inside], 1e-300), x[inside])
    return out


@family(
    native=True,
    oracle=OracleExpression(
        "a x",
        "diff(lambda a, x: x**(a - 1) * exp(-x) / gamma(a), (a, x), (n, m))",
    ),
)
def gamma_density(a: Any, x: Any, *, n: int, m: int) -> Any:
    """The derivative of x^(a-1) exp(-x) / gamma(a) of orders n in a and m in x."""
    out = np.where((a >= 0) & (x >= 0), 0.0, np.nan)
    inside = (a >= 0) & np.isfinite(a) & (x >= 0) & np.isfinite(x)
    if inside.any():
        out[inside] = gamma_integrals.density(n, m, np.maximum(a[inside], 1e-300), x[inside])
    return out


gammainc_order.partials(
    lambda t, out, a, x, n: t * gammainc_order(a, x, n=n + 1),
    lambda t, out, a, x, n: t * gamma_density(a, x, n=n, m=0),
)
gamma_density.partials(
    lambda t, out, a, x, n, m: t * gamma_density(a, x, n=n + 1, m=m),
    lambda t, out, a, x, n, m: t * gamma_density(a, x, n=n, m=m + 1),
)


@gammainc_order.examples
def _orders(rng: Any) -> Any:
    yield (rng.uniform(0.3, 4.0, size=(2, 1)), rng.uniform(0.3, 5.0, size=1)), {"n": 1}


@gamma_density.examples
def _densities(rng: Any) -> Any:
    yield (rng.uniform(0.3, 4.0, size=(2, 1)), rng.uniform(0.3, 5.0, size=1)), {"n": 1, "m": 1}


_SHAPE = (0.3, 4.0)

gammainc = sampled_function(
    "gammainc",
    "a x",
    "The integral of t^(a-1) exp(-t) / gamma(a) from 0 to x, P of DLMF 8.2.4.",
    "gammainc(a, 0, x, regularized=True)",
    [_SHAPE, (0.2, 5.0)],
)
gammaincc = sampled_function(
    "gammaincc",
    "a x",
    "The integral of t^(a-1) exp(-t) / gamma(a) from x to infinity, Q of DLMF 8.2.4.",
    "gammainc(a, x, inf, regularized=True)",
    [_SHAPE, (0.2, 5.0)],
)
gammainc.partials(
    lambda t, out, a, x: t * gammainc_order(a, x, n=1),
    lambda t, out, a, x: t * gamma_density(a, x, n=0, m=0),
)
gammaincc.partials(
    lambda t, out, a, x: -t * gammainc_order(a, x, n=1),
    lambda t, out, a, x: -t * gamma_density(a, x, n=0, m=0),
)


def _inverse_by_a(t: Any, out: Any, a: Any, y: Any) -> Any:
    """The partial of the inverse with respect to a; 0 at x = 0."""
    partial = -t * gammainc_order(a, out, n=1) / gamma_density(a, out, n=0, m=0)
    return np.where(out == 0.0, 0.0, partial)


gammaincinv = sampled_function(
    "gammaincinv",
    "a y",
    "The x at which P(a, x) is y.",
    lambda a, y: special.gammainccinv(a, 1.0 - y),
    [_SHAPE, (0.1, 0.9)],
)
gammainccinv = sampled_function(
    "gammainccinv",
    "a y",
    "The x at which Q(a, x) is y.",
    lambda a, y: special.gammaincinv(a, 1.0 - y),
    [_SHAPE, (0.1, 0.9)],
)
gammaincinv.partials(_inverse_by_a, lambda t, out, a, y: t / gamma_density(a, out, n=0, m=0))
gammainccinv.partials(_inverse_by_a, lambda t, out, a, y: -t / gamma_density(a, out, n=0, m=0))
