"""The derivative of a gamma variate with respect to the shape parameter.

    log_gamma_of_tail   the logarithm y of the gamma number beyond which there is a probability
    gamma_path          dy/da where the distribution function stays what it was, and so on
    bell                (d/da)^n p / p from the derivatives of log p

M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, NeurIPS 2018: with the
distribution function F and the density p, dx/da = -(dF/da) / p.  With V[k] = -(d/da)^k F / p and
B[k] = (d/da)^k p / p, both at x,

    dV[k]/da = V[k+1] - V[k] B[1]        dV[k]/dx = -B[k] - V[k] d(log p)/dx

so the family is closed under differentiation.  V[k] is an integral of B[k] p from one end of the
distribution to x, or minus that from x to the other end, as the integral of all of B[k] p is 0; the
end is chosen so that B[1] has one sign on the way, and p falls: nothing large cancels.

A tail is a number between -1/2 and 1/2: a probability with the sign of the side, above or below.
The von Mises distribution, in the same way, is in von_mises.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial
from typing import Any

import numpy as np
import scipy.special

from .derivative_families import family
from .oracle_expression import Witness
from .polygammas import digamma, polygamma_of
from .quadrature import edge, integrals
from .traced_loops import is_element

__all__: list[str] = []


def _bell(slopes: Sequence[Any]) -> Any:
    """(d/da)^n p / p from the n derivatives of log p: the complete Bell polynomial."""
    found: list[Any] = [1.0]
    for n in range(len(slopes)):
        found.append(sum(comb(n, k) * found[n - k] * slopes[k] for k in range(n + 1)))
    return found[-1]


# ---- gamma -------------------------------------------------------------------------------------


_LARGE_SHAPE = 30.0  # parameters from which on a u - z (exp(u) - 1) cancels


def _bend(u: Any) -> Any:
    """exp(u) - 1 - u, with all digits."""
    small = np.abs(u) < 0.3
    v = np.where(small, u, 0.0)
    series = np.zeros_like(v)
    for k in range(15, 2, -1):
        series = (series + 1.0) * v / k
    return np.where(small, (series + 1.0) * v * v * 0.5, np.expm1(u) - u)


@family(
    native=True,
    oracle=Witness(
        "y a",
        "-diff(lambda b: gammainc(b, 0, exp(y), regularized=True), a, order)"
        "* gamma(a) * exp(exp(y) - a * y)",
    ),
)
def gamma_path(y: Any, a: Any, *, order: int) -> Any:
    """V of the logarithm of a gamma number, whose density is exp(a y - exp(y)) / gamma(a)."""
    middle = scipy.special.psi(a)
    others = [(-1.0) ** k * factorial(k) * scipy.special.zeta(k + 1.0, a) for k in range(1, order)]
    valid = (a > 0.0) & np.isfinite(a) & np.isfinite(y)
    above = valid & (y > middle)
    out = np.full_like(y, np.nan)
    for chosen, sign in ((above, 1.0), (valid & ~above, -1.0)):
        if chosen.any():
            given = y[chosen], a[chosen], middle[chosen], [x[chosen] for x in others]
            out[chosen] = sign * _gamma_side(sign, *given)
    return out


def _gamma_side(sign: float, y: Any, a: Any, middle: Any, others: list[Any]) -> Any:
    """The integral of B p / p(y) from y on upwards (sign 1) or downwards."""
    z = np.exp(y)
    near, exact = a - z, is_element(a) or bool(np.max(a) > _LARGE_SHAPE)

    def exponent(u: Any, which: Any = slice(None)) -> Any:
        some = (which, None) if np.ndim(u) == 2 else which
        v = sign * u
        # Far upwards exp(v) is too large a number, but its product with z is none.
        direct = a[some] * v - np.where(v > 40.0, np.exp(y[some] + v), z[some] * np.expm1(v))
        if not exact:
            return direct
        apart = near[some] * v - z[some] * _bend(np.minimum(v, 40.0))  # whose terms are not large
        return np.where(a[some] > _LARGE_SHAPE, apart, direct)

    def integrand(u: Any, which: Any) -> Any:
        slopes = [(y - middle)[which, None] + sign * u, *[x[which, None] for x in others]]
        return _bell(slopes) * np.exp(exponent(u, which))

    end = edge(exponent, 1.0 / (1.0 + np.sqrt(a) + np.abs(near)))
    # Beyond a distance of 40 the exponent is a line to rounding, or has no more to fall.
    bend = np.minimum(end, 40.0)
    start = np.zeros_like(end)
    total = integrals(integrand, start, bend, bend / 5.0)
    if is_element(a) or np.max(end) > 40.0:  # upwards a plateau ends in a steep fall
        total = total + integrals(
            integrand, bend, end, (end - bend) / 4.0 if sign > 0 else 8.0 + 0.0 * end
        )
    return total


def _gamma_slopes(y: Any, a: Any, order: int) -> list[Any]:
    """The derivatives with respect to a of the logarithm of the density at y."""
    return [y - digamma(a), *[-polygamma_of(k, a) for k in range(1, order)]]


gamma_path.partials(
    lambda t, out, y, a, order: -t * (_bell(_gamma_slopes(y, a, order)) + out * (a - np.exp(y))),
    lambda t, out, y, a, order: t * (gamma_path(y, a, order=order + 1) - out * (y - digamma(a))),
)


@gamma_path.examples
def _(rng: np.random.Generator) -> Any:
    for order in (1, 2):
        a = np.exp(rng.normal(size=5))
        yield (np.log(a) + rng.normal(size=5), a), {"order": order}


@family(
    native=True,
    oracle=Witness(
        "v a",
        "findroot(lambda y: gammainc(a, 0, exp(y), regularized=True) - (-v if v < 0 else 1 - v),"
        " log(a) - 0.5 / a)",
    ),
)
def log_gamma_of_tail(v: Any, a: Any) -> Any:
    """The logarithm of the gamma number beyond which there is the probability |v|."""
    beyond = np.abs(v)
    high = (v > 0.0) & (beyond < 0.1)
    below = np.where(v > 0.0, 1.0 - beyond, beyond)
    z = scipy.special.gammaincinv(a, below)
    z[high] = scipy.special.gammainccinv(a[high], beyond[high])
    # Where z is small the distribution function is z^a / gamma(a + 1) to rounding.
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
