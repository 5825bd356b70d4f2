"""The gamma function and the logarithm of its absolute value (DLMF 5).

    gamma      gamma(x)
    gammaln    log |gamma(x)|

With n the nearest integer to x and t = x - n, gamma(2 + t) is a polynomial; the recurrence
gamma(x + 1) = x gamma(x) extends it to |x| < 8.5.  Beyond that, Stirling's formula is used, for
gamma as a power of two whose exponent is a sum of two parts, because its error is multiplied by up
to 1024.  Negative numbers: gamma(x) gamma(-x) = -pi / (x sin(pi x)).  log gamma has zeros at 1 and
2: near them t and 1 + t are factors, so the relative error is small there.  At its zeros between
the poles on the negative side only the absolute error is small.

float32 is computed in float64 and rounded once.  Coefficients:
docs/generate/special_coefficients.py.
"""

from __future__ import annotations

from math import inf, log, nan, pi
from typing import Any

from wengert._engine.core.types import Scalar, ScalarLanguage

from ..ir.llvm_types import F64
from .exponential import clipped, power_of_two, rounded, times_power
from .lane_loops import horner
from .power import log2_in_two_parts
from .registry import leaf

# gamma(2 + t) for |t| <= 1/2.
_GAMMA = (
    1.0, 0.42278433509846713, 0.41184033042644036, 0.08157691924708618, 0.07424901075340834,
    -0.00026698206868145915, 0.011154045723912666, -0.0028526458248937714, 0.00210393318546467,
    -0.0009195737409724011, 0.0004903908050290441, -0.00024094285807625332, 0.000121652309374664,
    -6.0780457591388356e-05, 3.057379186676399e-05, -1.530171042347058e-05, 7.221316880675824e-06,
    -3.5977814632551605e-06, 2.6218210055640773e-06, -1.3234664332501661e-06,
)  # fmt: skip
# log gamma(2 + t) / (t (1 + t)) for -3/4 <= t <= 1/2.
_LOG_GAMMA = (
    0.42278433509846713, -0.1003173016743539, 0.032965000621156926, -0.012384192193374536,
    0.004998641164624602, -0.0021081308337768307, 0.0009153769245089837, -0.00040570740191926176,
    0.0001825525992499629, -8.309506932249194e-05, 3.816932757411886e-05, -1.7662075503484363e-05,
    8.219057861397833e-06, -3.846005918881895e-06, 1.8226625396557709e-06, -8.526913581361838e-07,
    3.6134103441485696e-07, -2.0865058519679403e-07, 1.606914666106727e-07, 8.06590542307469e-09,
    -2.598710754585489e-08, -6.276452357660951e-08,
)  # fmt: skip
# x (log gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2), of 1 / x**2, for x >= 8.5.
_STIRLING = (
    0.08333333333333333, -0.0027777777777670833, 0.0007936507863736952, -0.0005952358781455731,
    0.0008413985698590131, -0.0018869229456385146, 0.005001852370251219,
)  # fmt: skip
_STIRLING_FROM = 8.5
_LOG2E = (1.4426950408889634, 2.0355273740931033e-17)
_LOG2_ROOT = (1.3257480647361595, -7.153413670427599e-17)  # log2(sqrt(2 pi))


def _rising(s: Any, x: Any, n: Scalar) -> tuple[Any, Any]:
    """(x - 1) (x - 2) ... (x - n) as a sum of two parts, n up to 7; factors from 1.5 are exact."""
    high, low = s.cast(1.0, x.dtype), s.cast(0.0, x.dtype)
    for k in range(1, 8):
        factor = s.where(s.less(n, float(k)), 1.0, x - float(k))
        product = high * factor
        low = s.fma(low, factor, s.fma(high, factor, -product))
        high = product
    return high, low


def _parts(s: ScalarLanguage, x: Scalar, early: Scalar = False) -> tuple[Any, Any, Any]:
    """n such that x - 2 is near n, t = x - 2 - n, and the product between 2 + t and a smaller x."""
    near = s.where(s.less(s.abs(x), _STIRLING_FROM), x, 2.0)
    whole = s.where(early, 2.0, s.rint(near))
    t = near - whole
    below = s.where(s.less(whole, 0.5), t * (1.0 + t), 1.0 + t)
    return near, whole - 2.0, (t, below)


def _sine(s: ScalarLanguage, x: Scalar) -> Any:
    """sin(pi x): 0 at integers."""
    whole = s.rint(x)
    half = whole * 0.5
    odd = s.not_equal(s.rint(half), half)
    sine = s.sin((x - whole) * pi)
    return s.where(odd, -sine, sine)


def _exponent(s: ScalarLanguage, x: Scalar) -> tuple[Any, Any]:
    """log2 gamma(x) for x >= 8.5, as a sum of two parts."""
    high, low = log2_in_two_parts(s, x)
    factor = x - 0.5
    one = factor * high
    rest = s.fma(factor, high, -one) + factor * low
    two = x * _LOG2E[0]
    rest = rest - (s.fma(x, _LOG2E[0], -two) + x * _LOG2E[1])
    total = one - two
    rest = rest + ((one - total) - two)
    inverse = 1.0 / x
    small = horner(s, inverse * inverse, _STIRLING) * inverse * _LOG2E[0]
    last = total + _LOG2_ROOT[0]
    return last, ((total - last) + _LOG2_ROOT[0]) + (rest + (small + _LOG2_ROOT[1]))


@leaf("gamma")
def gamma(s: Any, x: Any) -> Any:
    """The gamma function: infinite at 0 with its sign, NaN at -1, -2, ... and -inf."""
    if x.dtype != F64:
        return s.cast(gamma(s, s.cast(x, F64)), x.dtype)
    size = s.abs(x)
    mirrored = s.less(x, -0.5)
    y = s.where(mirrored, size, x)
    near, n, (t, below) = _parts(s, y)
    high, low = _rising(s, near, n)
    start = horner(s, t, _GAMMA)
    close = s.fma(start, high, start * low)
    close = s.where(s.less(n, -0.5), start / below, close)
    steep = 1.0 / (x * _sine(s, x)) * -pi
    close = s.where(mirrored, steep / close, close)

    usual = s.where(s.less(size, _STIRLING_FROM), 10.0, clipped(s, size, 0.0, 1e4))
    e, rest = _exponent(s, usual)
    # Tiny results are multiplied by 2**-64 last; otherwise they would be rounded twice.
    e, rest = s.where(mirrored, -e, e), s.where(mirrored, -rest, rest)
    e = clipped(s, e, -1140.0, 1030.0)
    whole, bits = rounded(s, e, 1.0)
    r = clipped(s, e - whole, -1.0, 1.0) + rest
    bits = bits + s.where(mirrored, s.cast(64, bits.dtype), 0)
    whole = whole + s.where(mirrored, 64.0, 0.0)
    power = times_power(s, power_of_two(s, r), whole, bits)
    far = s.where(mirrored, steep * power * 2.0**-64, power)
    found = s.where(s.less(size, _STIRLING_FROM), close, far)
    pole = s.logical_and(s.less(x, 0.0), s.equal(s.floor(x), x))
    found = s.where(pole, nan, found)
    return s.where(s.logical_or(s.equal(x, 0.0), s.isnan(x)), 1.0 / x, found)


@leaf("gammaln")
def gammaln(s: Any, x: Any) -> Any:
    """log |gamma(x)|: infinite at 0, -1, -2, ..."""
    if x.dtype != F64:
        return s.cast(gammaln(s, s.cast(x, F64)), x.dtype)
    size = s.abs(x)
    mirrored = s.less(x, -0.5)
    y = s.where(mirrored, size, x)
    # Near 3/2 the recurrence would cancel: numbers from 5/4 up are expanded at 2.
    early = s.logical_and(s.less_equal(1.25, y), s.less(y, 1.5))
    near, n, (t, below) = _parts(s, y, early)
    start = t * ((1.0 + t) * horner(s, t, _LOG_GAMMA))
    high, low = _rising(s, near, n)
    lower = s.less(n, -0.5)
    size_of_step = s.log(s.where(lower, s.abs(below), high + low))
    moved = s.where(lower, -s.where(s.equal(n, -1.0), s.log1p(t), size_of_step), size_of_step)
    close = start + s.where(s.equal(n, 0.0), 0.0, moved)

    usual = s.where(s.less(size, _STIRLING_FROM), 10.0, size)
    inverse = 1.0 / usual
    small = horner(s, inverse * inverse, _STIRLING) * inverse
    far = s.fma(usual - 0.5, s.log(usual) - 1.0, small + (0.5 * log(2.0 * pi) - 0.5))
    found = s.where(s.less(size, _STIRLING_FROM), close, far)
    found = s.where(mirrored, -s.log(s.abs(x * _sine(s, x)) * (1.0 / pi)) - found, found)
    pole = s.logical_and(s.less_equal(x, 0.0), s.equal(s.floor(x), x))
    found = s.where(pole, inf, found)
    return s.where(s.logical_or(s.isinf(x), s.isnan(x)), x, found)
