"""The error function and its complement, DLMF 7.2, written in the scalar language; their slope.

    |x| < 1/2    erf(x) = x P(x^2), P of degree 9
    beyond       erfc(x) = exp(-x^2) F(t) / (1 + 2 |x|), t = (|x| - 3.75) / (|x| + 3.75),
                 F the Chebyshev sum of M. M. Shepherd and J. G. Laframboise, Math. Comp. 36 (1981)
                 249-253, whose form serves the whole half line

The coefficients were computed for this file with mpmath, at 50 digits from Chebyshev nodes; the
oracle in the tests is mpmath's own erf.  SciPy has both functions, but importing scipy.special
costs twice the import of NumPy, and a body serves every target.

The exponent is split so that the rounding of x^2 does not reach the result.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from ..kinds.elementwise import elementwise

_SMALL = (
    1.1283791670955126,
    -0.3761263890318375,
    0.1128379167095487,
    -0.026866170645000076,
    0.005223977622024224,
    -0.0008548326511566567,
    0.00012055286259121393,
    -1.4923005626894847e-05,
    1.6371282597755977e-06,
    -1.4621341491012844e-07,
)
_TAIL = (
    1.1775789345674017,
    -0.004590054580646478,
    -0.08424913336651792,
    0.05920993999819189,
    -0.026658668435305753,
    0.009074997670705265,
    -0.002413163540417608,
    0.0004907758365258086,
    -6.916973302501207e-05,
    4.13902798607301e-06,
    7.74038306619849e-07,
    -2.1886401049234397e-07,
    1.076499946567091e-08,
    4.521959811218287e-09,
    -7.754400208831351e-10,
    -6.318088340886684e-11,
    2.86879501093067e-11,
    1.9455868545777347e-13,
    -9.65469674843344e-13,
    3.25254814814874e-14,
    3.3478119482868056e-14,
    -1.864562880419313e-15,
    -1.2507950530688648e-15,
    7.418235256624044e-17,
    5.068148904796111e-17,
)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def _chebyshev(coefficients: tuple[float, ...], t: Any) -> Any:
    """The sum of c_k T_k(t), by Clenshaw's recurrence (DLMF 3.11.15)."""
    one: Any = 0.0
    two: Any = 0.0
    for c in coefficients[:0:-1]:
        one, two = c + 2.0 * t * one - two, one
    return coefficients[0] + t * one - two


def _bell(s: Any, a: Any) -> Any:
    """exp(-a*a) for 0 <= a <= 40."""
    z = s.rint(a * 1024.0) * (1.0 / 1024.0)  # its square is exact
    return s.exp(-z * z) * s.exp((z - a) * (z + a))


def erf_near_zero(x: Any) -> Any:
    """erf(x) for |x| < 1/2, in the scalar language."""
    return x * _polynomial(_SMALL, x * x)


def scaled_erfc(x: Any) -> Any:
    """exp(x*x) erfc(x) for x >= 1/2, in the scalar language."""
    return _chebyshev(_TAIL, (x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x)


def _pieces(s: Any, x: Any) -> tuple[Any, Any, Any]:
    """|x|; erf where |x| < 1/2, erfc(|x|) elsewhere (finite, and not used, where not meant)."""
    a = s.abs(x)
    inner = s.where(s.less(a, 0.5), x, 0.0)
    small = erf_near_zero(inner)
    # Written so that NaN stays NaN, and the tail ends where erfc is zero.
    far = s.where(s.less(a, 0.5), 0.5, s.min(a, 28.0))
    z = s.rint(far * 64.0) * (1.0 / 64.0)  # its square is exact, in float32 too
    bell = s.exp(-z * z) * s.exp((z - far) * (z + far))
    return a, small, bell * scaled_erfc(far)


@elementwise(oracle="erf(x)")
def erf(s, x):
    """2 / sqrt(pi) times the integral of exp(-u*u) from 0 to x."""
    a, small, tail = _pieces(s, x)
    return s.where(s.less(a, 0.5), small, s.copysign(1.0 - tail, x))


@elementwise(oracle="exp(-x * x)")
def bell(s, x):
    """exp(-x*x), to which the derivative of erf is proportional; with all digits in its tails."""
    a = s.min(s.abs(x), 40.0)  # beyond, it is zero
    return _bell(s, a)


bell.partials(lambda t, out, x: -2.0 * t * (x * out))


def _slope(t: Any, x: Any) -> Any:
    """The derivative of erf times t."""
    return t * (2.0 / sqrt(pi) * bell(x))


erf.partials(lambda t, out, x: _slope(t, x))


@elementwise(oracle="erfc(x)")
def erfc(s, x):
    """1 - erf(x), with all digits where erf(x) is close to 1."""
    a, small, tail = _pieces(s, x)
    return s.where(s.less(a, 0.5), 1.0 - small, s.where(s.less(x, 0.0), 2.0 - tail, tail))


erfc.partials(lambda t, out, x: -_slope(t, x))
