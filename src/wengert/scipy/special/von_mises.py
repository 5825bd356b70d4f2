"""The von Mises distribution function and its quantiles, differentiable with respect to kappa.

    von_mises_beyond    the probability of angles between x and pi
    von_mises_of_tail   the quantile of a tail probability
    von_mises_path      derivatives of an angle with respect to kappa at a fixed probability
    von_mises_moment    the mean of (1 - cos x)^n

gamma_reparameterization.py explains these derivatives, and tails.  All integrands contain
exp(-kappa (1 - cos x)), which decreases from 0 to pi, so that tails are accurate.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, pi
from typing import Any

import numpy as np
import scipy.special

from .derivative_families import family
from .quadrature import integrals
from .register import OracleExpression
from .traced_loops import repeat

__all__: list[str] = []


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
