"""Carlson's symmetric elliptic integrals, DLMF 19.16, and their derivatives of any order.

    elliprf, elliprd, elliprj    integrals over t > 0 of products of powers of t + x, t + y, t + z
                                 and t + p, times 1/2, 3/2 and 3/2
    elliprc, elliprg             the degenerate case R_F(x, y, y), and the second kind

Differentiation with respect to x multiplies by -1/2 - a and lowers the power of t + x by one.  So
the integrals

    carlson_of(x, y, z, p; orders (a, b, c, d))
        = int (t+x)^(-1/2-a) (t+y)^(-1/2-b) (t+z)^(-1/2-c) (t+p)^-d dt

are a family that is closed under differentiation.  With t = e^u the integrand is analytic in a
strip around the real line, so that the error of the trapezoidal rule decreases as
exp(-2 pi width / step); all terms have the same sign and do not cancel.  The first derivatives of
elliprf and elliprc are SciPy's elliprd.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE

from .derivative_families import family
from .quadrature import trapezoid
from .register import OracleExpression, function

__all__ = "elliprc elliprd elliprf elliprg elliprj".split()

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
_options: dict[str, Any] = {"complex_ok": True, "singular": True}

elliprd = function(
    "elliprd",
    "x y z",
    domain=[POSITIVE] * 3,
    oracle=_RD,
    doc="R_D, DLMF 19.16.5: symmetric in x and y.",
    **_options,
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
    **_options,
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
    **_options,
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
    **_options,
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
    **_options,
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
