"""The beta function and quotients of gamma functions: DLMF 5.12, 5.2(iii), 1.2.

    beta, betaln        gamma(a) gamma(b) / gamma(a + b), and the logarithm of its absolute value
    poch                Pochhammer symbol, gamma(z + m) / gamma(z)
    binom               gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1))
    comb, perm, factorial   of real numbers, as SciPy extends them

Their derivatives contain differences of digamma, which `polygamma_difference` computes without
cancellation.  Where a gamma function in a denominator has a pole, the value is 0 but the derivative
is not; there the reflection formula DLMF 5.5.3 is used, which has no pole.
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
from .elementary import cospi, sinpi
from .gamma import digamma, gamma, polygamma_difference, rgamma, rgamma_derivative
from .register import function

__all__ = "beta betaln poch binom comb perm factorial".split()

NORMAL = (1e-290, inf)  # below, the value overflows, where the derivative may be finite


def _digamma_rise(x: Any, d: Any) -> Any:
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
    doc="The beta function, DLMF 5.12.1; d/da = beta(a, b) (digamma(a) - digamma(a + b)).",
)
beta.partials(
    lambda t, out, a, b: -t * (out * _digamma_rise(a, b)),
    lambda t, out, a, b: -t * (out * _digamma_rise(b, a)),
)

betaln = function(
    "betaln",
    "a b",
    domain=[POSITIVE, POSITIVE],
    oracle="log(abs(beta(a, b)))",
    commutative=True,
    singular=True,
    doc="log|beta(a, b)|; d/da = digamma(a) - digamma(a + b).",
)
betaln.partials(
    lambda t, out, a, b: -t * _digamma_rise(a, b),
    lambda t, out, a, b: -t * _digamma_rise(b, a),
)

# ---- Pochhammer symbol -------------------------------------------------------------------------

poch = function(
    "poch",
    "z m",
    domain=[NORMAL, NORMAL],
    oracle="rf(z, m)",
    singular=True,
    doc="gamma(z + m) / gamma(z), DLMF 5.2(iii); d/dm = poch(z, m) digamma(z + m).",
)


def _poch_by_z(t: Any, out: Any, z: Any, m: Any) -> Any:
    """The partial with respect to z.

    With z > 0: poch times a difference of digamma.  With z <= 0 < z + m: the product rule for
    gamma(z + m) and 1 / gamma(z).  Otherwise, the difference of digamma after reflection.
    """
    where = lookup("where")
    start, end = value_of(z), value_of(z) + value_of(m)
    above = (start > 0.5) | ((start > 0) & (value_of(m) < start))
    across = ~above & (end > 0)
    below = ~(above | across)

    a, d = where(above, z, 1.0), where(above, m, 1.0)
    of_above = out * _digamma_rise(a, d)

    low, top = where(across, z, 0.0), where(across, z + m, 1.0)
    of_across = gamma(top) * rgamma_derivative(rgamma(low), low) + out * digamma(top)

    u, e = where(below, 1.0 - z - m, 1.0), where(below, m, 1.0)
    m_is_integer = np.equal(np.rint(value_of(m)), value_of(m))
    has_cot = below & ~m_is_integer  # else the two cotangents are equal
    v, w = where(has_cot, z, 0.25), where(has_cot, z + m, 0.25)
    cotangents = where(has_cot, pi * (cospi(v) / sinpi(v) - cospi(w) / sinpi(w)), 0.0)
    of_below = out * (cotangents - _digamma_rise(u, e))
    return t * where(above, of_above, where(across, of_across, of_below))


poch.partials(_poch_by_z, lambda t, out, z, m: t * (out * digamma(z + m)))

# ---- binomial coefficient ----------------------------------------------------------------------

binom = function(
    "binom",
    "n k",
    domain=[(2.0, 4.0), (0.0, 1.5)],
    oracle="binomial(n, k)",
    singular=True,
    doc="Binomial coefficient of real n, k; d/dk = binom(n, k) (psi(n - k + 1) - psi(k + 1)).",
)


def _binom_regular(n: Any, k: Any) -> Any:
    """Whether to use differences of digamma: not near poles of the denominators, or n <= -1."""
    a, b = value_of(n), value_of(k)
    return ((b > -0.5) & (a - b > -0.5)) | (a <= -1)


def _reflected(n: Any, k: Any, regular: Any) -> tuple[Any, Any, Any, Any]:
    """K - n, beta(n + 1, K - n), and sin(u) / pi and cos(u) of u = pi (n - K + 1).

    K is the larger of k and n - k, and binom(n, K) = beta(n + 1, K - n) sin(u) / pi.
    """
    where = lookup("where")
    n, k = where(regular, 0.0, n), where(regular, 1.0, k)
    larger = where(value_of(k) > value_of(n) - value_of(k), k, n - k)
    u = n - larger + 1.0
    return larger - n, beta(n + 1.0, larger - n), sinpi(u) / pi, cospi(u)


def _binom_by_n(t: Any, out: Any, n: Any, k: Any) -> Any:
    where, regular = lookup("where"), _binom_regular(n, k)
    m, j = where(regular, n, 2.0), where(regular, k, 1.0)
    flipped = ~regular & (value_of(k) < value_of(n) - value_of(k))
    d, size, sine, cosine = _reflected(n, k, regular)
    a = where(regular, 1.0, n + 1.0)
    # With K held fixed; where K is n - k, its derivative with respect to n is 1.
    by_n = size * (sine * _digamma_rise(d, a - d) + cosine)
    by_larger = _by_larger(a, d, size, sine, cosine)
    total = by_n + where(flipped, by_larger, 0.0)
    return t * where(regular, out * _digamma_rise(m - j + 1.0, j), total)


def _by_larger(a: Any, d: Any, size: Any, sine: Any, cosine: Any) -> Any:
    """The derivative of beta(a, d) sin(pi (n - K + 1)) / pi with respect to K; d = K - n."""
    return -size * (sine * _digamma_rise(d, a) + cosine)


def _binom_by_k(t: Any, out: Any, n: Any, k: Any) -> Any:
    where, regular = lookup("where"), _binom_regular(n, k)
    m, j = where(regular, n, 2.0), where(regular, k, 1.0)
    flipped = ~regular & (value_of(k) < value_of(n) - value_of(k))
    d, size, sine, cosine = _reflected(n, k, regular)
    by_larger = _by_larger(where(regular, 1.0, n + 1.0), d, size, sine, cosine)
    slope = where(flipped, -by_larger, by_larger)
    return t * where(regular, out * _digamma_rise(j + 1.0, m - 2.0 * j), slope)


binom.partials(_binom_by_n, _binom_by_k)


# ---- combinatorics -----------------------------------------------------------------------------


def _refuse_exact(exact: Any, name: str) -> None:
    if exact:
        raise ArgumentError(
            f"{name} of tensors with exact=True: Python integers have no derivative. Omit exact, "
            f"or pass plain numbers{at(user_line())}."
        )


def _array_or_handle(x: Any) -> Any:
    return x if isinstance(x, Handle) else np.asarray(x)


@counterpart(scipy.special.comb)
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Combinations: binom(N, k), or binom(N + k - 1, k) with repetition; 0 unless 0 <= k <= N."""
    _refuse_exact(exact, "comb")
    if repetition:
        return comb(N + k - 1, k)
    n, j = _array_or_handle(value_of(N)), _array_or_handle(value_of(k))
    return lookup("where")((j <= n) & (n >= 0) & (j >= 0), binom(N, k), 0.0)


@counterpart(scipy.special.perm)
def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """Permutations: gamma(N + 1) / gamma(N - k + 1); 0 unless 0 <= k <= N."""
    _refuse_exact(exact, "perm")
    n, j = _array_or_handle(value_of(N)), _array_or_handle(value_of(k))
    return lookup("where")((j <= n) & (n >= 0) & (j >= 0), poch(N - k + 1, k), 0.0)


@counterpart(scipy.special.factorial)
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """n! = gamma(n + 1); for n < 0 constant 0, unless extend is "complex"."""
    _refuse_exact(exact, "factorial")
    if extend == "complex":
        return gamma(n + 1)
    negative = value_of(n) < 0
    where = lookup("where")
    return where(negative, 0.0, gamma(where(negative, 0.0, n) + 1))
