"""The error function and its complement, DLMF 7.2, written in the scalar language.

Rational approximations of fdlibm's s_erf.c (Copyright (C) 1993 by Sun Microsystems, Inc.  Developed
at SunPro.  Permission to use, copy, modify, and distribute this software is freely granted,
provided that this notice is preserved).  SciPy has both functions, but importing scipy.special
costs twice the import of NumPy, and a body serves every target.

    |x| < 0.84375    erf = x + x P(x^2) / Q(x^2)
    up to 1.25       erf = 0.845... + P(|x| - 1) / Q(|x| - 1)
    up to 28         erfc = exp(-x^2 - 0.5625 + R(1 / x^2) / S(1 / x^2)) / |x|, two pieces

The exponent is split so that the rounding of x^2 does not reach the result.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from ..core.op import lookup
from ..kinds.elementwise import elementwise

_ONE = 8.45062911510467529297e-01
_PP = (1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
       -5.77027029648944159157e-03, -2.37630166566501626084e-05)
_QQ = (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
       1.32494738004321644526e-04, -3.96022827877536812320e-06)
_PA = (-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
       3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
       -2.16637559486879084300e-03)
_QA = (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
       1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02)
_RA = (-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
       -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
       -8.12874355063065934246e+01, -9.81432934416914548592e+00)
_SA = (1.0, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
       6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
       6.57024977031928170135e+00, -6.04244152148580987438e-02)
_RB = (-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
       -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
       -4.83519191608651397019e+02)
_SB = (1.0, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
       3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
       -2.24409524465858183362e+01)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def _ratio(p: tuple[float, ...], q: tuple[float, ...], x: Any) -> Any:
    return _polynomial(p, x) / _polynomial(q, x)


def _pieces(s: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """|x|, and each approximation on its own interval (elsewhere finite, and not used)."""
    a = s.abs(x)
    small = s.where(s.less(a, 0.84375), x, 0.0)
    near = s.where(s.logical_and(s.less_equal(0.84375, a), s.less(a, 1.25)), a - 1.0, 0.0)
    # Written so that NaN stays NaN, and the tail ends where erfc is zero.
    far = s.where(s.less(a, 1.25), 1.25, s.min(a, 28.0))
    u = 1.0 / (far * far)
    tail = s.where(s.less(far, 1.0 / 0.35), _ratio(_RA, _SA, u), _ratio(_RB, _SB, u))
    z = s.rint(far * 1024.0) * (1.0 / 1024.0)  # its square is exact
    erfc_far = s.exp(-z * z - 0.5625) * s.exp((z - far) * (z + far) + tail) / far
    return a, small + small * _ratio(_PP, _QQ, small * small), _ratio(_PA, _QA, near), erfc_far


@elementwise(oracle="erf(x)")
def erf(s, x):
    """2 / sqrt(pi) times the integral of exp(-u*u) from 0 to x."""
    a, small, near, far = _pieces(s, x)
    large = s.copysign(s.where(s.less(a, 1.25), _ONE + near, 1.0 - far), x)
    return s.where(s.less(a, 0.84375), small, large)


def _bell(t: Any, x: Any) -> Any:
    """The derivative of erf times t."""
    return t * (2.0 / sqrt(pi) * lookup("exp")(-(x * x)))


erf.partials(lambda t, out, x: _bell(t, x))


@elementwise(oracle="erfc(x)")
def erfc(s, x):
    """1 - erf(x), with all digits where erf(x) is close to 1."""
    a, small, near, far = _pieces(s, x)
    flipped = s.less(x, 0.0)
    middle = s.where(flipped, 1.0 + (_ONE + near), (1.0 - _ONE) - near)
    tail = s.where(flipped, 2.0 - far, far)
    # Above 1/4, where 1 - erf would cancel, the half is taken off before.
    c = s.where(s.less(a, 0.84375), x, 0.0)
    inner = s.where(s.less(c, 0.25), 1.0 - small, 0.5 - ((c - 0.5) + (small - c)))
    return s.where(s.less(a, 0.84375), inner, s.where(s.less(a, 1.25), middle, tail))


erfc.partials(lambda t, out, x: -_bell(t, x))
