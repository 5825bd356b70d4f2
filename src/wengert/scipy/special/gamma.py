"""The gamma function, its reciprocal, its logarithm and polygamma functions: DLMF 5.

    gamma, rgamma            the function, and its reciprocal, which is entire
    gammaln, loggamma        log|gamma| of real, and the analytic logarithm of complex arguments
    gammasgn                 the sign of gamma
    digamma, psi, polygamma  derivatives of the logarithm
    multigammaln             logarithm of the multivariate gamma function

digamma has poles where the reciprocal is 0.  So for x < 1/2 the derivative of the reciprocal is
computed by the reflection formula 5.5.3, which has none: at x = -n it is (-1)^n n!.
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
from .sinpi_cospi import check_integers, cospi

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
