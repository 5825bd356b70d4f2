"""Box-Cox transforms and their inverses, smooth at lambda = 0.

    boxcox, boxcox1p             (x^lambda - 1) / lambda, log(x) at lambda = 0; the same of 1 + x
    inv_boxcox, inv_boxcox1p     their inverses

With L = log(x) the transform is L (e^u - 1) / u at u = lambda L, and the inverse is exp(y h(v))
with h(v) = log(1 + v) / v at v = lambda y.  Both quotients are smooth at 0 (relative_quotients.py),
and so are the derivatives with respect to lambda: L^2 / 2 and -y^2 e^y / 2 at lambda = 0.

G. E. P. Box and D. R. Cox, "An analysis of transformations", J. Royal Statistical Society B 26
(1964) 211-252.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE

from .register import function
from .relative_quotients import exprel_of, log1prel_of

__all__ = "boxcox boxcox1p inv_boxcox inv_boxcox1p".split()

EXPONENT = (-3.0, 3.0)

boxcox = function(
    "boxcox",
    "x lmbda",
    domain=[POSITIVE, EXPONENT],
    oracle="(x**lmbda - 1) / lmbda if lmbda else log(x)",
    singular=True,
    doc="(x^lambda - 1) / lambda, and log(x) at lambda = 0; d/dx = x^(lambda - 1).",
)


def _by_lambda(t: Any, log: Any, lmbda: Any) -> Any:
    """L^2 times the derivative of (e^u - 1) / u at u = lambda L; 1 / lambda^2 where L is -inf."""
    where = lookup("where")
    end = np.logical_and(np.isneginf(value_of(log)), value_of(lmbda) > 0)
    inside = where(end, 0.0, log)
    slope = inside * inside * exprel_of(lmbda * inside, n=1)
    return t * where(end, 1.0 / where(end, lmbda, 1.0) ** 2, slope)


boxcox.partials(
    lambda t, out, x, lmbda: t * x ** (lmbda - 1.0),
    lambda t, out, x, lmbda: _by_lambda(t, np.log(x), lmbda),
)

boxcox1p = function(
    "boxcox1p",
    "x lmbda",
    domain=[(-1.0, np.inf), EXPONENT],
    oracle="expm1(lmbda * log1p(x)) / lmbda if lmbda else log1p(x)",
    singular=True,
    doc="((1 + x)^lambda - 1) / lambda, and log(1 + x) at lambda = 0; d/dx = (1 + x)^(lambda - 1).",
)
boxcox1p.partials(
    lambda t, out, x, lmbda: t * (1.0 + x) ** (lmbda - 1.0),
    lambda t, out, x, lmbda: _by_lambda(t, np.log1p(x), lmbda),
)

inv_boxcox = function(
    "inv_boxcox",
    "y lmbda",
    domain=[POSITIVE, (1e-290, 3.0)],
    oracle="exp(log1p(lmbda * y) / lmbda) if lmbda else exp(y)",
    singular=True,
    doc="(1 + lambda y)^(1 / lambda), and e^y at lambda = 0.",
)


def _inverse_by_y(t: Any, power: Any, y: Any, lmbda: Any) -> Any:
    """(1 + lambda y)^(1 / lambda - 1)."""
    where = lookup("where")
    end = value_of(lmbda) * value_of(y) == -1.0
    zero = where(end, 0.0, 1.0) ** (where(end, 1.0 / where(end, lmbda, 1.0) - 1.0, 0.0))
    return t * where(end, zero, power / where(end, 1.0, 1.0 + lmbda * y))


def _inverse_by_lambda(t: Any, power: Any, y: Any, lmbda: Any) -> Any:
    """(1 + lambda y)^(1 / lambda) y^2 h'(lambda y); 0 where the power is 0."""
    where = lookup("where")
    end = value_of(lmbda) * value_of(y) == -1.0
    slope = y * y * log1prel_of(where(end, 0.0, lmbda * y), n=1)
    return t * where(end, 0.0, power * slope)


inv_boxcox.partials(
    lambda t, out, y, lmbda: _inverse_by_y(t, out, y, lmbda),
    lambda t, out, y, lmbda: _inverse_by_lambda(t, out, y, lmbda),
)

inv_boxcox1p = function(
    "inv_boxcox1p",
    "y lmbda",
    domain=[POSITIVE, (1e-290, 3.0)],
    oracle="expm1(log1p(lmbda * y) / lmbda) if lmbda else expm1(y)",
    singular=True,
    doc="(1 + lambda y)^(1 / lambda) - 1, and e^y - 1 at lambda = 0.",
)


def _power(out: Any, y: Any, lmbda: Any) -> Any:
    """out + 1; e^y for tiny lambda y, where SciPy returns y instead of e^y - 1."""
    return lookup("where")(np.abs(lmbda * y) < 1e-150, np.exp(y), out + 1.0)


inv_boxcox1p.partials(
    lambda t, out, y, lmbda: _inverse_by_y(t, _power(out, y, lmbda), y, lmbda),
    lambda t, out, y, lmbda: _inverse_by_lambda(t, _power(out, y, lmbda), y, lmbda),
)
