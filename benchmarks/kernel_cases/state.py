"""The equation of state of seawater: specific volume, and how dynamic enthalpy changes with heat.

Specific volume v is the quotient of two polynomials in Absolute Salinity (g/kg), its root,
Conservative Temperature (degrees) and pressure (dbar), the 48 terms of IOC, SCOR and IAPSO, *The
international thermodynamic equation of seawater - 2010*, appendix K.  Dynamic enthalpy is its
integral over pressure from 0, in closed form by partial fractions (ibid., A.30), and a model steps
its derivative by temperature.  That derivative is 150 lines where a person writes it out
(pyhpc-benchmarks does); here libraries find it, and NumPy's and C's are tangents by hand.

    volume            v(salinity, temperature, pressure)
    dynamic_enthalpy  its integral
    warmed            the derivative of the integral by temperature
    by_hand           the same in NumPy
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from native import compiled
from native.case import Call, Case, generator

from . import grid, peers

TITLE = "Equation of state"
TEXT = (
    "*Volume*: the quotient of two polynomials of 48 terms in all. *Enthalpy*: the derivative by "
    "temperature of the integral of that quotient over pressure, taken by the libraries "
    "themselves, by hand in NumPy and C; its adjoint is of second order. Adjoint: gradient of a "
    "weighted sum of all results by salinity, temperature and pressure (one for each layer, so "
    "its adjoint sums over the layer); the value is computed, too."
)
TEXT += " PyTorch, which runs eagerly, is left out of the largest size."
TARGET = "faster than JAX; within 1.5 times of C (column C at least 0.67)"

PASCAL = 1e4  # of a decibar

# Rows are powers of pressure.  The denominator's polynomials, then the numerator's, as
# coefficients of powers of temperature, for the salinity factors 1, s, s**1.5, s**2.
DENOMINATOR = (
    ((9.998420897506056e2, 2.839940833161907e0, -3.147759265588511e-2, 1.181805545074306e-3),
     (-6.698001071123802e0, -2.986498947203215e-2, 2.327859407479162e-4),
     (-3.988822378968490e-2, 5.095422573880500e-4, -1.426984671633621e-5, 1.645039373682922e-7)),
    ((-2.233269627352527e-2, -3.436090079851880e-4, 3.726050720345733e-6),
     (-1.806789763745328e-4, 6.876837219536232e-7)),
    ((-3.087032500374211e-7, -1.988366587925593e-8, -1.061519070296458e-11),
     (1.550932729220080e-10,)),
)  # fmt: skip
NUMERATOR = (
    ((1.0, 2.775927747785646e-3, -2.349607444135925e-5, 1.119513357486743e-6,
      6.743689325042773e-10),
     (-7.521448093615448e-3, -2.764306979894411e-5, 1.262937315098546e-7, 9.527875081696435e-10,
      -1.811147201949891e-11),
     (-3.303308871386421e-5, 3.801564588876298e-7, -7.672876869259043e-9, -4.634182341116144e-11,
      2.681097235569143e-12),
     (5.419326551148740e-6,)),
    ((-2.742185394906099e-5, -3.212746477974189e-7, 3.191413910561627e-9, -1.931012931541776e-12),
     (-1.105097577149576e-7, 6.211426728363857e-10)),
    ((-1.119011592875110e-10, -1.941660213148725e-11, -1.864826425365600e-14),
     (0.0, 1.119522344879478e-14)),
    ((-1.200507748551599e-15, 6.057902487546866e-17),),
)  # fmt: skip


def horner(coefficients: Any, x: Any) -> Any:
    """A polynomial of one variable."""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = c + x * total
    return total


def coefficients(rows: Any, s: Any, root: Any, t: Any) -> list[Any]:
    """Of the powers of pressure; the root is that of salinity."""
    found = []
    for fresh, *salty in rows:
        total = horner(fresh, t)
        if salty:
            inner = horner(salty[0], t)
            if len(salty) > 1:
                inner = inner + root * horner(salty[1], t)
            if len(salty) > 2:
                inner = inner + s * horner(salty[2], t)
            total = total + s * inner
        found.append(total)
    return found


def volume(xp: Any) -> Any:
    """Specific volume."""

    def v(s: Any, t: Any, p: Any) -> Any:
        root = xp.sqrt(s)
        a, b = (coefficients(rows, s, root, t) for rows in (NUMERATOR, DENOMINATOR))
        return horner(a, p) / horner(b, p)

    return v


def dynamic_enthalpy(xp: Any) -> Any:
    """The integral of (a0 + a1 p + a2 p² + a3 p³) / (b0 + 2 b1 p + b2 p²) by p.

    Division leaves q0 + q1 p and the rest r0 + r1 p, whose integral is of two logarithms.
    """

    def h(s: Any, t: Any, p: Any) -> Any:
        root = xp.sqrt(s)
        a0, a1, a2, a3 = coefficients(NUMERATOR, s, root, t)
        b0, b1, b2 = coefficients(DENOMINATOR, s, root, t)
        b1, i = 0.5 * b1, 1.0 / b2
        q1 = a3 * i
        q0 = (a2 - 2.0 * b1 * q1) * i
        r1 = a1 - q1 * b0 - 2.0 * b1 * q0
        r0 = a0 - q0 * b0
        d = xp.sqrt(b1 * b1 - b0 * b2)
        near = xp.log(1.0 + p * (2.0 * b1 + b2 * p) / b0)
        far = xp.log(1.0 + 2.0 * d * b2 * p / ((b1 - d) * (b1 + d + b2 * p)))
        m = r1 * i
        rest = 0.5 * (m * near + (r0 - m * b1) * far / d)
        return PASCAL * (p * (q0 + 0.5 * q1 * p) + rest)

    return h


def warmed(xp: Any, jvp: Any) -> Any:
    """The derivative of dynamic enthalpy by temperature, element by element."""
    h = dynamic_enthalpy(xp)

    def slope(s: Any, t: Any, p: Any) -> Any:
        return jvp(lambda t: h(s, t, p), (t,), (xp.ones_like(t),))[1]

    return slope


def with_tangents(rows: Any, s: Any, t: Any) -> list[tuple[Any, Any]]:
    """Coefficients and their derivatives by temperature."""
    slopes = [[[k * c for k, c in enumerate(p)][1:] or [0.0] for p in row] for row in rows]
    root = np.sqrt(s)
    values = coefficients(rows, s, root, t)
    return list(zip(values, coefficients(slopes, s, root, t), strict=True))


def by_hand(s: Any, t: Any, p: Any) -> Any:
    """The derivative of dynamic enthalpy in NumPy: beside each line its tangent."""
    (a0, a0_), (a1, a1_), (a2, a2_), (a3, a3_) = with_tangents(NUMERATOR, s, t)
    (b0, b0_), (b1, b1_), (b2, b2_) = with_tangents(DENOMINATOR, s, t)
    b1, b1_ = 0.5 * b1, 0.5 * b1_
    i = 1.0 / b2
    q1 = a3 * i
    q1_ = (a3_ - q1 * b2_) * i
    q0 = (a2 - 2.0 * b1 * q1) * i
    q0_ = (a2_ - 2.0 * (b1_ * q1 + b1 * q1_) - q0 * b2_) * i
    r1 = a1 - q1 * b0 - 2.0 * b1 * q0
    r1_ = a1_ - q1_ * b0 - q1 * b0_ - 2.0 * (b1_ * q0 + b1 * q0_)
    r0 = a0 - q0 * b0
    r0_ = a0_ - q0_ * b0 - q0 * b0_
    d = np.sqrt(b1 * b1 - b0 * b2)
    d_ = (b1 * b1_ - 0.5 * (b0_ * b2 + b0 * b2_)) / d
    x = p * (2.0 * b1 + b2 * p) / b0
    x_ = (p * (2.0 * b1_ + b2_ * p) - x * b0_) / b0
    low, up = b1 - d, b1 + d + b2 * p
    low_, up_ = b1_ - d_, b1_ + d_ + b2_ * p
    y = 2.0 * d * b2 * p / (low * up)
    y_ = (2.0 * p * (d_ * b2 + d * b2_) - y * (low_ * up + low * up_)) / (low * up)
    near, near_ = np.log1p(x), x_ / (1.0 + x)
    far, far_ = np.log1p(y), y_ / (1.0 + y)
    m = r1 * i
    m_ = (r1_ - m * b2_) * i
    n = (r0 - m * b1) / d
    n_ = (r0_ - m_ * b1 - m * b1_ - n * d_) / d
    rest = 0.5 * (m_ * near + m * near_ + n_ * far + n * far_)
    return PASCAL * (p * (q0_ + 0.5 * q1_ * p) + rest)


def water(cells: int) -> tuple[Any, ...]:
    """Salinity, temperature, and the pressure of each layer."""
    random, size = generator(83), grid.shape(cells)
    salinity = random.uniform(1e-2, 40.0, size=size)
    temperature = random.uniform(-2.0, 30.0, size=size)
    return salinity, temperature, random.uniform(0.0, 5000.0, size=(1, 1, size[2]))


def cases(quick: bool) -> Iterator[Case]:
    """Volume and enthalpy, value and adjoint, three sizes."""
    for cells in grid.SIZES_QUICK if quick else grid.SIZES:
        arrays = water(cells)
        count = f"{arrays[0].size:,} cells"
        by = grid.weights([arrays[0]])
        yield Case(f"volume, {count}", values("volume", arrays), within=1e-10)
        yield Case(f"volume, adjoint, {count}", adjoints("volume", arrays, by), within=1e-9)
        yield Case(f"enthalpy, {count}", values("enthalpy", arrays), within=1e-8)
        yield Case(f"enthalpy, adjoint, {count}", adjoints("enthalpy", arrays, by), within=1e-7)


def program(name: str, library: peers.Library) -> Any:
    """A kernel over a library, that returns a tuple of outputs."""
    f = volume(library.xp) if name == "volume" else warmed(library.xp, library.jvp)
    return lambda *x: (f(*x),)


def values(name: str, arrays: tuple[Any, ...]) -> dict[str, Any]:
    """Contestants for the value."""
    hand = volume(np) if name == "volume" else by_hand
    found = {
        "C": lambda: c(name, arrays, None),
        "NumPy": lambda: Call(lambda *x: (hand(*x),), arrays),
    }
    return peers.values(lambda library: program(name, library), arrays) | found


def adjoints(name: str, arrays: tuple[Any, ...], by: list[Any]) -> dict[str, Any]:
    """Contestants for value and adjoint."""
    found = peers.adjoints(lambda library: program(name, library), arrays, by)
    return found | {"C": lambda: c(f"{name}_adjoint", arrays, by)}


def c(function: str, arrays: tuple[Any, ...], by: list[Any] | None) -> Call:
    """C by hand: the value of all cells, or the weighted sum and its gradient."""
    run = compiled.library("state")[function]
    size = arrays[0].shape
    lengths = compiled.size(size[0] * size[1]), compiled.size(size[2])
    ins = [compiled.address(a) for a in arrays]
    if by is None:
        out = np.empty(size)
        return Call(run, (*lengths, *ins, compiled.address(out)), numbers=lambda _: out)
    total, bars = np.empty(1), [np.empty_like(a) for a in arrays]
    placed = [compiled.address(a) for a in (*by, total, *bars)]
    return Call(run, (*lengths, *ins, *placed), numbers=lambda _: (total, bars))
