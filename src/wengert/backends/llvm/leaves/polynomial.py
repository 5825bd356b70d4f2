"""Polynomials, and the parts of a floating-point number, for the authors of leaves.

    polynomial        Horner's rule with fused multiplications: fewest instructions
    polynomial_pair   even and odd powers apart: half the latency, for long ones
    sign_of, flipped  the sign as a bit, and a number whose sign is changed by it
    nearest_whole     the nearest whole number, and its bits
    power_of_two      2**n
    any_of            whether something holds in any lane

A coefficient is a Python float; those for float32 are floats that are float32 exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import of_width

if TYPE_CHECKING:
    from ..lane import Lane
    from ..language import Language

# Adding 1.5 * 2**p to a number rounds it to a whole one, which then stands in the lowest bits.
_ROUNDING = {8: 6755399441055744.0, 4: 12582912.0}
_MANTISSA = {8: 52, 4: 23}
_BIAS = {8: 1023, 4: 127}


def polynomial(s: Language, x: Lane, coefficients: Sequence[float]) -> Lane:
    """The polynomial at x; the constant coefficient comes first."""
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = s.fma(x, total, c)
    return total  # type: ignore[no-any-return]


def polynomial_pair(s: Language, x: Lane, coefficients: Sequence[float]) -> Lane:
    """The same polynomial, as one of x*x and x times another: one operation more, half as deep."""
    square = x * x
    odd = polynomial(s, square, coefficients[1::2])
    return s.fma(x, odd, polynomial(s, square, coefficients[0::2]))


def sign_of(s: Language, x: Lane) -> Any:
    """The sign bit of x, the others zero."""
    bits = s.bits(x)
    return bits & int(np.iinfo(bits.dtype).min)


def flipped(s: Language, x: Lane, sign: Any) -> Lane:
    """x with its sign changed where the sign bit of a whole number is set."""
    return s.number(s.bits(x) ^ sign)


def nearest_whole(s: Language, shifted: Lane) -> tuple[Any, Any]:
    """The whole number in `shifted`, which is `rounding(x) + x` for some x, and its low bits.

    Half of what is left of the bits is the rounding constant's; only the lowest ones count.
    """
    return shifted - rounding(shifted), s.bits(shifted)


def rounding(x: Lane) -> float:
    """What added to a number of that dtype leaves it whole."""
    return _ROUNDING[x.dtype.itemsize]


def to_top(x: Lane, bits: Any) -> Any:
    """The lowest bit of a whole number, moved to where the sign is."""
    return bits << (8 * x.dtype.itemsize - 1)


def power_of_two(s: Language, bits: Any, less: int = 0) -> Lane:
    """2**(n - less) for the n in the low bits; n - less has to be an exponent of a normal number."""
    size = bits.dtype.itemsize
    offset = (_BIAS[size] - less) << _MANTISSA[size]
    return s.number((bits << _MANTISSA[size]) + offset)


def split(s: Language, x: Lane) -> tuple[Lane, Lane]:
    """x = 2**k * m, m from sqrt(1/2) to sqrt(2): k as a float, and m; x has to be normal, k >= 0."""
    size = x.dtype.itemsize
    root = np.sqrt(x.dtype.type(0.5))
    bits = s.bits(x)
    k = (bits - int(root.view(bits.dtype))) >> _MANTISSA[size]
    m = s.number(bits - (k << _MANTISSA[size]))
    big = x.dtype.type(_ROUNDING[size])
    return s.number(k + int(big.view(bits.dtype))) - float(big), m


def any_of(s: Language, condition: Lane) -> str:
    """The name of an i1: whether the condition holds in any lane."""
    section, width = condition.section, condition.width
    assert section is not None
    name = condition.name
    if width > 1:
        lanes = of_width("i1", width)
        callee = s.module.declare(f"llvm.vector.reduce.or.v{width}i1", "i1", [lanes])
        name = section.value(f"call i1 {callee}({lanes} {name})")
    # Lanes that nobody reads may hold poison, on which LLVM must not be told to branch.
    return section.value(f"freeze i1 {name}")
