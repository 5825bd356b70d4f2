"""Implicit derivatives of random numbers: gamma distributions, von Mises distribution.

    log_gamma_of_tail  the logarithm y of the gamma quantile of a tail probability
    gamma_path         derivatives of y with respect to a at a fixed probability
    von_mises_beyond   the probability of angles between x and pi
    von_mises_of_tail  the quantile of a tail probability
    von_mises_path     derivatives of an angle with respect to kappa at a fixed probability
    von_mises_moment   the mean of (1 - cos x)^n

M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, NeurIPS 2018: with the
distribution function F and the density p, dx/da = -(dF/da) / p.  With V[k] = -(d/da)^k F / p and
B[k] = (d/da)^k p / p, both at x,

    dV[k]/da = V[k+1] - V[k] B[1]        dV[k]/dx = -B[k] - V[k] d(log p)/dx

so that the V[k] are closed under differentiation.  V[k] is an integral of B[k] p from one end of
the distribution to x, or minus the integral from x to the other end, as the integral over all
values is 0.  The end is chosen such that B[1] has constant sign on the interval and p decreases
from x to the end; then there is no cancellation.

A tail v is a number between -1/2 and 1/2: |v| is a probability, and its sign says on which side.
All integrands of the von Mises distribution contain exp(-kappa (1 - cos x)), which decreases from 0
to pi, so that tails are accurate.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial, pi
from typing import Any

import numpy as np
import scipy.special

from .gamma import digamma, polygamma_of
from .register import OracleExpression, family
from .series_and_quadrature import edge, integrals, is_traced_scalar, repeat

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


# ---- von Mises ---------------------------------------------------------------------------------


def _window(kappa: Any) -> tuple[Any, Any]:
    """The x beyond which exp(-kappa (1 - cos x)) is negligible, and the number of panels."""
    end = 2.0 * np.arcsin(np.minimum(1.0, np.sqrt(21.0 / np.maximum(kappa, 1e-300))))
    return end, np.full_like(kappa, 8.0)


def _versine(x: Any) -> Any:
    """1 - cos x, without cancellation."""
    half = np.sin(0.5 * x)
    return 2.0 * half * half


@family(
    native=True,
    oracle=OracleExpression(
        "kappa",
        "quad(lambda x: (1 - cos(x))**order * exp(kappa * cos(x)), linspace(0, pi, 5))"
        "/ (pi * besseli(0, kappa))",
    ),
)
def von_mises_moment(kappa: Any, *, order: int) -> Any:
    """The mean of (1 - cos x)^order for angles x with concentration kappa."""
    low, (high, panels) = np.zeros_like(kappa), _window(kappa)

    def integrand(x: Any, which: Any) -> Any:
        c = _versine(x)
        return c**order * np.exp(-kappa[which, None] * c)

    return integrals(integrand, low, high, panels) / (pi * scipy.special.i0e(kappa))


von_mises_moment.partials(
    lambda t, out, kappa, order: (
        t * (out * von_mises_moment(kappa, order=1) - von_mises_moment(kappa, order=order + 1))
    )
)


@von_mises_moment.examples
def _(rng: np.random.Generator) -> Any:
    for order in (1, 2):
        yield (np.exp(2.0 * rng.normal(size=4)),), {"order": order}


def _weights(moments: Sequence[Any]) -> list[Any]:
    """The coefficients of B in powers of -(1 - cos x), from the derivatives of 1 / I0."""
    order = len(moments)
    inverse: list[Any] = [1.0]
    for m in range(1, order + 1):
        terms = [comb(m, k) * (-1) ** k * moments[k - 1] * inverse[m - k] for k in range(1, m + 1)]
        inverse.append(-sum(terms[1:], terms[0]))
    return [comb(order, k) * inverse[order - k] for k in range(order + 1)]


def _sum_of_powers(weights: Sequence[Any], c: Any) -> Any:
    total = weights[-1]
    for w in weights[-2::-1]:
        total = w - c * total
    return total


@family(
    native=True,
    oracle=OracleExpression(
        "x kappa",
        "-diff(lambda k: quad(lambda s: exp(k * cos(s)), [0, x]) / (2 * pi * besseli(0, k)),"
        " kappa, order) * 2 * pi * besseli(0, kappa) * exp(-kappa * cos(x))",
    ),
)
def von_mises_path(x: Any, kappa: Any, *, order: int) -> Any:
    """V[order] for an angle x in [-pi, pi], of density proportional to exp(kappa cos x)."""
    valid = (kappa >= 0.0) & np.isfinite(kappa) & (np.abs(x) <= np.nextafter(pi, 4.0))
    out = np.full_like(x, np.nan)
    k, far = kappa[valid], np.minimum(np.abs(x[valid]), pi)
    weights = _weights([von_mises_moment.values(k, order=m + 1) for m in range(order)])
    rows = [w + np.zeros_like(k) for w in weights]

    def integrand(s: Any, which: Any) -> Any:
        # cos s - cos x, as a product to avoid cancellation
        fall = -2.0 * np.sin(0.5 * (s + far[which, None])) * np.sin(0.5 * (s - far[which, None]))
        level = _sum_of_powers([w[which, None] for w in rows], _versine(s))
        return level * np.exp(k[which, None] * fall)

    inner = k * _versine(far) < 1.0
    width, panels = _window(k)
    low, high = np.where(inner, 0.0, far), np.where(inner, far, np.minimum(far + width, pi))
    out[valid] = np.where(inner, -1.0, 1.0) * integrals(integrand, low, high, panels)
    return np.copysign(1.0, x) * out


def _b_of(x: Any, kappa: Any, order: int) -> Any:
    moments = [von_mises_moment(kappa, order=m + 1) for m in range(order)]
    return _sum_of_powers(_weights(moments), 1.0 - np.cos(x))


von_mises_path.partials(
    lambda t, out, x, kappa, order: t * (kappa * np.sin(x) * out - _b_of(x, kappa, order)),
    lambda t, out, x, kappa, order: (
        t * (von_mises_path(x, kappa, order=order + 1) - out * _b_of(x, kappa, 1))
    ),
)


@von_mises_path.examples
def _(rng: np.random.Generator) -> Any:
    for order in (1, 2):
        yield (rng.uniform(-3.0, 3.0, 4), np.exp(rng.normal(size=4))), {"order": order}


@family(
    native=True,
    oracle=OracleExpression(
        "v kappa",
        "sign(v) * findroot(lambda x: quad(lambda s: exp(kappa * cos(s)), linspace(x, pi, 4))"
        " / (2 * pi * besseli(0, kappa)) - abs(v), (0.01, 3.1), solver='anderson')",
    ),
)
def von_mises_of_tail(v: Any, kappa: Any) -> Any:
    """The angle with |v| as the probability from it to pi, and the sign of v."""
    valid = (kappa >= 0.0) & np.isfinite(kappa)
    k = np.where(valid, kappa, 1.0)
    wanted = 2.0 * np.abs(v) * (pi * scipy.special.i0e(k))
    guess = np.abs(scipy.special.ndtri(np.abs(v))) / np.sqrt(k + 0.4)

    def step(_: Any, x: Any, low: Any, high: Any, __: Any) -> Any:
        """A Newton step, or bisection where that leaves the bracket."""
        end = np.minimum(x + _window(k)[0], pi)
        # Relative to the density at x, which may underflow.
        rest = integrals(_relative_density(k, x), x, end, np.full_like(k, 4.0))
        rest = rest - wanted * np.exp(k * _versine(x))
        low, high = np.where(rest > 0, x, low), np.where(rest > 0, high, x)
        found = x + rest
        inside = (found > low) & (found < high) | (np.abs(rest) <= 1e-9 * x)
        found = np.where(inside, found, 0.5 * (low + high))
        return found, low, high, np.abs(found - x)

    def unconverged(x: Any, low: Any, high: Any, moved: Any) -> Any:
        return moved > 1e-9 * x  # the error is about the square of the last step

    none = np.zeros_like(k)
    start = np.minimum(guess, 0.5 * pi), none, none + pi, none + 1.0
    out = repeat(step, start, 100, unconverged)[0]
    return np.copysign(np.where(valid, out, np.nan), v)


def _relative_density(k: Any, x: Any) -> Any:
    """The density at s >= x divided by that at x, as an integrand."""

    def integrand(s: Any, which: Any) -> Any:
        fall = np.sin(0.5 * (s + x[which, None])) * np.sin(0.5 * (s - x[which, None]))
        return np.exp(-2.0 * k[which, None] * fall)

    return integrand


von_mises_of_tail.partials(
    lambda t, out, v, kappa: (
        -t * (2.0 * pi) * scipy.special.i0e(kappa) * np.exp(kappa * (1.0 - np.cos(out)))
    ),
    lambda t, out, v, kappa: t * von_mises_path(out, kappa, order=1),
)


@von_mises_of_tail.examples
def _(rng: np.random.Generator) -> Any:
    sides = np.array([1.0, -1.0, 1.0, -1.0])
    yield (sides * rng.uniform(0.05, 0.45, 4), np.exp(rng.normal(size=4))), {}


# ---- distribution function ---------------------------------------------------------------------


@family(
    native=True,
    oracle=OracleExpression(
        "x kappa",
        "quad(lambda s: exp(kappa * cos(s)), linspace(x, pi, 4)) / (2 * pi * besseli(0, kappa))",
    ),
)
def von_mises_beyond(x: Any, kappa: Any) -> Any:
    """The probability of angles between x and pi, where 0 <= x <= pi."""
    end = np.minimum(x + _window(kappa)[0], pi)
    rest = integrals(_relative_density(kappa, x), x, end, np.full_like(x, 8.0))
    found = rest * _density(x, kappa)
    return np.where((kappa >= 0.0) & (x >= 0.0) & (x <= pi), found, np.nan)


def _density(x: Any, kappa: Any) -> Any:
    return np.exp(-2.0 * kappa * np.sin(0.5 * x) ** 2) / (2.0 * pi * scipy.special.i0e(kappa))


von_mises_beyond.partials(
    lambda t, out, x, kappa: -t * _density(x, kappa),
    lambda t, out, x, kappa: t * (von_mises_path(x, kappa, order=1) * _density(x, kappa)),
)


@von_mises_beyond.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.uniform(0.1, 3.0, 4), np.exp(rng.normal(size=4))), {}
