"""The normal quantile, and random numbers as functions of a tail probability.

    |p - 1/2| <= 0.4    (p - 1/2) P((p - 1/2)**2)
    beyond              t + D(t), t = sqrt(-2 log v), v the smaller of p and 1 - p

D is a polynomial in each of four intervals of t, the last of which ends at the least positive
number. Relative errors of the polynomials are below 2**-53. Coefficients:
docs/generate/special_coefficients.py.

Each body is a vector function, so its instructions and its table are in a module once.  They are
those of the body, in its order: no multiplication is contracted with an addition, so the bits are
those of NumPy.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from wengert._engine.core.types import ScalarLanguage
from wengert._engine.ops.random import tail_functions

from .lane_loops import polynomial
from .registry import leaf

_CENTRAL = 0.4
_F64 = np.dtype(np.float64)
# P, of 2 (p - 1/2)**2 / 0.16 - 1.
_CENTRAL_COEFFICIENTS = (
    2.7641859486299936, 0.3192540609562932, 0.08060594058126996, 0.025423264072519925,
    0.008914387574361613, 0.0033251480761591293, 0.0012915690092201557, 0.0005162066016686912,
    0.000210734775199571, 8.744812674404405e-05, 3.676290749870031e-05, 1.5621392126105812e-05,
    6.6963098204419015e-06, 2.8851609716551392e-06, 1.2519695802022084e-06, 5.606088738864323e-07,
    2.4871179894994736e-07, 8.962209140972385e-08, 3.702099594173356e-08, 3.609969638678661e-08,
    1.7771052935990466e-08, -4.423842069194218e-09, -2.6105702827571435e-09, 3.32194790164292e-09,
    1.596029067016252e-09,
)  # fmt: skip
# The ends of an interval, and D, of t scaled to [-1, 1].
_TAILS = (
    (2.125, 4.0, (
        -0.7046965387662216, 0.12837605069837843, -0.027630203600777458, 0.006372034862433938,
        -0.0015315027081656502, 0.00037934412750744936, -9.628615858680149e-05,
        2.4953422892995006e-05, -6.583903403078973e-06, 1.7641320805910565e-06,
        -4.789455284790502e-07, 1.3142512833026086e-07, -3.640279236773424e-08,
        1.0259051008863484e-08, -2.9048667691567175e-09, 7.392870152055096e-10,
        -1.9981236125587495e-10, 9.874749528576922e-11, -3.0687179624634027e-11,
    )),
    (4.0, 7.0, (
        -0.4884436583135101, 0.08724564686471376, -0.018016618927026783, 0.003942015967734739,
        -0.0008906729527949988, 0.0002055246930362693, -4.8162967456392976e-05,
        1.1426401602766173e-05, -2.7393373712929268e-06, 6.627750671404816e-07,
        -1.6170243706750246e-07, 3.9858034751627215e-08, -9.893106932928261e-09,
        2.3618153249800155e-09, -5.784302214772148e-10, 2.0564760717461323e-10,
        -5.554814431837158e-11,
    )),
    (7.0, 14.0, (
        -0.3141621232075597, 0.07413570119474315, -0.019836211246260078, 0.005576391986916448,
        -0.0016109571957894518, 0.00047360441285141503, -0.00014095501216804262,
        4.233683899131605e-05, -1.2807226751640006e-05, 3.896908297053592e-06,
        -1.1915153243740333e-06, 3.654399384753207e-07, -1.124837503185892e-07,
        3.536569438721408e-08, -1.1096987723926826e-08, 2.911909461973154e-09,
        -8.394954958853473e-10, 5.339005046594421e-10, -1.827001020692851e-10,
    )),
    (14.0, 38.75, (
        -0.15921991772737376, 0.057121845030627616, -0.022741097507589177, 0.009422364312373269,
        -0.003989999504587384, 0.0017133773569806743, -0.0007430187435622962,
        0.00032458735095194626, -0.000142607506585756, 6.294645003561175e-05,
        -2.789153593912887e-05, 1.238216374369976e-05, -5.507248155273018e-06,
        2.497237102527497e-06, -1.1378184052383732e-06, 4.454130603454179e-07,
        -1.7585412615885384e-07, 1.5228758205600215e-07, -8.660967862294479e-08,
        -1.2851927549380505e-08, 1.3404317379871783e-08, 1.4893457393315787e-08,
        -8.117870763022645e-09,
    )),
)  # fmt: skip


@leaf("normal_quantile")
def normal_quantile(s: ScalarLanguage, p: Any) -> Any:
    """The number below which a standard normal number is with probability p."""
    p = s.cast(p, _F64)
    q = p - 0.5
    z = q * q
    central = q * polynomial(s, s.fma(z, 2.0 / _CENTRAL**2, -1.0), _CENTRAL_COEFFICIENTS)
    v = s.where(s.less(q, 0.0), p, 1.0 - p)
    t = s.sqrt(-2.0 * s.log(v))
    tail: Any = None
    for low, high, coefficients in reversed(_TAILS):
        scale = 2.0 / (high - low)
        u = s.fma(t, scale, -(high + low) / (high - low))
        piece = polynomial(s, u, coefficients)
        tail = piece if tail is None else s.where(s.less(t, high), piece, tail)
    tail = s.where(s.equal(v, 0.0), inf, t + tail)
    tail = s.where(s.less(q, 0.0), -tail, tail)
    return s.where(s.less_equal(z, _CENTRAL**2), central, tail)


for _name in tail_functions.__all__:
    leaf(_name)(getattr(tail_functions, _name).body)
