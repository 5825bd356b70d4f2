"""Exponential, trigonometric and Fresnel integrals, dilogarithm, Lambert W and Wright omega.

    expi, exp1, expn  exponential integrals
    sici, shichi      integrals of sin(x) / x and cos(x) / x, and of sinh(x) / x and cosh(x) / x
    fresnel           integrals of sin(pi x^2 / 2) and cos(pi x^2 / 2)
    spence            integral of log(x) / (1 - x), a dilogarithm
    lambertw          all branches; its derivative is 1 / (z + e^w)
    wrightomega       real and complex; its derivative is w / (1 + w)

The derivatives of integrals are the integrands.  sin(x) / x, sinh(x) / x and log(x) / (1 - x) are
smooth where they are 0 / 0; elementary.py has their derivatives of any order.

As in SciPy, lambertw of real operands is complex and in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from wengert._engine.core.handle import dtype_of, value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE, REAL, elementwise
from wengert._engine.tensor.numpy_dispatch import counterpart

from .elementary import check_integers, cospi, log1prel_of, sinc_of, sinhc_of, sinpi
from .register import PREFIX, OracleExpression, function

__all__ = ["exp1", "expi", "expn", "fresnel", "lambertw", "shichi", "sici", "spence", "wrightomega"]

expi = function(
    "expi",
    "x",
    domain=[POSITIVE],
    oracle=OracleExpression("x", "ei(x)"),
    complex_ok=True,
    singular=True,
    doc="The exponential integral Ei, DLMF 6.2.5; its derivative is e^x / x.",
)
expi.partials(lambda t, out, x: t * (np.exp(x) / x))

exp1 = function(
    "exp1",
    "x",
    domain=[POSITIVE],
    oracle=OracleExpression("x", "e1(x)"),
    complex_ok=True,
    singular=True,
    doc="The exponential integral E1, DLMF 6.2.1; its derivative is -e^-x / x.",
)
exp1.partials(lambda t, out, x: -t * (np.exp(-x) / x))

# ---- of order n --------------------------------------------------------------------------------


@elementwise(
    name=f"{PREFIX}expn",
    domain=[(-3, 5), POSITIVE],
    oracle=OracleExpression("n x", "expint(n, x)"),
    singular=True,
    half=False,
)
def expn_of(s: Any, n: Any, x: Any) -> Any:
    """E_n(x), DLMF 8.19; for n < 1, which SciPy lacks, gamma(1 - n) Q(1 - n, x) / x^(1 - n)."""
    order = s.copysign(1.0, s.abs(x)) * n  # in the common dtype
    below = s.less(n, 1)
    power = s.where(below, 1.0 - order, 1.0)
    safe = s.where(below, x, 1.0)
    low = s.special("gamma", power) * s.special("gammaincc", power, safe) / s.power(safe, power)
    return s.where(below, low, s.special("expn", s.where(below, 1.0, order), x))


expn_of.partials(None, lambda t, out, n, x: -t * expn_of(n - 1, x))


def expn(n: Any, x: Any) -> Any:
    """E_n(x) for integers n, which are not differentiable."""
    return expn_of(check_integers(n, "expn", "n", 0), x)


# ---- two results -------------------------------------------------------------------------------


def _smooth_quotient(x: Any, family: Any, formula: Any) -> Any:
    """A quotient that is 1 at 0: a family for real x, a formula for complex x."""
    if dtype_of(x).kind != "c":
        return family(x, n=0)
    zero = value_of(x) == 0
    where = lookup("where")
    return where(zero, 1.0, formula(where(zero, 1.0, x)))


def _sinc(x: Any) -> Any:
    return _smooth_quotient(x, sinc_of, lambda z: np.sin(z) / z)


def _sinhc(x: Any) -> Any:
    return _smooth_quotient(x, sinhc_of, lambda z: np.sinh(z) / z)


def _one_of_two(name: str, result: int, doc: str, **options: Any) -> Any:
    return function(name, "x", result=result, complex_ok=True, doc=doc, **options)


si = _one_of_two("sici", 0, "Sine integral, DLMF 6.2.9.", oracle=OracleExpression("x", "si(x)"))
ci = _one_of_two(
    "sici",
    1,
    "Cosine integral, DLMF 6.2.11.",
    oracle=OracleExpression("x", "ci(x)"),
    domain=[POSITIVE],
    singular=True,
)
shi = _one_of_two(
    "shichi", 0, "Hyperbolic sine integral, DLMF 6.2.15.", oracle=OracleExpression("x", "shi(x)")
)
chi = _one_of_two(
    "shichi",
    1,
    "Hyperbolic cosine integral, DLMF 6.2.16.",
    oracle=OracleExpression("x", "chi(x)"),
    domain=[POSITIVE],
    singular=True,
)
si.partials(lambda t, out, x: t * _sinc(x))
ci.partials(lambda t, out, x: t * (np.cos(x) / x))
shi.partials(lambda t, out, x: t * _sinhc(x))
chi.partials(lambda t, out, x: t * (np.cosh(x) / x))


def sici(x: Any) -> tuple[Any, Any]:
    """The sine and cosine integrals."""
    return si(x), ci(x)


def shichi(x: Any) -> tuple[Any, Any]:
    """The hyperbolic sine and cosine integrals."""
    return shi(x), chi(x)


fresnel_s = _one_of_two(
    "fresnel", 0, "Fresnel sine integral, DLMF 7.2.8.", oracle=OracleExpression("x", "fresnels(x)")
)
fresnel_c = _one_of_two(
    "fresnel",
    1,
    "Fresnel cosine integral, DLMF 7.2.7.",
    oracle=OracleExpression("x", "fresnelc(x)"),
)
fresnel_s.partials(lambda t, out, x: t * sinpi(0.5 * x * x))
fresnel_c.partials(lambda t, out, x: t * cospi(0.5 * x * x))


def fresnel(z: Any) -> tuple[Any, Any]:
    """The Fresnel sine and cosine integrals."""
    return fresnel_s(z), fresnel_c(z)


# ---- the dilogarithm ---------------------------------------------------------------------------

spence = function(
    "spence",
    "x",
    domain=[POSITIVE],
    oracle=OracleExpression("x", "polylog(2, 1 - x)"),
    complex_ok=True,
    singular=True,
    doc="The dilogarithm of 1 - x, DLMF 25.12: the integral of log(u) / (1 - u) from 1 to x.",
)


def _spence_derivative(x: Any) -> Any:
    """log(x) / (1 - x), and -1 at x = 1."""
    where = lookup("where")
    if dtype_of(x).kind == "c":
        one = value_of(x) == 1
        off = where(one, 2.0, x)
        return where(one, -1.0, np.log(off) / (1.0 - off))
    near = np.abs(value_of(x) - 1.0) < 0.5
    off = where(near, 2.0, x)
    return where(near, -log1prel_of(where(near, x, 1.0) - 1.0, n=0), np.log(off) / (1.0 - off))


spence.partials(lambda t, out, x: t * _spence_derivative(x))


# ---- Lambert W and Wright omega ----------------------------------------------------------------


@elementwise(
    name=f"{PREFIX}lambertw",
    domain=[(0.0, np.inf), (-2, 2)],
    oracle=OracleExpression("z k", "lambertw(z, int(k))"),
    complex_ok=True,
    singular=True,
    half=False,
    single=False,
)
def lambertw_of(s: Any, z: Any, k: Any) -> Any:
    """Branch k of the solution w of w e^w = z, DLMF 4.13."""
    return s.special("lambertw", z, k)


lambertw_of.partials(lambda t, out, z, k: t / (z + np.exp(out)), None)


@counterpart(scipy.special.lambertw)
def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Any:
    """Lambert W function: branch k of the complex solution w of w e^w = z.

    Parameters
    ----------
    z : array or Tensor
    k : int or array of int
        The branch; not differentiable.
    tol : float
        Ignored for tensors, whose values have the accuracy of SciPy's default.

    Examples
    --------
    >>> round(float(wg.grad(lambda z: wg.scipy.special.lambertw(z).real)(np.e)), 12)
    0.183939720586
    """
    return lambertw_of(z, check_integers(k, "lambertw", "k", -(2**31)))


wrightomega = function(
    "wrightomega",
    "z",
    domain=[REAL],
    oracle=OracleExpression("z", "lambertw(exp(z), ceil((im(z) - pi) / (2 * pi)))"),
    complex_ok=True,
    doc="Wright omega: the solution w of w + log(w) = z; its derivative is w / (1 + w).",
)
wrightomega.partials(lambda t, out, z: t * (out / (1.0 + out)))
