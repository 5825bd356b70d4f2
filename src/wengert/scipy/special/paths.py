"""Paths: how a random number moves when a parameter of its distribution does, F staying what it is.

    log_gamma_of_tail   the logarithm y of the gamma number beyond which there is a probability
    gamma_path          dy/da, and the derivatives of that
    von_mises_of_tail   the angle x of the von Mises distribution, the same
    von_mises_path      dx/dkappa, and so on
    von_mises_moment    the means of (1 - cos x)^n, which these need

A tail is a number between -1/2 and 1/2: a probability with the sign of the side, above or below.

M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, NeurIPS 2018: with the
distribution function F and the density p, dx/da = -(dF/da) / p.  With V[k] = -(d/da)^k F / p and
B[k] = (d/da)^k p / p, both at x,

    dV[k]/da = V[k+1] - V[k] B[1]        dV[k]/dx = -B[k] - V[k] d(log p)/dx

so the family is closed under differentiation.  V[k] is an integral of B[k] p from one end of the
distribution to x, or minus that from x to the other end, as the integral of all of B[k] p is 0; the
end is chosen so that B[1] has one sign on the way, and p falls: nothing large cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, pi
from typing import Any

import numpy as np
import scipy.special

from .family import family
from .polygammas import digamma, polygamma_of
from .quadrature import edge, integrals
from .witness import Witness

__all__: list[str] = []


def _bell(slopes: Sequence[Any]) -> Any:
    """(d/da)^n p / p from the n derivatives of log p: the complete Bell polynomial."""
    found: list[Any] = [1.0]
    for n in range(len(slopes)):
        found.append(sum(comb(n, k) * found[n - k] * slopes[k] for k in range(n + 1)))
    return found[-1]


# ---- gamma -------------------------------------------------------------------------------------


_LARGE = 30.0  # parameters from which on a u - z (exp(u) - 1) cancels


def _bend(u: Any) -> Any:
    """exp(u) - 1 - u, with all digits."""
    small = np.abs(u) < 0.3
    v = np.where(small, u, 0.0)
    series = np.zeros_like(v)
    for k in range(15, 2, -1):
        series = (series + 1.0) * v / k
    return np.where(small, (series + 1.0) * v * v * 0.5, np.expm1(u) - u)


@family(
    oracle=Witness(
        "y a",
        "-diff(lambda b: gammainc(b, 0, exp(y), regularized=True), a, order)"
        "* gamma(a) * exp(exp(y) - a * y)",
    )
)
def gamma_path(y: Any, a: Any, *, order: int) -> Any:
    """V of the logarithm of a gamma number, whose density is exp(a y - exp(y)) / gamma(a)."""
    middle = scipy.special.psi(a)
    others = [-scipy.special.polygamma(k, a) for k in range(1, order)]
    valid = (a > 0.0) & np.isfinite(a) & np.isfinite(y)
    above = valid & (y > middle)
    out = np.full(len(y), np.nan)
    for chosen, sign in ((above, 1.0), (valid & ~above, -1.0)):
        if chosen.any():
            given = y[chosen], a[chosen], middle[chosen], [x[chosen] for x in others]
            out[chosen] = sign * _gamma_side(sign, *given)
    return out


def _gamma_side(sign: float, y: Any, a: Any, middle: Any, others: list[Any]) -> Any:
    """The integral of B p / p(y) from y on upwards (sign 1) or downwards."""
    z = np.exp(y)
    near, exact = a - z, bool(np.max(a) > _LARGE)

    def exponent(u: Any, which: Any = slice(None)) -> Any:
        some = (which, None) if np.ndim(u) == 2 else which
        v = sign * u
        # Far upwards exp(v) is too large a number, but its product with z is none.
        direct = a[some] * v - np.where(v > 40.0, np.exp(y[some] + v), z[some] * np.expm1(v))
        if not exact:
            return direct
        apart = near[some] * v - z[some] * _bend(np.minimum(v, 40.0))  # whose terms are not large
        return np.where(a[some] > _LARGE, apart, direct)

    def integrand(u: Any, which: Any) -> Any:
        slopes = [(y - middle)[which, None] + sign * u, *[x[which, None] for x in others]]
        return _bell(slopes) * np.exp(exponent(u, which))

    end = edge(exponent, 1.0 / (1.0 + np.sqrt(a) + np.abs(near)))
    # Beyond a distance of 40 the exponent is a line to rounding, or has no more to fall.
    bend = np.minimum(end, 40.0)
    start = np.zeros_like(end)
    total = integrals(integrand, start, bend, bend / 5.0)
    if np.max(end) > 40.0:  # upwards a plateau ends in a steep fall
        total += integrals(
            integrand, bend, end, (end - bend) / 4.0 if sign > 0 else 8.0 + 0.0 * end
        )
    return total


def _gamma_slopes(y: Any, a: Any, order: int) -> list[Any]:
    """The derivatives by a of the logarithm of the density at y."""
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
    oracle=Witness(
        "v a",
        "findroot(lambda y: gammainc(a, 0, exp(y), regularized=True) - (-v if v < 0 else 1 - v),"
        " log(a) - 0.5 / a)",
    )
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


# ---- von Mises ---------------------------------------------------------------------------------


def _window(kappa: Any) -> tuple[Any, Any]:
    """Where exp(-kappa (1 - cos x)) ends, and in how many panels it is smooth."""
    end = 2.0 * np.arcsin(np.minimum(1.0, np.sqrt(21.0 / np.maximum(kappa, 1e-300))))
    return end, np.full(len(kappa), 8.0)


def _versine(x: Any) -> Any:
    half = np.sin(0.5 * x)
    return 2.0 * half * half


@family(
    oracle=Witness(
        "kappa",
        "quad(lambda x: (1 - cos(x))**order * exp(kappa * cos(x)), linspace(0, pi, 5))"
        "/ (pi * besseli(0, kappa))",
    )
)
def von_mises_moment(kappa: Any, *, order: int) -> Any:
    """The mean of (1 - cos x)^order of angles of concentration kappa."""
    low, (high, panels) = np.zeros(len(kappa)), _window(kappa)

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
    """For each power of -(1 - cos x) its factor in B: of the derivatives of 1 / I0."""
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
    oracle=Witness(
        "x kappa",
        "-diff(lambda k: quad(lambda s: exp(k * cos(s)), [0, x]) / (2 * pi * besseli(0, k)),"
        " kappa, order) * 2 * pi * besseli(0, kappa) * exp(-kappa * cos(x))",
    )
)
def von_mises_path(x: Any, kappa: Any, *, order: int) -> Any:
    """V of an angle x from -pi to pi, whose density is proportional to exp(kappa cos x)."""
    valid = (kappa >= 0.0) & np.isfinite(kappa) & (np.abs(x) <= np.nextafter(pi, 4.0))
    out = np.full(len(x), np.nan)
    k, far = kappa[valid], np.minimum(np.abs(x[valid]), pi)
    weights = _weights([von_mises_moment.values(k, order=m + 1) for m in range(order)])
    rows = [np.broadcast_to(w, k.shape) for w in weights]

    def integrand(s: Any, which: Any) -> Any:
        # cos s - cos x as a product, without cancellation.
        fall = -2.0 * np.sin(0.5 * (s + far[which, None])) * np.sin(0.5 * (s - far[which, None]))
        level = _sum_of_powers([w[which, None] for w in rows], _versine(s))
        return level * np.exp(k[which, None] * fall)

    inner = k * _versine(far) < 1.0
    width, panels = _window(k)
    low, high = np.where(inner, 0.0, far), np.where(inner, far, np.minimum(far + width, pi))
    out[valid] = np.where(inner, -1.0, 1.0) * integrals(integrand, low, high, panels)
    return np.copysign(1.0, x) * out


def _von_mises_level(x: Any, kappa: Any, order: int) -> Any:
    moments = [von_mises_moment(kappa, order=m + 1) for m in range(order)]
    return _sum_of_powers(_weights(moments), 1.0 - np.cos(x))


von_mises_path.partials(
    lambda t, out, x, kappa, order: (
        t * (kappa * np.sin(x) * out - _von_mises_level(x, kappa, order))
    ),
    lambda t, out, x, kappa, order: (
        t * (von_mises_path(x, kappa, order=order + 1) - out * _von_mises_level(x, kappa, 1))
    ),
)


@von_mises_path.examples
def _(rng: np.random.Generator) -> Any:
    for order in (1, 2):
        yield (rng.uniform(-3.0, 3.0, 4), np.exp(rng.normal(size=4))), {"order": order}


@family(
    oracle=Witness(
        "v kappa",
        "sign(v) * findroot(lambda x: quad(lambda s: exp(kappa * cos(s)), linspace(x, pi, 4))"
        " / (2 * pi * besseli(0, kappa)) - abs(v), (0.01, 3.1), solver='anderson')",
    )
)
def von_mises_of_tail(v: Any, kappa: Any) -> Any:
    """The angle of concentration kappa beyond which, up to pi, there is the probability |v|."""
    out = np.full(len(v), np.nan)
    going = np.flatnonzero((kappa >= 0.0) & np.isfinite(kappa))
    wanted = 2.0 * np.abs(v) * (pi * scipy.special.i0e(kappa))
    low, high = np.zeros(len(v)), np.full(len(v), pi)
    guess = np.abs(scipy.special.ndtri(np.abs(v))) / np.sqrt(kappa + 0.4)
    x = np.minimum(guess, 0.5 * pi)
    for _ in range(100):  # Newton's steps, and halves where one leads out
        k, at = kappa[going], x[going]
        end = np.minimum(at + _window(k)[0], pi)
        # In units of the density at x, which far away is too small for a number.
        rest = integrals(_falling(k, at), at, end, np.full(len(k), 4.0))
        rest = rest - wanted[going] * np.exp(k * _versine(at))
        low[going], high[going] = (
            np.where(rest > 0, at, low[going]),
            np.where(rest > 0, high[going], at),
        )
        step = at + rest
        inside = (step > low[going]) & (step < high[going])
        step = np.where(inside, step, 0.5 * (low[going] + high[going]))
        x[going] = out[going] = step
        going = going[np.abs(step - at) > 1e-9 * step]  # the error is the square of the last step
        if not going.size:
            break
    return np.copysign(out, v)


def _falling(k: Any, x: Any) -> Any:
    """The density beyond x divided by that at x."""

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
