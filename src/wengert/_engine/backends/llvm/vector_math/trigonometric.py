"""Circular functions: sine, cosine and tangent, of any argument (range_reduction.py).

Sine and cosine are one odd polynomial on [-pi/2, pi/2].  The tangent is one on [-pi/4, pi/4]; in
odd quarters it is the negative reciprocal, corrected by one Newton step.

Polynomials: minimax in the relative error of the function, by Remez' exchange
(docs/generate/minimax_coefficients.py).
Measured errors: sin and cos 1.7, tan 1.5 ulp.
"""

from __future__ import annotations

from typing import Any

from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from .float_parts import flipped, sign_of, to_top
from .polynomial_evaluation import horner
from .range_reduction import less_pi, less_quarter
from .registry import leaf

# (sin(r) - r) / r**3 in r**2, r to pi/2.  Errors 2**-57.7 and 2**-27.2.
_SINE = {
    8: (
        -0.16666666666666666, 0.008333333333333207, -0.0001984126984121272, 2.7557319211620363e-06,
        -2.505210690971811e-08, 1.605894129265801e-10, -7.64302742151194e-13,
        2.7215084984178876e-15,
    ),
    4: (
        -0.16666659712791443, 0.008333069272339344, -0.00019809772493317723, 2.6060727122967364e-06,
    ),
}  # fmt: skip
# (tan(r) - r) / r**3 in r**2, r to pi/4.  Errors 2**-56.1 and 2**-29.3.
_TANGENT = {
    8: (
        0.3333333333333277, 0.13333333333415584, 0.053968253926209485, 0.02186948961997555,
        0.008863219009683706, 0.003592290474709039, 0.0014547494691925392, 0.0005951006004399206,
        0.00022227375234309496, 0.000136744686186026, -2.6695988386621603e-05,
        8.973792760862064e-05, -4.50311913792048e-05, 2.0900558669745502e-05,
    ),
    4: (
        0.33333349227905273, 0.13332675397396088, 0.05405895411968231, 0.021285763010382652,
        0.010829126462340355, 9.552960545988753e-05, 0.004374287556856871,
    ),
}  # fmt: skip


@leaf("sin")
def sin(s: Language, x: Lane) -> Any:
    """The sine of |x| with the sign of x, so that the sine of -0 is -0."""
    return flipped(s, _sine(s, less_pi(s, s.abs(x), cosine=False)), sign_of(s, x))


@leaf("cos")
def cos(s: Language, x: Lane) -> Any:
    """The cosine, as the sine of the reduced x + pi/2."""
    return _sine(s, less_pi(s, s.abs(x), cosine=True))


def _sine(s: Language, r: Lane) -> Any:
    square = r * r
    y = s.fma(r * square, horner(s, square, _SINE), r)
    # Clamped to 1, because sqrt(1 - y*y) would be NaN after rounding up.
    y = s.where(s.less(1.0, y), 1.0, y)
    return s.where(s.less(y, -1.0), -1.0, y)


@leaf("tan")
def tan(s: Language, x: Lane) -> Any:
    """The tangent of the reduced argument, or its corrected negative reciprocal in odd quarters."""
    r, low, quarters = less_quarter(s, s.abs(x))
    square = r * r
    rest = s.fma(r * square, horner(s, square, _TANGENT), low)
    y = r + rest
    lacks = rest - (y - r)
    inverse = 1.0 / y
    error = s.fma(-lacks, inverse, s.fma(-y, inverse, 1.0))
    odd = to_top(x, quarters)
    is_odd = s.compare("less", odd, s.constant(0, odd.dtype))
    chosen = s.select(is_odd, s.fma(inverse, error, inverse), y)
    sign: Any = sign_of(s, x) ^ odd
    return flipped(s, chosen, sign)
