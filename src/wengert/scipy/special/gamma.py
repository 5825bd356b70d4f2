"""The gamma function, its reciprocal, its logarithm and polygamma functions: DLMF 5.

    gamma, rgamma            the function and its reciprocal, which is entire
    gammaln, loggamma        its logarithm: of |gamma|, and the analytic one, also complex
    gammasgn                 the sign of gamma: a step
    digamma, psi, polygamma  the derivatives of the logarithm
    multigammaln             of many dimensions

The poles of digamma stand at the zeros of the reciprocal, so below 1/2 its slope is written with
the reflection 5.5.3, which is smooth there: at x = -n it is (-1)^n n!.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np
import scipy.special

from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import Cost
from wengert._engine.kinds.elementwise import POSITIVE
from wengert._engine.tensor.numpy_dispatch import counterpart

from ...errors import ArgumentError, at, user_line
from .polygammas import digamma, polygamma_of
from .register import function
from .sinpi_cospi import cospi, whole_numbers

__all__ = """
    gamma rgamma gammaln loggamma gammasgn digamma psi polygamma multigammaln
""".split()

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
    doc="The analytic logarithm of gamma, cut along x < 0; its derivative is digamma(x).",
)
loggamma.partials(lambda t, out, x: t * digamma(x))

gammasgn = function(
    "gammasgn",
    "x",
    domain=[POSITIVE],
    oracle="sign(gamma(x))",
    discrete=True,
    doc="The sign of gamma(x): a step, without derivative.",
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


def rgamma_slope(out: Any, x: Any) -> Any:
    """The derivative of 1 / gamma at x, whose value is `out`."""
    where = lookup("where")
    left = np.real(value_of(x)) < 0.5
    low, high = where(left, x, 0.25), where(left, 1.5, x)
    reflected = gamma(1.0 - low) * cospi(low) - digamma(1.0 - low) * where(left, out, 0.0)
    return where(left, reflected, -digamma(high) * out)


rgamma.partials(lambda t, out, x: t * rgamma_slope(out, x))


@counterpart(scipy.special.polygamma)
def polygamma(n: Any, x: Any) -> Any:
    """The derivative of order n of digamma at real x, DLMF 5.15; by x it is that of order n + 1.

    Parameters
    ----------
    n : int or array of int
        Not negative; it is a number of derivatives, and has none itself.
    x : array or Tensor

    Raises
    ------
    ArgumentError
        n is negative, or no integer.

    Examples
    --------
    >>> float(wg.grad(wg.scipy.special.polygamma, argnums=1)(0, 1.0)) - np.pi**2 / 6 < 1e-15
    True
    """
    return polygamma_of(whole_numbers(n, "polygamma: the order n", 0), x)


@counterpart(scipy.special.multigammaln)
def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the gamma function of dimension d, DLMF 35.3: a sum of gammaln.

    Parameters
    ----------
    a : array or Tensor
        Each larger than (d - 1) / 2.
    d : int
        At least 1.

    Raises
    ------
    ArgumentError
        d is not such a number, or an a is too small.
    """
    number = int(whole_numbers(d, "multigammaln: the dimension d", 1))
    right = value_of(a) > 0.5 * (number - 1)
    if not is_traced(a) and not np.all(right):
        raise ArgumentError(
            f"multigammaln: each a has to be larger than (d - 1) / 2 = {0.5 * (number - 1)}; the "
            f"function has no value there{at(user_line())}."
        )
    total: Any = 0.25 * log(pi) * number * (number - 1)
    for j in range(number):
        total = total + gammaln(a - 0.5 * j)
    return lookup("where")(right, total, np.nan)  # a graph does not know its operands yet
