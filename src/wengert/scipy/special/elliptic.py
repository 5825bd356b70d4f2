"""Elliptic integrals of Legendre and Jacobi elliptic functions (DLMF 19.2, 22); the AGM.

    ellipk, ellipkm1, ellipe     complete integrals, of the parameter m (1 - m for ellipkm1)
    ellipkinc, ellipeinc         incomplete integrals, of the amplitude phi and the parameter m
    ellipj                       sn, cn, dn and the amplitude, of u and m
    agm                          arithmetic-geometric mean

Derivatives with respect to m are multiples of Carlson's R_D (carlson.py), without cancellation at
m = 0 and m = 1.  For |phi| > pi / 2, phi is reduced by a multiple j of pi, and 2 j times the
complete integral is added.
"""

from __future__ import annotations

from math import inf, log, pi
from typing import Any

import numpy as np

from wengert._engine.core.handle import possibly, value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE, REAL

from .carlson import elliprd
from .register import OracleExpression, function

__all__ = "ellipk ellipkm1 ellipe ellipkinc ellipeinc ellipj agm".split()

BELOW_ONE = (-inf, 1.0)


def _k_by_m(m: Any) -> Any:
    """The derivative of the complete integral of the first kind K."""
    return elliprd(0.0, 1.0, 1.0 - m) / 6.0


def _e_by_m(m: Any) -> Any:
    """The derivative of the complete integral of the second kind E."""
    return elliprd(0.0, 1.0 - m, 1.0) / -6.0


_options: dict[str, Any] = {"singular": True}
ellipk = function(
    "ellipk",
    "m",
    domain=[BELOW_ONE],
    oracle="ellipk(m)",
    doc="K(m), DLMF 19.2.8; its derivative is R_D(0, 1, 1 - m) / 6.",
    **_options,
)
ellipk.partials(lambda t, out, m: t * _k_by_m(m))

ellipkm1 = function(
    "ellipkm1",
    "p",
    domain=[POSITIVE],
    oracle="pi / 2 / agm(1, sqrt(p))",
    doc="K(1 - p), for p near 0; its derivative is -R_D(0, 1, p) / 6.",
    **_options,
)
ellipkm1.partials(lambda t, out, p: t * (elliprd(0.0, 1.0, p) / -6.0))

ellipe = function(
    "ellipe",
    "m",
    domain=[BELOW_ONE],
    oracle="ellipe(m)",
    doc="E(m), DLMF 19.2.8; its derivative is -R_D(0, 1 - m, 1) / 6.",
    **_options,
)
ellipe.partials(lambda t, out, m: t * _e_by_m(m))

# ---- incomplete --------------------------------------------------------------------------------


def _reduce(phi: Any) -> tuple[Any, Any, Any]:
    """The multiple j of pi nearest to phi, and sin and cos^2 of the remainder."""
    j = np.rint(value_of(phi) / pi)
    rest = phi - j * pi
    return j, np.sin(rest), np.cos(rest) ** 2


def _complete_part(t: Any, j: Any, derivative: Any, m: Any) -> Any:
    """2 j times the derivative of the complete integral; 0.0 if all j are 0."""
    return 2.0 * t * j * derivative(m) if possibly(np.not_equal(j, 0.0)) else 0.0


def _f_by_m(t: Any, phi: Any, m: Any) -> Any:
    j, s, c2 = _reduce(phi)
    part = t * (s * s * s * elliprd(c2, 1.0, 1.0 - m * s * s) / 6.0)
    return part + _complete_part(t, j, _k_by_m, m)


def _e_incomplete_by_m(t: Any, phi: Any, m: Any) -> Any:
    j, s, c2 = _reduce(phi)
    part = t * (s * s * s * elliprd(c2, 1.0 - m * s * s, 1.0) / -6.0)
    return part + _complete_part(t, j, _e_by_m, m)


def _root(phi: Any, m: Any) -> Any:
    return np.sqrt(1.0 - m * np.sin(phi) ** 2)


ellipkinc = function(
    "ellipkinc",
    "phi m",
    domain=[REAL, BELOW_ONE],
    oracle=OracleExpression("phi m", "ellipf(phi, m)"),
    doc="F(phi, m), DLMF 19.2.4; d/dphi = 1 / sqrt(1 - m sin(phi)^2).",
    **_options,
)
ellipkinc.partials(
    lambda t, out, phi, m: t / _root(phi, m), lambda t, out, phi, m: _f_by_m(t, phi, m)
)

ellipeinc = function(
    "ellipeinc",
    "phi m",
    domain=[REAL, BELOW_ONE],
    oracle=OracleExpression("phi m", "ellipe(phi, m)"),
    doc="E(phi, m), DLMF 19.2.5; d/dphi = sqrt(1 - m sin(phi)^2).",
    **_options,
)
ellipeinc.partials(
    lambda t, out, phi, m: t * _root(phi, m),
    lambda t, out, phi, m: _e_incomplete_by_m(t, phi, m),
)

# ---- Jacobi elliptic functions -----------------------------------------------------------------


def _jacobi(result: int, doc: str, oracle: str) -> Any:
    witness = OracleExpression("u m", oracle)
    return function(
        "ellipj",
        "u m",
        result=result,
        domain=[REAL, (0.0, 1.0)],
        oracle=witness,
        doc=doc,
        **_options,
    )


sn = _jacobi(0, "sn(u, m), DLMF 22.2.4; d/du = cn dn.", "re(ellipfun('sn', u, m=m))")
cn = _jacobi(1, "cn(u, m), DLMF 22.2.5; d/du = -sn dn.", "re(ellipfun('cn', u, m=m))")
dn = _jacobi(2, "dn(u, m), DLMF 22.2.6; d/du = -m sn cn.", "re(ellipfun('dn', u, m=m))")
am = _jacobi(
    3,
    "The amplitude, DLMF 22.16.1: sn(u, m) = sin(am); d/du = dn.",
    "quad(lambda v: re(ellipfun('dn', v, m=m)), linspace(0, u, 4))",
)


def _amplitude_by_m(u: Any, m: Any) -> Any:
    """d am / dm, by the implicit function theorem: F(am(u, m), m) = u for all m."""
    return -dn(u, m) * _f_by_m(1.0, am(u, m), m)


def _dn_by_m(u: Any, m: Any) -> Any:
    s = sn(u, m)
    return -0.5 * s * (s + 2.0 * m * cn(u, m) * _amplitude_by_m(u, m)) / dn(u, m)


sn.partials(
    lambda t, out, u, m: t * (cn(u, m) * dn(u, m)),
    lambda t, out, u, m: t * (cn(u, m) * _amplitude_by_m(u, m)),
)
cn.partials(
    lambda t, out, u, m: -t * (sn(u, m) * dn(u, m)),
    lambda t, out, u, m: -t * (sn(u, m) * _amplitude_by_m(u, m)),
)
dn.partials(
    lambda t, out, u, m: -t * (m * sn(u, m) * cn(u, m)),
    lambda t, out, u, m: t * _dn_by_m(u, m),
)
am.partials(
    lambda t, out, u, m: t * dn(u, m),
    lambda t, out, u, m: t * _amplitude_by_m(u, m),
)


def ellipj(u: Any, m: Any) -> tuple[Any, Any, Any, Any]:
    """sn, cn, dn and the amplitude of tensors."""
    return sn(u, m), cn(u, m), dn(u, m), am(u, m)


# ---- arithmetic-geometric mean -----------------------------------------------------------------

agm = function(
    "agm",
    "a b",
    domain=[POSITIVE, POSITIVE],
    oracle="agm(a, b)",
    commutative=True,
    doc="Arithmetic-geometric mean pi / (2 R_F(0, a^2, b^2)); both derivatives are 1/2 at a = b.",
    **_options,
)


def _agm_partial(t: Any, out: Any, a: Any, b: Any) -> Any:
    """The partial with respect to a; operands are divided by the mean to avoid overflow."""
    zero = value_of(out) == 0
    where = lookup("where")
    end = np.where(value_of(b) == 0, np.where(value_of(a) == 0, 0.5, 0.0), np.inf)
    unit = where(zero, 1.0, out)
    x, y = where(zero, 1.0, a) / unit, where(zero, 1.0, b) / unit
    return where(zero, t * end, t * _normalized_agm_partial(x, y, a, b))


def _normalized_agm_partial(x: Any, y: Any, p: Any, q: Any) -> Any:
    """The derivative of the mean of x and y, which is 1, with respect to x.

    For very different x and y it is an asymptotic expression.  p and q are x and y before division
    by the mean, where y may have underflowed.
    """
    where = lookup("where")
    small, large = value_of(x) < 1e-100 * value_of(y), value_of(y) < 1e-100 * value_of(x)
    asymptotic = small | large
    a, b = where(asymptotic, 1.0, x), where(asymptotic, 1.0, y)
    near = 2.0 / (3.0 * pi) * a * elliprd(0.0, b * b, a * a)  # DLMF 19.8.4
    ratio = np.log(where(large, p, 1.0)) - np.log(where(large, q, 1.0))
    first = 2.0 / pi * (ratio + (log(4.0) - 1.0)) / where(large, x, 1.0) ** 2
    second = 2.0 / pi / (where(small, x, 1.0) * where(small, y, 1.0))
    return where(small, second, where(large, first, near))


agm.partials(
    lambda t, out, a, b: _agm_partial(t, out, a, b),
    lambda t, out, a, b: _agm_partial(t, out, b, a),
)
