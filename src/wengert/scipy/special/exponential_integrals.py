"""Integrals of exponentials, sines and logarithms over x: DLMF 6, 7.2(iii), 8.19, 25.12.

    expi, exp1, expn      of e^x / x, of orders too
    sici, shichi          of sin(x) / x and cos(x) / x, and the hyperbolic ones: two results
    fresnel               of sin and cos of pi x^2 / 2: two results
    spence                of log(x) / (1 - x): the dilogarithm

Their slopes are what is integrated.  sin(x) / x, sinh(x) / x and log(x) / (1 - x) are smooth where
they are 0 / 0, to every order (relative_quotients.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE, elementwise

from .oracle_expression import Witness
from .register import PREFIX, function
from .relative_quotients import log1prel_of, sinc_of, sinhc_of
from .sinpi_cospi import cospi, sinpi, whole_numbers

__all__ = "expi exp1 expn sici shichi fresnel spence".split()

expi = function(
    "expi",
    "x",
    domain=[POSITIVE],
    oracle=Witness("x", "ei(x)"),
    complex_ok=True,
    singular=True,
    doc="The exponential integral Ei, DLMF 6.2.5; its derivative is e^x / x.",
)
expi.partials(lambda t, out, x: t * (np.exp(x) / x))

exp1 = function(
    "exp1",
    "x",
    domain=[POSITIVE],
    oracle=Witness("x", "e1(x)"),
    complex_ok=True,
    singular=True,
    doc="The exponential integral E1, DLMF 6.2.1; its derivative is -e^-x / x.",
)
exp1.partials(lambda t, out, x: -t * (np.exp(-x) / x))

# ---- of an order -------------------------------------------------------------------------------


@elementwise(
    name=f"{PREFIX}expn",
    domain=[(-3, 5), POSITIVE],
    oracle=Witness("n x", "expint(n, x)"),
    singular=True,
    half=False,
)
def expn_of(s: Any, n: Any, x: Any) -> Any:
    """E_n(x), DLMF 8.19; below order 0, where SciPy has none, (-n)! Q(1 - n, x) / x^(1 - n)."""
    order = s.copysign(1.0, s.abs(x)) * n  # in the dtype of both
    below = s.less(n, 1)
    power = s.where(below, 1.0 - order, 1.0)
    safe = s.where(below, x, 1.0)
    low = s.special("gamma", power) * s.special("gammaincc", power, safe) / s.power(safe, power)
    return s.where(below, low, s.special("expn", s.where(below, 1.0, order), x))


expn_of.partials(None, lambda t, out, n, x: -t * expn_of(n - 1, x))


def expn(n: Any, x: Any) -> Any:
    """E_n(x) of a tensor x and integers n, which have no derivative."""
    return expn_of(whole_numbers(n, "expn: the order n", 0), x)


# ---- with two results --------------------------------------------------------------------------


def _with_series(x: Any, family: Any, plain: Any) -> Any:
    """A smooth quotient: a family for real numbers, for complex ones by its formula off 0."""
    if dtype_of(x).kind != "c":
        return family(x, n=0)
    zero = value_of(x) == 0
    where = lookup("where")
    return where(zero, 1.0, plain(where(zero, 1.0, x)))


def _sinc(x: Any) -> Any:
    return _with_series(x, sinc_of, lambda z: np.sin(z) / z)


def _sinhc(x: Any) -> Any:
    return _with_series(x, sinhc_of, lambda z: np.sinh(z) / z)


def _two(name: str, which: int, doc: str, **options: Any) -> Any:
    return function(name, "x", result=which, complex_ok=True, doc=doc, **options)


si = _two("sici", 0, "The sine integral, DLMF 6.2.9.", oracle=Witness("x", "si(x)"))
ci = _two(
    "sici",
    1,
    "The cosine integral, 6.2.11.",
    oracle=Witness("x", "ci(x)"),
    domain=[POSITIVE],
    singular=True,
)
shi = _two("shichi", 0, "The hyperbolic sine integral, DLMF 6.2.15.", oracle=Witness("x", "shi(x)"))
chi = _two(
    "shichi",
    1,
    "That of cosh, 6.2.16.",
    oracle=Witness("x", "chi(x)"),
    domain=[POSITIVE],
    singular=True,
)
si.partials(lambda t, out, x: t * _sinc(x))
ci.partials(lambda t, out, x: t * (np.cos(x) / x))
shi.partials(lambda t, out, x: t * _sinhc(x))
chi.partials(lambda t, out, x: t * (np.cosh(x) / x))


def sici(x: Any) -> tuple[Any, Any]:
    """The sine and cosine integrals of a tensor."""
    return si(x), ci(x)


def shichi(x: Any) -> tuple[Any, Any]:
    """The hyperbolic sine and cosine integrals of a tensor."""
    return shi(x), chi(x)


fresnel_s = _two(
    "fresnel", 0, "Fresnel's sine integral, DLMF 7.2.8.", oracle=Witness("x", "fresnels(x)")
)
fresnel_c = _two(
    "fresnel", 1, "Fresnel's cosine integral, DLMF 7.2.7.", oracle=Witness("x", "fresnelc(x)")
)
fresnel_s.partials(lambda t, out, x: t * sinpi(0.5 * x * x))
fresnel_c.partials(lambda t, out, x: t * cospi(0.5 * x * x))


def fresnel(z: Any) -> tuple[Any, Any]:
    """Fresnel's integrals of a tensor, the sine's first."""
    return fresnel_s(z), fresnel_c(z)


# ---- the dilogarithm ---------------------------------------------------------------------------

spence = function(
    "spence",
    "x",
    domain=[POSITIVE],
    oracle=Witness("x", "polylog(2, 1 - x)"),
    complex_ok=True,
    singular=True,
    doc="The dilogarithm of 1 - x, DLMF 25.12: the integral of log(u) / (1 - u) from 1 to x.",
)


def _spence_slope(x: Any) -> Any:
    """log(x) / (1 - x), -1 at x = 1."""
    where = lookup("where")
    if dtype_of(x).kind == "c":
        one = value_of(x) == 1
        off = where(one, 2.0, x)
        return where(one, -1.0, np.log(off) / (1.0 - off))
    near = np.abs(value_of(x) - 1.0) < 0.5
    off = where(near, 2.0, x)
    return where(near, -log1prel_of(where(near, x, 1.0) - 1.0, n=0), np.log(off) / (1.0 - off))


spence.partials(lambda t, out, x: t * _spence_slope(x))
