"""Elementary functions of scipy.special: powers, exponentials, functions of degrees.

cbrt exp2 expm1 log1p            operations of wengert, to which SciPy's ufuncs dispatch
exp10 cosm1 exprel powm1         10^x, cos(x) - 1, (e^x - 1) / x, x^y - 1
sindg cosdg tandg cotdg radian   angles in degrees
sinc round                       as in NumPy
expit logit log_expit softplus   the logistic function, its inverse and logarithm; softplus
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np
import scipy.special

from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE, REAL
from wengert._engine.tensor.numpy_dispatch import counterpart

from ...numpy.elementwise import sinc as sinc
from .register import function
from .relative_quotients import exprel_of

__all__ = """
    cbrt exp2 expm1 log1p exp10 cosm1 exprel powm1 sindg cosdg tandg cotdg radian sinc round
    expit logit log_expit
""".split()

cbrt, exp2, expm1, log1p, round = map(lookup, "cbrt exp2 expm1 log1p rint".split())
expit, log_expit = lookup("sigmoid"), lookup("log_sigmoid")
DEGREE = pi / 180.0

exp10 = function("exp10", "x", oracle="mpf(10)**x", doc="10^x; its derivative is log(10) 10^x.")
exp10.partials(lambda t, out, x: t * (out * log(10.0)))

cosm1 = function(
    "cosm1",
    "x",
    oracle="-2 * sin(x / 2)**2",
    doc="cos(x) - 1, without cancellation near 0; its derivative is -sin(x).",
)
cosm1.partials(lambda t, out, x: -t * np.sin(x))

exprel = function(
    "exprel",
    "x",
    oracle="expm1(x) / x if x else mpf(1)",
    doc="(e^x - 1) / x, and 1 at 0; all derivatives are smooth at 0.",
)
exprel.partials(lambda t, out, x: t * exprel_of(x, n=1))

powm1 = function(
    "powm1",
    "x y",
    domain=[POSITIVE, REAL],
    oracle="expm1(y * log(x))",
    singular=True,
    doc="x^y - 1, without cancellation near 0; d/dx = y x^(y - 1), d/dy = x^y log(x).",
)


def _powm1_by_y(t: Any, out: Any, x: Any, y: Any) -> Any:
    power = lookup("power")
    return power.rules[1](t, power(x, y), x, y)


def _powm1_by_x(t: Any, out: Any, x: Any, y: Any) -> Any:
    power = lookup("power")
    return power.rules[0](t, power(x, y), x, y)


powm1.partials(_powm1_by_x, _powm1_by_y)

# ---- degrees -----------------------------------------------------------------------------------

sindg = function("sindg", "x", oracle="sinpi(x / 180)", doc="The sine of an angle in degrees.")
cosdg = function("cosdg", "x", oracle="cospi(x / 180)", doc="The cosine of an angle in degrees.")
sindg.partials(lambda t, out, x: t * (DEGREE * cosdg(x)))
cosdg.partials(lambda t, out, x: t * (-DEGREE * sindg(x)))

tandg = function(
    "tandg",
    "x",
    domain=[(-90.0, 90.0)],
    oracle="sinpi(x / 180) / cospi(x / 180)",
    singular=True,
    doc="The tangent of an angle in degrees.",
)
tandg.partials(lambda t, out, x: t * DEGREE / cosdg(x) ** 2)

cotdg = function(
    "cotdg",
    "x",
    domain=[(0.0, 180.0)],
    oracle="cospi(x / 180) / sinpi(x / 180)",
    singular=True,
    doc="The cotangent of an angle in degrees.",
)
cotdg.partials(
    lambda t, out, x: t * -DEGREE / sindg(x) ** 2
)  # in terms of SciPy's cotdg it would cancel

radian = function(
    "radian",
    "d m s",
    oracle="(d + m / 60 + s / 3600) * pi / 180",
    bounded=True,
    doc="An angle in degrees, minutes and seconds converted to radians.",
)
radian.partials(
    lambda t, out, d, m, s: t * DEGREE,
    lambda t, out, d, m, s: t * (DEGREE / 60.0),
    lambda t, out, d, m, s: t * (DEGREE / 3600.0),
)

# ---- the logistic function ---------------------------------------------------------------------

logit = function(
    "logit",
    "x",
    domain=[(0.0, 1.0)],
    oracle="log(x / (1 - x))",
    singular=True,
    doc="log(x / (1 - x)), the inverse of expit; its derivative is 1 / (x (1 - x)).",
)
logit.partials(lambda t, out, x: t / (x * (1.0 - x)))

if hasattr(scipy.special, "softplus"):
    __all__.append("softplus")

    @counterpart(scipy.special.softplus)
    def softplus(x: Any, **kwargs: Any) -> Any:
        """log(1 + e^x), without overflow; its derivative is expit(x)."""
        return lookup("softplus")(x, **kwargs)
