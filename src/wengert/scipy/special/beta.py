"""The beta function and quotients of gamma functions: DLMF 5.12, 5.2(iii), 1.2.

    beta, betaln        gamma(a) gamma(b) / gamma(a + b), and the logarithm of its size
    poch                gamma(z + m) / gamma(z)
    binom               gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1))
    comb, perm, factorial   the same of integers, as SciPy continues them

Their derivatives are differences of digammas, taken as such (`polygamma_difference`), so they keep
their digits where the two are close.  Where a denominator has a pole the value is 0 and its slope
is not: there the reflection DLMF 5.5.3 is used, which is smooth.
"""

from __future__ import annotations

from math import inf, pi
from typing import Any

import numpy as np
import scipy.special

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE
from wengert._engine.tensor.numpy_dispatch import counterpart

from ...errors import ArgumentError, at, user_line
from .gamma import gamma, rgamma, rgamma_slope
from .polygammas import digamma, polygamma_difference
from .register import function
from .sinpi_cospi import cospi, sinpi

__all__ = "beta betaln poch binom comb perm factorial".split()

NORMAL = (1e-290, inf)  # below, the value is out of range, and its slope need not be


def _rise(x: Any, d: Any) -> Any:
    """digamma(x + d) - digamma(x)."""
    return polygamma_difference(x, d, n=0)


# ---- beta --------------------------------------------------------------------------------------

beta = function(
    "beta",
    "a b",
    domain=[NORMAL, NORMAL],
    oracle="beta(a, b)",
    commutative=True,
    singular=True,
    doc="The beta function, DLMF 5.12.1; by a: beta(a, b) (digamma(a) - digamma(a + b)).",
)
beta.partials(
    lambda t, out, a, b: -t * (out * _rise(a, b)),
    lambda t, out, a, b: -t * (out * _rise(b, a)),
)

betaln = function(
    "betaln",
    "a b",
    domain=[POSITIVE, POSITIVE],
    oracle="log(abs(beta(a, b)))",
    commutative=True,
    singular=True,
    doc="log|beta(a, b)|; by a: digamma(a) - digamma(a + b).",
)
betaln.partials(
    lambda t, out, a, b: -t * _rise(a, b),
    lambda t, out, a, b: -t * _rise(b, a),
)

# ---- Pochhammer's symbol -----------------------------------------------------------------------

poch = function(
    "poch",
    "z m",
    domain=[NORMAL, NORMAL],
    oracle="rf(z, m)",
    singular=True,
    doc="gamma(z + m) / gamma(z), DLMF 5.2(iii); by m: poch(z, m) digamma(z + m).",
)


def _poch_by_z(t: Any, out: Any, z: Any, m: Any) -> Any:
    """A difference of digammas; across 0 and next to it by the product rule; below, reflected."""
    where = lookup("where")
    start, end = value_of(z), value_of(z) + value_of(m)
    above = (start > 0.5) | ((start > 0) & (value_of(m) < start))
    across = ~above & (end > 0)
    a, d = where(above, z, 1.0), where(above, m, 1.0)
    low, top = where(across, z, 0.0), where(across, z + m, 1.0)
    crossed = gamma(top) * rgamma_slope(rgamma(low), low) + out * digamma(top)
    below = ~(above | across)
    whole = np.equal(np.rint(value_of(m)), value_of(m))
    u, e = where(below, 1.0 - z - m, 1.0), where(below, m, 1.0)
    turning = below & ~whole
    v, w = where(turning, z, 0.25), where(turning, z + m, 0.25)
    turned = where(turning, pi * (cospi(v) / sinpi(v) - cospi(w) / sinpi(w)), 0.0)
    rest = where(across, crossed, out * (turned - _rise(u, e)))
    return t * where(above, out * _rise(a, d), rest)


poch.partials(_poch_by_z, lambda t, out, z, m: t * (out * digamma(z + m)))

# ---- binomials ---------------------------------------------------------------------------------

binom = function(
    "binom",
    "n k",
    domain=[(2.0, 4.0), (0.0, 1.5)],
    oracle="binomial(n, k)",
    singular=True,
    doc="The binomial coefficient of real n and k; by k times psi(n - k + 1) - psi(k + 1).",
)


def _binom_regular(n: Any, k: Any) -> Any:
    """Whether both denominators are away from their poles, or nothing better is known."""
    a, b = value_of(n), value_of(k)
    return ((b > -0.5) & (a - b > -0.5)) | (a <= -1)


def _reflected(n: Any, k: Any, regular: Any) -> tuple[Any, Any, Any, Any]:
    """The larger part K, beta(n + 1, K - n), and the sine and cosine of pi (n - K + 1).

    binom(n, K) = beta(n + 1, K - n) sin(pi (n - K + 1)) / pi.
    """
    where = lookup("where")
    n, k = where(regular, 0.0, n), where(regular, 1.0, k)
    larger = where(value_of(k) > value_of(n) - value_of(k), k, n - k)
    rest = n - larger + 1.0
    return larger - n, beta(n + 1.0, larger - n), sinpi(rest) / pi, cospi(rest)


def _binom_by_n(t: Any, out: Any, n: Any, k: Any) -> Any:
    where, regular = lookup("where"), _binom_regular(n, k)
    m, j = where(regular, n, 2.0), where(regular, k, 1.0)
    flipped = ~regular & (value_of(k) < value_of(n) - value_of(k))
    d, size, sine, cosine = _reflected(n, k, regular)
    a = where(regular, 1.0, n + 1.0)
    # By n with K held; where K is n - k it moves along.
    by_n = size * (sine * _rise(d, a - d) + cosine)
    by_larger = _by_larger(a, d, size, sine, cosine)
    along = by_n + where(flipped, by_larger, 0.0)
    return t * where(regular, out * _rise(m - j + 1.0, j), along)


def _by_larger(a: Any, d: Any, size: Any, sine: Any, cosine: Any) -> Any:
    """The derivative in K of beta(a, d) sin(pi (n - K + 1)) / pi, where d = K - n."""
    return -size * (sine * _rise(d, a) + cosine)


def _binom_by_k(t: Any, out: Any, n: Any, k: Any) -> Any:
    where, regular = lookup("where"), _binom_regular(n, k)
    m, j = where(regular, n, 2.0), where(regular, k, 1.0)
    flipped = ~regular & (value_of(k) < value_of(n) - value_of(k))
    d, size, sine, cosine = _reflected(n, k, regular)
    by_larger = _by_larger(where(regular, 1.0, n + 1.0), d, size, sine, cosine)
    slope = where(flipped, -by_larger, by_larger)
    return t * where(regular, out * _rise(j + 1.0, m - 2.0 * j), slope)


binom.partials(_binom_by_n, _binom_by_k)


# ---- of integers --------------------------------------------------------------------------


def _not_exact(exact: Any, what: str) -> None:
    if exact:
        raise ArgumentError(
            f"{what} with exact=True counts in Python's integers, which have no derivative. Leave "
            f"exact out, or pass plain numbers{at(user_line())}."
        )


def _real(x: Any) -> Any:
    return x if isinstance(x, Handle) else np.asarray(x)


@counterpart(scipy.special.comb)
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Combinations: binom(N, k), and 0 where not 0 <= k <= N; with repetition of N + k - 1."""
    _not_exact(exact, "comb")
    if repetition:
        return comb(N + k - 1, k)
    n, j = _real(value_of(N)), _real(value_of(k))
    return lookup("where")((j <= n) & (n >= 0) & (j >= 0), binom(N, k), 0.0)


@counterpart(scipy.special.perm)
def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """Permutations: gamma(N + 1) / gamma(N - k + 1), and 0 where not 0 <= k <= N."""
    _not_exact(exact, "perm")
    n, j = _real(value_of(N)), _real(value_of(k))
    return lookup("where")((j <= n) & (n >= 0) & (j >= 0), poch(N - k + 1, k), 0.0)


@counterpart(scipy.special.factorial)
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """n! = gamma(n + 1), and 0 for n < 0, whose derivative is 0; with extend="complex" gamma."""
    _not_exact(exact, "factorial")
    if extend == "complex":
        return gamma(n + 1)
    negative = value_of(n) < 0
    where = lookup("where")
    return where(negative, 0.0, gamma(where(negative, 0.0, n) + 1))
