"""Circular functions: sine, cosine and tangent, of any argument (reduction.py).

Sine and cosine are one odd polynomial on [-pi/2, pi/2].  The tangent is one on
[-pi/4, pi/4]; in odd quarters its reciprocal counts, corrected by one step of Newton's.

Polynomials: minimax in the relative error of the function, found by Remez' exchange with 45
digits, the first coefficients rounded before the others are found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import leaf
from .polynomial import flipped, polynomial, sign_of, to_top
from .reduction import less_pi, less_quarter

if TYPE_CHECKING:
    from ..lane import Lane
    from ..language import Language

# (sin(r) - r) / r**3 in r**2, r to pi/2.  Errors 2**-57.7 and 2**-27.2.
_SINE = {
    8: (
        -0.16666666666666666,
        0.008333333333333207,
        -0.0001984126984121272,
        2.7557319211620363e-06,
        -2.505210690971811e-08,
        1.605894129265801e-10,
        -7.64302742151194e-13,
        2.7215084984178876e-15,
    ),
    4: (-0.16666659712791443, 0.008333069272339344, -0.00019809772493317723, 2.6060727122967364e-06),
}
# (tan(r) - r) / r**3 in r**2, r to pi/4.  Errors 2**-52.4 and 2**-25.7.
_TANGENT = {
    8: (
        0.3333333333334016,
        0.13333333332464953,
        0.05396825435358371,
        0.021869479947196218,
        0.00886334808234906,
        0.0035911842339741307,
        0.0014611509600223668,
        0.0005693776592879499,
        0.00029490061674054195,
        -6.870475297161284e-06,
        0.00016804751239636408,
        -8.276126464456476e-05,
        4.4863842832561366e-05,
    ),
    4: (0.33333155512809753, 0.13338835537433624, 0.053408216685056686, 0.024441299960017204, 0.003101659007370472, 0.009396415203809738),
}


@leaf("sin")
def sin(s: Language, x: Lane) -> Lane:
    """The sine: the sign of x is set aside, so that the sine of -0 is -0."""
    return flipped(s, _sine(s, less_pi(s, s.abs(x), cosine=False)), sign_of(s, x))


@leaf("cos")
def cos(s: Language, x: Lane) -> Lane:
    """The cosine, as the sine of what is left of x + pi/2."""
    return _sine(s, less_pi(s, s.abs(x), cosine=True))


def _sine(s: Language, r: Lane) -> Lane:
    square = r * r
    y = s.fma(r * square, polynomial(s, square, _SINE[r.dtype.itemsize]), r)
    # Rounding must not lead above 1, where the root of 1 - y*y is NaN.
    y = s.where(s.less(1.0, y), 1.0, y)
    return s.where(s.less(y, -1.0), -1.0, y)  # type: ignore[no-any-return]


@leaf("tan")
def tan(s: Language, x: Lane) -> Lane:
    """The tangent of r, or its negative reciprocal in odd quarters, there with what r lacks."""
    r, low, quarters = less_quarter(s, s.abs(x))
    square = r * r
    rest = s.fma(r * square, polynomial(s, square, _TANGENT[x.dtype.itemsize]), low)
    y = r + rest
    lacks = rest - (y - r)
    inverse = 1.0 / y
    error = s.fma(-lacks, inverse, s.fma(-y, inverse, 1.0))
    odd = to_top(x, quarters)
    is_odd = s.compare("less", odd, s.constant(0, odd.dtype))
    chosen = s.select(is_odd, s.fma(inverse, error, inverse), y)
    sign: Any = sign_of(s, x) ^ odd
    return flipped(s, chosen, sign)
