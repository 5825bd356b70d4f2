"""Elliptic integrals of Carlson and Legendre, Jacobi elliptic functions, the AGM: DLMF 19, 22.

    elliprf, elliprd, elliprj  integrals over t > 0 of products of powers of t + x, t + y, t + z and
                               t + p, times 1/2, 3/2 and 3/2
    elliprc, elliprg           the degenerate case R_F(x, y, y), and the second kind
    ellipk, ellipkm1, ellipe   complete integrals, of the parameter m (1 - m for ellipkm1)
    ellipkinc, ellipeinc       incomplete integrals, of the amplitude phi and the parameter m
    ellipj                     sn, cn, dn and the amplitude, of u and m
    agm                        arithmetic-geometric mean

Differentiation of Carlson's integrals with respect to x multiplies by -1/2 - a and lowers the power
of t + x by one.  So the integrals

    carlson_of(x, y, z, p; orders (a, b, c, d))
        = int (t+x)^(-1/2-a) (t+y)^(-1/2-b) (t+z)^(-1/2-c) (t+p)^-d dt

are a family that is closed under differentiation.  With t = e^u the integrand is analytic in a
strip around the real line, so that the error of the trapezoidal rule decreases as
exp(-2 pi width / step); all terms have the same sign and do not cancel.  The first derivatives of
elliprf and elliprc are SciPy's elliprd.

The other derivatives with respect to m are multiples of Carlson's R_D, without cancellation at
m = 0 and m = 1.  For |phi| > pi / 2, phi is reduced by a multiple j of pi, and 2 j times the
complete integral is added.
"""

from __future__ import annotations

import functools
from math import inf, log, pi
from typing import Any

import numpy as np

from wengert._engine.core.handle import possibly, value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE, REAL

from .register import OracleExpression, family, function
from .series_and_quadrature import trapezoid

__all__ = [
    "agm", "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1", "elliprc", "elliprd",
    "elliprf", "elliprg", "elliprj",
]  # fmt: skip

_FALL = 41.0  # exp(-41) is below rounding


@family(
    native=True,
    oracle=OracleExpression(
        "x y z p",
        "2 * quad(lambda s: s / (sqrt(s*s+x) * sqrt(s*s+y) * sqrt(s*s+z)) / ((s*s+x)**orders[0]"
        " * (s*s+y)**orders[1] * (s*s+z)**orders[2] * (s*s+p)**orders[3]), [0, 1, 3, 10, inf])",
    ),
    complex_ok=True,
)
def carlson_of(x: Any, y: Any, z: Any, p: Any, *, orders: tuple[int, int, int, int]) -> Any:
    """The integral over t > 0 of (t+x)^(-1/2-a) (t+y)^(-1/2-b) (t+z)^(-1/2-c) (t+p)^-d."""
    powers = [0.5 + orders[0], 0.5 + orders[1], 0.5 + orders[2], float(orders[3])]
    values = [v for v, e in zip((x, y, z, p), powers, strict=True) if e]
    powers = [e for e in powers if e]
    is_complex = any(np.iscomplexobj(v) for v in values)
    found = np.full_like(values[0], np.nan, dtype=complex if is_complex else float)
    zeros = sum((v == 0) * e for v, e in zip(values, powers, strict=True))
    right = np.isfinite(x)
    for v in values:
        right = right & np.isfinite(v) & (is_complex | (np.real(v) >= 0))
    found[right & (zeros >= 1)] = np.inf
    inside = right & (zeros < 1)
    if inside.any():
        found[inside] = _integrate([v[inside] for v in values], powers, zeros[inside], is_complex)
    return found


def _integrate(values: list[Any], powers: list[float], zeros: Any, is_complex: bool) -> Any:
    """The integral over u with t = e^u, where the integrand is not negligible."""
    sizes = [np.abs(v) for v in values]
    scale = functools.reduce(np.maximum, sizes)
    least = functools.reduce(np.minimum, [np.where(s > 0, s, np.inf) for s in sizes])
    low = np.log(least) - np.log(scale) - _FALL / (1.0 - zeros)
    high = np.full_like(low, _FALL / (sum(powers) - 1.0))
    scaled = [v / scale for v in values]

    def f(u: Any, which: Any) -> Any:
        t = np.exp(u)
        product = t
        for v, e in zip(scaled, powers, strict=True):
            product = product * (t + v[which, None]) ** -e
        return product

    total = trapezoid(f, low, high, 0.2 if is_complex else 0.4, complex if is_complex else float)
    return total * scale ** (1.0 - sum(powers))


def _partial(t: Any, args: Any, orders: tuple[int, int, int, int], k: int) -> Any:
    """t times the derivative with respect to operand k."""
    raised = tuple(o + (i == k) for i, o in enumerate(orders))
    factor = -0.5 - orders[k] if k < 3 else -orders[3]
    return t * (factor * carlson_of(*args, orders=raised)) if factor else None


carlson_of.partials(
    *[lambda t, out, *args, orders, k=k: _partial(t, args, orders, k) for k in range(3)],
    lambda t, out, *args, orders: t * 0.0 if not orders[3] else _partial(t, args, orders, 3),
)


def _integral(t: Any, factor: float, args: Any, *orders: int) -> Any:
    return t * (factor * carlson_of(*args, orders=orders))


@carlson_of.examples
def _(rng: np.random.Generator) -> Any:
    for orders in ((0, 0, 1, 0), (1, 0, 2, 0), (0, 0, 0, 1), (1, 1, 0, 2)):
        yield tuple(np.exp(rng.normal(size=3)) for _ in range(4)), {"orders": orders}


# ---- SciPy's functions -------------------------------------------------------------------------

_RC = OracleExpression("x y", "elliprc(x, y)")
_RD = OracleExpression("x y z", "elliprd(x, y, z)")
_RF = OracleExpression("x y z", "elliprf(x, y, z)")
_RG = OracleExpression("x y z", "elliprg(x, y, z)")
_RJ = OracleExpression("x y z p", "elliprj(x, y, z, p)")
_complex_options: dict[str, Any] = {"complex_ok": True, "singular": True}

elliprd = function(
    "elliprd",
    "x y z",
    domain=[POSITIVE] * 3,
    oracle=_RD,
    doc="R_D, DLMF 19.16.5: symmetric in x and y.",
    **_complex_options,
)
elliprd.partials(
    lambda t, out, x, y, z: _integral(t, -0.75, (x, y, z, 1.0), 1, 0, 1, 0),
    lambda t, out, x, y, z: _integral(t, -0.75, (x, y, z, 1.0), 0, 1, 1, 0),
    lambda t, out, x, y, z: _integral(t, -2.25, (x, y, z, 1.0), 0, 0, 2, 0),
)

elliprf = function(
    "elliprf",
    "x y z",
    domain=[POSITIVE] * 3,
    oracle=_RF,
    doc="R_F, DLMF 19.16.1; d/dz = -R_D(x, y, z) / 6.",
    **_complex_options,
)
elliprf.partials(
    lambda t, out, x, y, z: t * (elliprd(y, z, x) / -6.0),
    lambda t, out, x, y, z: t * (elliprd(x, z, y) / -6.0),
    lambda t, out, x, y, z: t * (elliprd(x, y, z) / -6.0),
)

elliprg = function(
    "elliprg",
    "x y z",
    domain=[POSITIVE] * 3,
    oracle=_RG,
    doc="R_G, DLMF 19.16.3; d/dx = (R_F(x, y, z) - x R_D(y, z, x) / 3) / 4.",
    **_complex_options,
)


def _elliprg_partial(t: Any, x: Any, y: Any, z: Any) -> Any:
    """The partial of R_G with respect to its first operand."""
    where, zero = lookup("where"), value_of(x) == 0
    rest = where(zero, 0.0, x * elliprd(y, z, where(zero, 1.0, x)) / 3.0)
    return t * (0.25 * (elliprf(x, y, z) - rest))


elliprg.partials(
    lambda t, out, x, y, z: _elliprg_partial(t, x, y, z),
    lambda t, out, x, y, z: _elliprg_partial(t, y, z, x),
    lambda t, out, x, y, z: _elliprg_partial(t, z, x, y),
)

elliprj = function(
    "elliprj",
    "x y z p",
    domain=[POSITIVE] * 4,
    oracle=_RJ,
    doc="R_J, DLMF 19.16.2; for p < 0 the Cauchy principal value, whose derivative is NaN.",
    **_complex_options,
)
elliprj.partials(
    lambda t, out, *args: _integral(t, -0.75, args, 1, 0, 0, 1),
    lambda t, out, *args: _integral(t, -0.75, args, 0, 1, 0, 1),
    lambda t, out, *args: _integral(t, -0.75, args, 0, 0, 1, 1),
    lambda t, out, *args: _integral(t, -1.5, args, 0, 0, 0, 2),
)

elliprc = function(
    "elliprc",
    "x y",
    domain=[POSITIVE] * 2,
    oracle=_RC,
    doc="R_C(x, y) = R_F(x, y, y), DLMF 19.6(iv); for y < 0 the Cauchy principal value.",
    **_complex_options,
)


def _principal_value_parts(x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Where y < 0; x - y, -y and sqrt(x / (x - y)): R_C is the root times R_C(x - y, -y) there."""
    where, below = lookup("where"), np.real(value_of(y)) < 0
    a, b = where(below, x - y, 1.0), where(below, -y, 1.0)
    return below, a, b, np.sqrt(where(below, x, 1.0) / a)


def _elliprc_by_x(t: Any, out: Any, x: Any, y: Any) -> Any:
    where = lookup("where")
    below, a, b, root = _principal_value_parts(x, y)
    start = where(below, x, 1.0)
    negative_y = 0.5 * out * (1.0 / start - 1.0 / a) - root * elliprd(b, b, a) / 6.0
    above = where(below, 1.0, y)
    return t * where(below, negative_y, elliprd(above, above, where(below, 1.0, x)) / -6.0)


def _elliprc_by_y(t: Any, out: Any, x: Any, y: Any) -> Any:
    where = lookup("where")
    below, a, b, root = _principal_value_parts(x, y)
    negative_y = 0.5 * out / a + root * (elliprd(b, b, a) / 6.0 + elliprd(a, b, b) / 3.0)
    above = where(below, 1.0, y)
    return t * where(below, negative_y, elliprd(where(below, 1.0, x), above, above) / -3.0)


elliprc.partials(_elliprc_by_x, _elliprc_by_y)


# ---- complete integrals of Legendre ------------------------------------------------------------


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
