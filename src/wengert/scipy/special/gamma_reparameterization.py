"""Derivatives of gamma random numbers with respect to the shape parameter.

    log_gamma_of_tail   the logarithm y of the gamma quantile of a tail probability
    gamma_path          derivatives of y with respect to a at a fixed probability

M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, NeurIPS 2018: with the
distribution function F and the density p, dx/da = -(dF/da) / p.  With V[k] = -(d/da)^k F / p and
B[k] = (d/da)^k p / p, both at x,

    dV[k]/da = V[k+1] - V[k] B[1]        dV[k]/dx = -B[k] - V[k] d(log p)/dx

so that the V[k] are closed under differentiation.  V[k] is an integral of B[k] p from one end of
the distribution to x, or minus the integral from x to the other end, as the integral over all
values is 0.  The end is chosen such that B[1] has constant sign on the interval and p decreases
from x to the end; then there is no cancellation.

A tail v is a number between -1/2 and 1/2: |v| is a probability, and its sign says on which side.
von_mises.py does the same for the von Mises distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial
from typing import Any

import numpy as np
import scipy.special

from .derivative_families import family
from .gamma import digamma, polygamma_of
from .quadrature import edge, integrals
from .register import OracleExpression
from .traced_loops import is_traced_scalar

__all__: list[str] = []


def _bell_polynomial(slopes: Sequence[Any]) -> Any:
    """(d/da)^n p / p from the n derivatives of log p, by complete Bell polynomials."""
    values: list[Any] = [1.0]
    for n in range(len(slopes)):
        values.append(sum(comb(n, k) * values[n - k] * slopes[k] for k in range(n + 1)))
    return values[-1]


# ---- gamma -------------------------------------------------------------------------------------


_LARGE_SHAPE = 30.0  # from here on, a u - z (exp(u) - 1) cancels


def _exp_remainder(u: Any) -> Any:
    """exp(u) - 1 - u, without cancellation."""
    small = np.abs(u) < 0.3
    v = np.where(small, u, 0.0)
    series = np.zeros_like(v)
    for k in range(15, 2, -1):
        series = (series + 1.0) * v / k
    return np.where(small, (series + 1.0) * v * v * 0.5, np.expm1(u) - u)


@family(
    native=True,
    oracle=OracleExpression(
        "y a",
        "-diff(lambda b: gammainc(b, 0, exp(y), regularized=True), a, order)"
        "* gamma(a) * exp(exp(y) - a * y)",
    ),
)
def gamma_path(y: Any, a: Any, *, order: int) -> Any:
    """V[order] for the logarithm y of a gamma number, of density exp(a y - exp(y)) / gamma(a)."""
    middle = scipy.special.psi(a)
    others = [(-1.0) ** k * factorial(k) * scipy.special.zeta(k + 1.0, a) for k in range(1, order)]
    valid = (a > 0.0) & np.isfinite(a) & np.isfinite(y)
    above = valid & (y > middle)
    out = np.full_like(y, np.nan)
    for mask, sign in ((above, 1.0), (valid & ~above, -1.0)):
        if mask.any():
            arguments = y[mask], a[mask], middle[mask], [x[mask] for x in others]
            out[mask] = sign * _integrate_side(sign, *arguments)
    return out


def _integrate_side(sign: float, y: Any, a: Any, middle: Any, others: list[Any]) -> Any:
    """The integral of B p / p(y) from y to infinity (sign 1) or to -infinity (sign -1)."""
    z = np.exp(y)
    near, has_large = a - z, is_traced_scalar(a) or bool(np.max(a) > _LARGE_SHAPE)

    def exponent(u: Any, which: Any = slice(None)) -> Any:
        some = (which, None) if np.ndim(u) == 2 else which
        v = sign * u
        # For large v, exp(v) overflows where its product with z does not.
        direct = a[some] * v - np.where(v > 40.0, np.exp(y[some] + v), z[some] * np.expm1(v))
        if not has_large:
            return direct
        stable = near[some] * v - z[some] * _exp_remainder(np.minimum(v, 40.0))
        return np.where(a[some] > _LARGE_SHAPE, stable, direct)

    def integrand(u: Any, which: Any) -> Any:
        slopes = [(y - middle)[which, None] + sign * u, *[x[which, None] for x in others]]
        return _bell_polynomial(slopes) * np.exp(exponent(u, which))

    end = edge(exponent, 1.0 / (1.0 + np.sqrt(a) + np.abs(near)))
    # Beyond a distance of 40 the exponent is linear to rounding, or the integrand negligible.
    split = np.minimum(end, 40.0)
    start = np.zeros_like(end)
    total = integrals(integrand, start, split, split / 5.0)
    if is_traced_scalar(a) or np.max(end) > 40.0:  # for sign 1, a plateau ends in a steep decrease
        total = total + integrals(
            integrand, split, end, (end - split) / 4.0 if sign > 0 else 8.0 + 0.0 * end
        )
    return total


def _gamma_slopes(y: Any, a: Any, order: int) -> list[Any]:
    """Derivatives of the log density at y with respect to a, of orders 1 to `order`."""
    return [y - digamma(a), *[-polygamma_of(k, a) for k in range(1, order)]]


gamma_path.partials(
    lambda t, out, y, a, order: (
        -t * (_bell_polynomial(_gamma_slopes(y, a, order)) + out * (a - np.exp(y)))
    ),
    lambda t, out, y, a, order: t * (gamma_path(y, a, order=order + 1) - out * (y - digamma(a))),
)


@gamma_path.examples
def _(rng: np.random.Generator) -> Any:
    for order in (1, 2):
        a = np.exp(rng.normal(size=5))
        yield (np.log(a) + rng.normal(size=5), a), {"order": order}


@family(
    native=True,
    oracle=OracleExpression(
        "v a",
        "findroot(lambda y: gammainc(a, 0, exp(y), regularized=True) - (-v if v < 0 else 1 - v),"
        " log(a) - 0.5 / a)",
    ),
)
def log_gamma_of_tail(v: Any, a: Any) -> Any:
    """The logarithm of the gamma number beyond which (on the side of v) the probability is |v|."""
    beyond = np.abs(v)
    high = (v > 0.0) & (beyond < 0.1)
    below = np.where(v > 0.0, 1.0 - beyond, beyond)
    z = scipy.special.gammaincinv(a, below)
    z[high] = scipy.special.gammainccinv(a[high], beyond[high])
    # For small z the distribution function is z^a / gamma(a + 1) to rounding.
    power = (np.log(below) + scipy.special.gammaln(a + 1.0)) / a
    y = np.where((power < -40.0) | (z == 0.0), power, np.log(z))
    return np.where((a > 0.0) & np.isfinite(a), y, np.nan)


log_gamma_of_tail.partials(
    lambda t, out, v, a: -t * np.exp(np.exp(out) - a * out + scipy.special.gammaln(a)),
    lambda t, out, v, a: t * gamma_path(out, a, order=1),
)


@log_gamma_of_tail.examples
def _(rng: np.random.Generator) -> Any:
    sides = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    yield (sides * rng.uniform(0.05, 0.45, 5), np.exp(rng.normal(size=5))), {}
