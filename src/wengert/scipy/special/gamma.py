"""The gamma function, its reciprocal and logarithm, polygamma functions: DLMF 5.

    gamma, rgamma              the function, and its reciprocal, which is entire
    gammaln, loggamma          log|gamma| of real, and the analytic logarithm of complex arguments
    gammasgn                   the sign of gamma
    digamma, psi, polygamma    derivatives of the logarithm, of real and complex operands
    multigammaln               logarithm of the multivariate gamma function
    polygamma_of               derivatives of digamma, of real operands
    polygamma_complex          derivatives of digamma, of complex operands
    polygamma_difference       the derivative of order n at x + d minus that at x

digamma has poles where the reciprocal is 0.  So for x < 1/2 the derivative of the reciprocal is
computed by the reflection formula 5.5.3, which has none: at x = -n it is (-1)^n n!.

The derivative of a quotient of gamma functions (beta, poch, binom) is the quotient times a
difference of digamma, which cancels if the operands are close; `polygamma_difference` does not.

For x < 0 they are computed by reflection (DLMF 5.15.6) as a sum over all integers, which is
periodic, minus the sum for 1 - x: the Hurwitz zeta function would need one term per integer from x
to 0.
"""

from __future__ import annotations

from math import factorial, log, pi
from typing import Any

import numpy as np
import scipy.special
import scipy.special as theirs

from wengert._engine.core.handle import dtype_of, is_traced, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import Cost
from wengert._engine.kinds.elementwise import POSITIVE, elementwise
from wengert._engine.tensor.numpy_dispatch import counterpart

from ...errors import ArgumentError, at, user_line
from .elementary import check_integers, cospi
from .register import PREFIX, OracleExpression, family, function

__all__ = "gamma rgamma gammaln loggamma gammasgn digamma psi polygamma multigammaln".split()


digamma = function(
    "psi",
    "x",
    domain=[POSITIVE],
    oracle="psi(0, x)",
    complex_ok=True,
    singular=True,
    doc="The logarithmic derivative of gamma, DLMF 5.2.2; its derivative is polygamma(1, x).",
)


@elementwise(
    name=f"{PREFIX}polygamma",
    domain=[(0, 4), POSITIVE],
    oracle="psi(int(n), x)",
    singular=True,
    half=False,
)
def polygamma_of(s: Any, n: Any, x: Any) -> Any:
    """The derivative of order n of digamma, DLMF 5.15: (-1)^(n+1) n! zeta(n + 1, x)."""
    power = s.copysign(n, s.abs(x)) + 1.0  # in the common dtype
    odd = s.equal(s.fmod(power, 2.0), 0.0)
    safe = s.where(s.less(n, 1), 2.0, power)
    below = s.less(x, 0.0)
    r = s.where(below, x - s.rint(x), 0.25)
    right, left = s.special("zeta", safe, 1.0 + r), s.special("zeta", safe, 1.0 - r)
    two_sided = s.power(r, -safe) + s.where(odd, right + left, right - left)
    one_sided = s.special("zeta", safe, s.where(below, 1.0 - x, x))
    total = s.where(below, s.where(odd, two_sided - one_sided, two_sided + one_sided), one_sided)
    total = total * s.special("gamma", power)
    return s.where(s.less(n, 1), s.special("psi", x), s.where(odd, total, -total))


polygamma_of.partials(None, lambda t, out, n, x: t * polygamma_of(n + 1, x))


# B(2j) / (2j)!, for the Euler-Maclaurin formula (DLMF 2.10.1).
_BERNOULLI = [b / factorial(k) for k, b in enumerate(theirs.bernoulli(24)) if k >= 2 and k % 2 == 0]
_LEADING = 16  # terms that are added before the Euler-Maclaurin formula is applied


def _hurwitz(power: int, z: Any) -> Any:
    """The sum over k >= 0 of (z + k)^-power, for an integer power and Re z > -1."""
    total = sum((z + k) ** -power for k in range(_LEADING))
    w = z + _LEADING
    total = total + w ** (1 - power) / (power - 1) + 0.5 * w**-power
    term = power * w ** (-power - 1)
    for j, b in enumerate(_BERNOULLI, start=1):
        total = total + b * term
        term = term * ((power + 2 * j - 1) * (power + 2 * j) / w**2)
    return total


@family(native=True, oracle=OracleExpression("z", "psi(n, z)"), complex_ok=True)
def polygamma_complex(z: Any, *, n: int) -> Any:
    """The derivative of order n >= 1 of digamma at complex z."""
    power, sign = n + 1, (-1) ** (n + 1)
    low = z.real < 0
    one_sided = _hurwitz(power, np.where(low, 1.0 - z, z))
    r = np.where(low, z - np.round(z.real), 0.25)
    two_sided = _hurwitz(power, r) + sign * _hurwitz(power, 1.0 - r)
    return sign * factorial(n) * np.where(low, two_sided - sign * one_sided, one_sided)


polygamma_complex.partials(lambda t, out, z, *, n: t * polygamma_complex(z, n=n + 1))


@polygamma_complex.examples
def _(rng: np.random.Generator) -> Any:
    for n, real in ((1, 0.7), (2, -3.2), (3, 40.0)):
        yield (real + rng.normal(size=3) + 1j * rng.normal(size=3),), {"n": n}


def _by_x(t: Any, out: Any, x: Any) -> Any:
    if dtype_of(x).kind == "c":
        return t * polygamma_complex(x, n=1)
    return t * polygamma_of(1, x)


digamma.partials(_by_x)


# ---- differences -------------------------------------------------------------------------------


def _power_difference(power: int, x: Any, d: Any) -> Any:
    """(x + d)^-power - x^-power."""
    return x**-power * np.expm1(-power * np.log1p(d / x))


@family(native=True, oracle=OracleExpression("x d", "psi(n, x + d) - psi(n, x)"))
def polygamma_difference(x: Any, d: Any, *, n: int) -> Any:
    """The derivative of order n of digamma at x + d, minus that at x.

    For |d| < x / 2 it is the sum over odd k of 2 (d/2)^k / k! times the derivative of order n + k
    at x + d / 2.  There, x < 1 is increased by 1 with the recurrence DLMF 5.15.5.
    """
    found = _derivative(n, x + d) - _derivative(n, x)
    near = (x > 0) & (np.abs(d) < 0.5 * x)
    if near.any():
        found[near] = _difference_series(n, x[near], d[near])
    return found


def _difference_series(n: int, x: Any, d: Any) -> Any:
    """`polygamma_difference` for |d| < x / 2."""
    shift = x < 1
    y = x + shift
    middle, half = y + 0.5 * d, 0.5 * d
    total = np.zeros_like(y)
    for k in range(25, 0, -2):
        size = factorial(n + k) / factorial(k) * (-1.0) ** (n + k + 1)
        total = total + size * (2.0 * (half / middle) ** k) * _scaled_zeta(n + k + 1, middle, k)
    step = (-1.0) ** (n + 1) * factorial(n) * _power_difference(n + 1, x, d)
    return total + np.where(shift, step, 0.0)


def _scaled_zeta(power: int, x: Any, k: int) -> Any:
    """x^k zeta(power, x) for x >= 1/2, without overflow or underflow for large x."""
    large = x > 1e6
    safe = np.where(large, 1.0, x)
    asymptotic = x ** (k + 1.0 - power) / (power - 1) * (1.0 + (power - 1) / (2.0 * x))
    asymptotic = asymptotic * (1.0 + power * (power - 1) / (12.0 * x * x))
    return np.where(large, asymptotic, safe**k * theirs.zeta(power, safe))


def _derivative(n: int, x: Any) -> Any:
    return theirs.psi(x) if n == 0 else polygamma_of(n, x)


polygamma_difference.partials(
    lambda t, out, x, d, *, n: t * polygamma_difference(x, d, n=n + 1),
    lambda t, out, x, d, *, n: t * polygamma_of(n + 1, x + d),
)


@polygamma_difference.examples
def _(rng: np.random.Generator) -> Any:
    for n in (0, 1, 3):
        yield (np.exp(rng.normal(size=4)), rng.uniform(0.1, 1.0, size=4)), {"n": n}
    yield (np.array([1e-3, 20.0, 3.0]), np.array([1e-5, 1e-6, 40.0])), {"n": 0}
    yield (np.float64(5.0), np.float64(-2.0)), {"n": 2}


digamma.cost = Cost(350.0)
psi = digamma

gamma = function(
    "gamma",
    "x",
    domain=[POSITIVE],
    oracle="gamma(x)",
    complex_ok=True,
    singular=True,
    doc="The gamma function, DLMF 5.2.1; its derivative is gamma(x) digamma(x).",
)
gamma.partials(lambda t, out, x: t * (out * digamma(x)))

gammaln = function(
    "gammaln",
    "x",
    domain=[POSITIVE],
    oracle="log(abs(gamma(x)))",
    singular=True,
    doc="log|gamma(x)| of real x, DLMF 5.2; its derivative is digamma(x).",
)
gammaln.cost = Cost(350.0)
gammaln.partials(lambda t, out, x: t * digamma(x))

loggamma = function(
    "loggamma",
    "x",
    domain=[POSITIVE],
    oracle="loggamma(x)",
    complex_ok=True,
    singular=True,
    doc="Analytic logarithm of gamma, with branch cut x < 0; its derivative is digamma(x).",
)
loggamma.partials(lambda t, out, x: t * digamma(x))

gammasgn = function(
    "gammasgn",
    "x",
    domain=[POSITIVE],
    oracle="sign(gamma(x))",
    discrete=True,
    doc="The sign of gamma(x), piecewise constant.",
)

rgamma = function(
    "rgamma",
    "x",
    domain=[POSITIVE],
    oracle="rgamma(x)",
    complex_ok=True,
    singular=True,
    doc="1 / gamma(x), DLMF 5.2; its derivative is -digamma(x) / gamma(x), (-1)^n n! at -n.",
)


def rgamma_derivative(out: Any, x: Any) -> Any:
    """The derivative of 1 / gamma at x, whose value is `out`."""
    where = lookup("where")
    left = np.real(value_of(x)) < 0.5
    low, high = where(left, x, 0.25), where(left, 1.5, x)
    reflected = gamma(1.0 - low) * cospi(low) - digamma(1.0 - low) * where(left, out, 0.0)
    return where(left, reflected, -digamma(high) * out)


rgamma.partials(lambda t, out, x: t * rgamma_derivative(out, x))


@counterpart(scipy.special.polygamma)
def polygamma(n: Any, x: Any) -> Any:
    """The derivative of order n of digamma at real x, DLMF 5.15.

    Parameters
    ----------
    n : int or array of int
        The order, not negative; not differentiable.
    x : array or Tensor

    Raises
    ------
    ArgumentError
        n is negative, or not an integer.

    Examples
    --------
    >>> float(wg.grad(wg.scipy.special.polygamma, argnums=1)(0, 1.0)) - np.pi**2 / 6 < 1e-15
    True
    """
    return polygamma_of(check_integers(n, "polygamma", "n", 0), x)


@counterpart(scipy.special.multigammaln)
def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the multivariate gamma function, DLMF 35.3.

    Parameters
    ----------
    a : array or Tensor
        Each element must be larger than (d - 1) / 2.
    d : int
        The dimension, at least 1.

    Raises
    ------
    ArgumentError
        d is not a positive integer, or an element of a is too small.
    """
    dimension = int(check_integers(d, "multigammaln", "d", 1))
    valid = value_of(a) > 0.5 * (dimension - 1)
    if not is_traced(a) and not np.all(valid):
        raise ArgumentError(
            f"multigammaln with d={dimension}: each element of a must be larger than (d - 1) / 2 = "
            f"{0.5 * (dimension - 1)}{at(user_line())}."
        )
    total: Any = 0.25 * log(pi) * dimension * (dimension - 1)
    for j in range(dimension):
        total = total + gammaln(a - 0.5 * j)
    return lookup("where")(valid, total, np.nan)  # NaN while tracing, where a is not known
