"""Carlson's symmetric elliptic integrals, DLMF 19.16, with all their derivatives.

    elliprf, elliprd, elliprj    half, and three times half, the integral over t > 0 of a product of
                                 powers of t + x, t + y, t + z and t + p
    elliprc, elliprg             of two operands, and of the second kind

A derivative with respect to x multiplies by -1/2 - a and lowers the power of t + x: the integrals

    carlson_of(x, y, z, p; orders (a, b, c, d))
        = int (t+x)^(-1/2-a) (t+y)^(-1/2-b) (t+z)^(-1/2-c) (t+p)^-d dt

are a family that is closed.  With t = e^u their integrand is analytic in a strip about the real
line, so the trapezoidal rule converges as fast as exp(-2 pi width / step), and has no cancellation
as all terms have one sign.  The first derivatives of elliprf and elliprc are SciPy's own elliprd.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE

from .derivative_families import family
from .oracle_expression import Witness
from .quadrature import trapezoid
from .register import function

__all__ = "elliprc elliprd elliprf elliprg elliprj".split()

_FALL = 41.0  # exp(-41) is below rounding


@family(
    native=True,
    oracle=Witness(
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
    whole = any(np.iscomplexobj(v) for v in values)
    found = np.full_like(values[0], np.nan, dtype=complex if whole else float)
    zeros = sum((v == 0) * e for v, e in zip(values, powers, strict=True))
    right = np.isfinite(x)
    for v in values:
        right = right & np.isfinite(v) & (whole | (np.real(v) >= 0))
    found[right & (zeros >= 1)] = np.inf
    inside = right & (zeros < 1)
    if inside.any():
        found[inside] = _integrated([v[inside] for v in values], powers, zeros[inside], whole)
    return found


def _integrated(values: list[Any], powers: list[float], zeros: Any, whole: bool) -> Any:
    """The sum over u of t = e^u, from where it rises from rounding to where it falls below it."""
    sizes = [np.abs(v) for v in values]
    scale = functools.reduce(np.maximum, sizes)
    least = functools.reduce(np.minimum, [np.where(s > 0, s, np.inf) for s in sizes])
    low = np.log(least) - np.log(scale) - _FALL / (1.0 - zeros)
    high = np.full_like(low, _FALL / (sum(powers) - 1.0))
    shares = [v / scale for v in values]

    def f(u: Any, which: Any) -> Any:
        t = np.exp(u)
        product = t
        for v, e in zip(shares, powers, strict=True):
            product = product * (t + v[which, None]) ** -e
        return product

    total = trapezoid(f, low, high, 0.2 if whole else 0.4, complex if whole else float)
    return total * scale ** (1.0 - sum(powers))


def _lower(t: Any, args: Any, orders: tuple[int, int, int, int], k: int) -> Any:
    """t times the derivative with respect to the operand of number k."""
    more = tuple(o + (i == k) for i, o in enumerate(orders))
    factor = -0.5 - orders[k] if k < 3 else -orders[3]
    return t * (factor * carlson_of(*args, orders=more)) if factor else None


carlson_of.partials(
    *[lambda t, out, *args, orders, k=k: _lower(t, args, orders, k) for k in range(3)],
    lambda t, out, *args, orders: t * 0.0 if not orders[3] else _lower(t, args, orders, 3),
)


def _integral(t: Any, factor: float, args: Any, *orders: int) -> Any:
    return t * (factor * carlson_of(*args, orders=orders))


@carlson_of.examples
def _(rng: np.random.Generator) -> Any:
    for orders in ((0, 0, 1, 0), (1, 0, 2, 0), (0, 0, 0, 1), (1, 1, 0, 2)):
        yield tuple(np.exp(rng.normal(size=3)) for _ in range(4)), {"orders": orders}


# ---- the integrals of SciPy --------------------------------------------------------------------

_RC = Witness("x y", "elliprc(x, y)")
_RD = Witness("x y z", "elliprd(x, y, z)")
_RF = Witness("x y z", "elliprf(x, y, z)")
_RG = Witness("x y z", "elliprg(x, y, z)")
_RJ = Witness("x y z p", "elliprj(x, y, z, p)")
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
    doc="R_F, DLMF 19.16.1; by z: -R_D(x, y, z) / 6.",
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
    doc="R_G, DLMF 19.16.3; by x: (R_F(x, y, z) - x R_D(y, z, x) / 3) / 4.",
    **_options,
)


def _second_kind(t: Any, x: Any, y: Any, z: Any) -> Any:
    """The derivative of R_G by its first operand."""
    where, none = lookup("where"), value_of(x) == 0
    rest = where(none, 0.0, x * elliprd(y, z, where(none, 1.0, x)) / 3.0)
    return t * (0.25 * (elliprf(x, y, z) - rest))


elliprg.partials(
    lambda t, out, x, y, z: _second_kind(t, x, y, z),
    lambda t, out, x, y, z: _second_kind(t, y, z, x),
    lambda t, out, x, y, z: _second_kind(t, z, x, y),
)

elliprj = function(
    "elliprj",
    "x y z p",
    domain=[POSITIVE] * 4,
    oracle=_RJ,
    doc="R_J, DLMF 19.16.2, p > 0; of Cauchy's principal value at p < 0 the derivative is NaN.",
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
    doc="R_C(x, y) = R_F(x, y, y), DLMF 19.6(iv); at y < 0 Cauchy's principal value.",
    **_options,
)


def _principal(x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Where y < 0; x - y, -y and sqrt(x / (x - y)), with R_C = sqrt(..) R_C(x - y, -y) there."""
    where, below = lookup("where"), np.real(value_of(y)) < 0
    a, b = where(below, x - y, 1.0), where(below, -y, 1.0)
    return below, a, b, np.sqrt(where(below, x, 1.0) / a)


def _degenerate_by_x(t: Any, out: Any, x: Any, y: Any) -> Any:
    where = lookup("where")
    below, a, b, root = _principal(x, y)
    start = where(below, x, 1.0)
    moved = 0.5 * out * (1.0 / start - 1.0 / a) - root * elliprd(b, b, a) / 6.0
    above = where(below, 1.0, y)
    return t * where(below, moved, elliprd(above, above, where(below, 1.0, x)) / -6.0)


def _degenerate_by_y(t: Any, out: Any, x: Any, y: Any) -> Any:
    where = lookup("where")
    below, a, b, root = _principal(x, y)
    moved = 0.5 * out / a + root * (elliprd(b, b, a) / 6.0 + elliprd(a, b, b) / 3.0)
    above = where(below, 1.0, y)
    return t * where(below, moved, elliprd(where(below, 1.0, x), above, above) / -3.0)


elliprc.partials(_degenerate_by_x, _degenerate_by_y)
