"""The zeta functions of Riemann and Hurwitz, differentiable in both arguments: DLMF 25.

    zeta     zeta(x), and zeta(x, q), the sum over k of (q + k)^-x
    zetac    zeta(x) - 1

The derivative with respect to q is -x zeta(x + 1, q) (DLMF 25.11.17).  Derivatives with respect to
x are computed by the Euler-Maclaurin formula (DLMF 25.2.9, 25.11.5) with power series in a step of
x; for x < 0 by the functional equation (DLMF 25.4.1).  Accuracy: 1e-13, relative to the larger of
the function and the derivative.
"""

from __future__ import annotations

from math import factorial, inf, log, pi
from typing import Any

import numpy as np
import scipy.special

from wengert._engine.kinds.elementwise import elementwise
from wengert._engine.tensor.numpy_dispatch import counterpart

from ...errors import ArgumentError, at, user_line
from .bessel_orders import cospi_and_sinpi
from .register import PREFIX, OracleExpression, family, function
from .series_and_quadrature import (
    BERNOULLI,
    exponential,
    is_traced_scalar,
    log_gamma,
    product,
    zeros,
)

__all__ = ["zeta", "zetac"]

_LEADING = 12  # terms that are added before the Euler-Maclaurin formula is applied


def _single(c: Any) -> Any:
    """The coefficients c of a series in one variable as a series in two."""
    if any(map(is_traced_scalar, c)):
        out = zeros(len(c) - 1, 0, *c)
        for j, x in enumerate(c):
            out[j, 0] = x
        return out
    return np.asarray(c)[:, None]


def _power(n: int, base: Any, s: Any) -> Any:
    """The series of base^-(s + h) in h."""
    c = zeros(n, 0, s)
    if n:
        c[1, 0] = -np.log(base)
    return exponential(c) * base**-s


def _hurwitz(n: int, s: Any, q: Any) -> Any:
    """The coefficients of zeta(s + h, q), for s > 0, s != 1 and q > 0; DLMF 25.11.5."""
    total = sum(_power(n, q + k, s) for k in range(_LEADING))
    far = q + _LEADING
    power = _power(n, far, s)
    # far^(1-s) / (s - 1 + h)
    pole = _single([(-1.0) ** j / (s - 1.0) ** (j + 1) for j in range(n + 1)])
    integral = np.zeros_like(power)
    for j in range(n + 1):
        integral[j] = sum(power[i] * pole[j - i] for i in range(j + 1))
    total = total + integral * far + 0.5 * power
    rising = product(power, s, 1.0, 0) / far
    for j, number in enumerate(BERNOULLI, 1):
        total = total + rising * (number / factorial(2 * j))
        for i in (2 * j - 1, 2 * j):
            rising = product(rising, s + i, 1.0, 0) / far
    return total[:, 0]


def _reflected(n: int, s: Any) -> Any:
    """The coefficients of zeta(s + h) for s <= 0, by the functional equation DLMF 25.4.1.

    zeta(s) = 2 (2 pi)^(s-1) sin(pi s / 2) gamma(1 - s) zeta(1 - s).
    """
    other = 1.0 - s
    c = zeros(n, 0, s)
    for k, value in enumerate(log_gamma(other, n), 1):
        c[k, 0] = (-1.0) ** k * value + (log(2.0 * pi) if k == 1 else 0.0)
    size = np.exp((s - 1.0) * log(2.0 * pi) + scipy.special.gammaln(other))
    first = 2.0 * size * exponential(c)[:, 0]
    cos, sin = cospi_and_sinpi(0.5 * s)
    waves = [[sin, cos, -sin, -cos][k % 4] * (0.5 * pi) ** k / factorial(k) for k in range(n + 1)]
    with np.errstate(all="ignore"):
        beyond = _hurwitz(n, np.where(other == 1.0, 2.0, other), np.ones_like(s))
    last = [(-1.0) ** k * beyond[k] for k in range(n + 1)]
    total = zeros(n, 0, s)[:, 0]
    for i in range(n + 1):
        for j in range(n + 1 - i):
            for k in range(n + 1 - i - j):
                total[i + j + k] += first[i] * waves[j] * last[k]
    return total


@family(native=True, oracle=OracleExpression("x", "diff(lambda x: zeta(x), x, n)"))
def zeta_order(x: Any, *, n: int) -> Any:
    """The n-th derivative of the Riemann zeta function; infinite at the pole."""
    out = np.full_like(x, np.nan)
    low = x < -0.5
    if low.any():
        out[low] = _reflected(n, x[low])[n]
    high = (x >= -0.5) & (x != 1.0)
    if high.any():
        out[high] = _hurwitz(n, x[high], np.ones_like(x[high]))[n]
    out[x == 1.0] = inf
    out[x == inf] = 0.0
    return out * factorial(n)


@family(native=True, oracle=OracleExpression("x q", "diff(lambda x: zeta(x, q), x, n)"))
def hurwitz_order(x: Any, q: Any, *, n: int) -> Any:
    """The n-th derivative with respect to x of zeta(x, q), for x > 1 and q > 0; NaN elsewhere."""
    out = np.full_like(x, np.nan)
    inside = (x > 1.0) & (q > 0.0) & np.isfinite(x) & np.isfinite(q)
    if inside.any():
        out[inside] = _hurwitz(n, x[inside], q[inside])[n]
    out[(x == inf) & (q > 1.0)] = 0.0
    return out * factorial(n)


zeta_order.partials(lambda t, out, x, n: t * zeta_order(x, n=n + 1))
hurwitz_order.partials(
    lambda t, out, x, q, n: t * hurwitz_order(x, q, n=n + 1),
    lambda t, out, x, q, n: (
        -t * (x * hurwitz_order(x + 1.0, q, n=n) + n * hurwitz_order(x + 1.0, q, n=max(n - 1, 0)))
    ),
)


@zeta_order.examples
def _riemann(rng: Any) -> Any:
    yield (rng.uniform(1.3, 4.0, size=2),), {"n": 1}


@hurwitz_order.examples
def _of_two(rng: Any) -> Any:
    yield (rng.uniform(1.3, 4.0, size=(2, 1)), rng.uniform(0.3, 4.0, size=1)), {"n": 1}


riemann = function(
    "zeta",
    "x",
    domain=[(1.0, inf)],
    oracle=OracleExpression("x", "zeta(x)"),
    singular=True,
    half=False,
    doc="Riemann zeta function, DLMF 25.2.1.",
)
riemann.partials(lambda t, out, x: t * zeta_order(x, n=1))


@elementwise(
    name=f"{PREFIX}zeta.hurwitz",
    domain=[(1.0, inf), (0.0, inf)],
    oracle=OracleExpression("x q", "zeta(x, q)"),
    singular=True,
    half=False,
)
def hurwitz(s: Any, x: Any, q: Any) -> Any:
    """Hurwitz zeta function, DLMF 25.11.1: the sum over k of (q + k)^-x."""
    return s.special("zeta", x, q)


hurwitz.partials(
    lambda t, out, x, q: t * hurwitz_order(x, q, n=1),
    lambda t, out, x, q: -t * (x * hurwitz(x + 1.0, q)),
)

zetac = function(
    "zetac",
    "x",
    domain=[(1.0, inf)],
    oracle=OracleExpression("x", "zeta(x) - 1"),
    singular=True,
    half=False,
    doc="zeta(x) - 1, without cancellation for large x.",
)
zetac.partials(lambda t, out, x: t * zeta_order(x, n=1))


@counterpart(scipy.special.zeta)
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """The Riemann zeta function zeta(x), or the Hurwitz zeta function zeta(x, q).

    Parameters
    ----------
    x : array or Tensor
        Real; with q, above 1.
    q : array or Tensor, optional
        Real, above 0.
    out : None
        Not supported.

    Returns
    -------
    array or Tensor
        Differentiable with respect to both arguments, to any order.

    Raises
    ------
    ArgumentError
        `out` is given.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.special import zeta
    >>> float(wg.grad(lambda q: zeta(2.0, q))(1.0).round(6))
    -2.404114
    """
    if out is not None:
        raise ArgumentError(
            "zeta of tensors with out=: results are not written to arrays. Omit out, and use the "
            f"result{at(user_line())}."
        )
    return riemann(x) if q is None else hurwitz(x, q)
