"""The error function and its complement, for float32 and float64 (DLMF 7.2).

    erf     |x| < 1      x P(x*x)
            beyond       1 - exp(-x*x) T(|x|) with the sign of x, T of degree 21
    erfc    |x| < 1/2    1 - x P(x*x)
            beyond       exp(-x*x) F(t) / (|x| + c), t = (|x| - c) / (|x| + c)
    ndtr    erfc(-x / sqrt(2)) / 2, by the same polynomials, with exp(-x*x / 2) of x itself
    gelu    x ndtr(x)

1 - erf must have a small absolute error, so T = exp(x*x) erfc(x) is approximated with the weight
exp(-x*x), and a polynomial without a division suffices.  erfc must have a small relative error down
to its underflow, which the bounded t makes possible (M. M. Shepherd and J. G. Laframboise, Math.
Comp. 36, 1981).  The rounding errors of x*x and of the quotient are added back.  If exp(-x*x) is
needed as well, for a derivative, erf and it share one (`bell`).  Coefficients:
docs/generate/special_coefficients.py.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from wengert._engine.core.types import ScalarLanguage

from .lane_loops import horner, polynomial
from .registry import leaf

# erf(x) / x - 1, of x*x <= 1.
_ERF_NEAR_ZERO = {
    8: (
        0.1283791670955126, -0.37612638903183876, 0.11283791670958743, -0.02686617064561954,
        0.005223977629095658, -0.0008548327189606624, 0.00012055337777810952,
        -1.4925738504204218e-05, 1.646308709483387e-06, -1.637063829093387e-07,
        1.4786548418167036e-08, -1.1830590465705277e-09, 6.684830822627492e-11,
    ),
    4: (
        0.12837917, -0.37612626, 0.112835824, -0.026853643, 0.0051879627, -0.0008006793,
        7.842288e-05,
    ),
}  # fmt: skip
# exp(x*x) erfc(x), of (|x| - middle) / half, see _RANGE.
_TAIL = {
    8: (
        0.15529365560908334, -0.1033089445697387, 0.06663208257913256, -0.0417667890175482,
        0.02549554189326251, -0.015182584036539468, 0.008833571011735902, -0.005025941951402864,
        0.0028093547934870794, -0.0015347515476760297, 0.0007681554464074645, -0.000561831524965248,
        0.00017259310615670682, 0.00023678210015040376, 0.0008792117897097198,
        0.0006479944893999367, -0.000288197433839304, -0.001323367078666758, -0.001477350675442457,
        -0.0009036659628750629, -0.00030469129672267166, -4.655023297416087e-05,
    ),
    4: (
        0.21080755, -0.111511186, 0.05607753, -0.02740396, 0.011600439, -0.005378397, 0.0056213913,
        0.0034512263, 0.002634345,
    ),
}  # fmt: skip
# The same, of x*x <= 1/4.
_ERFC_NEAR_ZERO = {
    8: (
        0.12837916709551256, -0.3761263890318326, 0.1128379167091327, -0.026866170629825208,
        0.005223977331905118, -0.0008548294625607735, 0.00012053199700619726,
        -1.4842740406357477e-05, 1.469649461046637e-06,
    ),
    4: (
        0.12837917, -0.3761261, 0.11282855, -0.026758812, 0.004720762,
    ),
}  # fmt: skip
# (x + c) exp(x*x) erfc(x), of (x - c) / (x + c), c = _CENTER.
_RATIO = {
    8: (
        1.0977860127399681, -0.9844605555842771, 0.7898998399210982, -0.5643003465719333,
        0.3559355549543864, -0.19553261660486126, 0.09143399503729593, -0.034890609610967786,
        0.009876894527127299, -0.0014501820443984183, -0.0002986087515101317,
        0.00024212919952153124, -4.6520416325981944e-05, -1.2847051972392216e-05,
        8.524493950680773e-06, -3.4851903917885467e-07, -9.942000801709275e-07,
        1.942292538032342e-07, 1.0180615384127228e-07, -2.573658275520925e-08,
        -8.370205502693274e-09,
    ),
    4: (
        1.0698159, -0.86643296, 0.55949146, -0.2766116, 0.094458126, -0.014656172, -0.004205655,
        0.002570995, 2.728368e-05, -0.00028544184,
    ),
}  # fmt: skip
_RANGE = {8: (3.5, 2.5), 4: (2.5, 1.5)}  # erf is 1 beyond 3.5 + 2.5
_CENTER = {8: 4.125, 4: 2.875}
_END = {8: 28.0, 4: 10.2}  # erfc is 0 beyond


@leaf("erf", "bell", together=True)
def erf(s: ScalarLanguage, x: Any) -> Any:
    """2 / sqrt(pi) times the integral of exp(-u*u) from 0 to x; and exp(-x*x)."""
    size = x.dtype.itemsize
    middle, half = _RANGE[size]
    a, square = s.abs(x), x * x
    near = s.fma(x, horner(s, square, _ERF_NEAR_ZERO), x)
    end = s.where(s.less(middle + half, a), middle + half, a)
    tail = polynomial(s, s.fma(end, 1.0 / half, -middle / half), _TAIL)
    bell = s.exp(-square)
    far = s.copysign(s.fma(-bell, tail, 1.0), x)
    # The rounding error of x*x.
    lost = s.where(s.isfinite(square), s.fma(x, x, -square), 0.0)
    return s.where(s.less(a, 1.0), near, far), s.fma(-lost, bell, bell)


@leaf("erfc")
def erfc(s: ScalarLanguage, x: Any) -> Any:
    """1 - erf(x), with all digits where erf(x) is close to 1."""
    size = x.dtype.itemsize
    center = _CENTER[size]
    a, square = s.abs(x), x * x
    near = s.fma(-x, horner(s, square, _ERFC_NEAR_ZERO) + 1.0, 1.0)
    end = s.where(s.less(_END[size], a), _END[size], a)
    moved = end + center
    inverse = 1.0 / moved
    scaled = horner(s, s.fma(inverse, -2.0 * center, 1.0), _RATIO) * inverse
    # The derivative of T = exp(x*x) erfc(x) is 2 x T - 2 / sqrt(pi).
    off = s.fma(moved, inverse, -1.0) + (end - (moved - center)) * inverse
    steep = s.fma(end + end, scaled, -2.0 / sqrt(pi))
    lost = s.fma(end, end, -(end * end))
    scaled = scaled + s.fma(-lost, scaled, off * moved * steep)
    tail = s.exp(-square) * scaled
    far = s.where(s.less(x, 0.0), 2.0 - tail, tail)
    return s.where(s.less(a, 0.5), near, far)


def _normal_tail(s: Any, x: Any, factor: Any = None) -> tuple[Any, Any, Any]:
    """|x|; erf(x / sqrt(2)) for |x| < sqrt(1/2); ndtr(-|x|) elsewhere, times `factor(|x|)`."""
    size, root = x.dtype.itemsize, sqrt(0.5)
    limit, center = _END[size] / root, _CENTER[size]
    inner = x * root
    near = s.fma(inner, horner(s, inner * inner, _ERFC_NEAR_ZERO), inner)
    a = s.abs(x)
    end = s.where(s.less(limit, a), limit, a)  # beyond, the tail is 0
    square = end * end
    moved = s.fma(end, root, center)
    inverse = 1.0 / moved
    scaled = horner(s, s.fma(inverse, -2.0 * center, 1.0), _RATIO) * inverse
    # The rounding errors of the sum, of the quotient and of x*x, as in erfc.
    off = s.fma(moved, inverse, -1.0) * moved + s.fma(end, root, -(moved - center))
    scaled = scaled + off * s.fma(end * sqrt(2.0), scaled, -2.0 / sqrt(pi))
    scaled = scaled * (0.5 if factor is None else factor(end))
    # The exponential comes last: it may underflow before the product.
    scaled = s.fma(s.fma(end, end, -square) * -0.5, scaled, scaled)
    return a, near, s.exp(square * -0.5) * scaled


@leaf("ndtr")
def ndtr(s: Any, x: Any) -> Any:
    """The normal distribution function, accurate in its lower tail."""
    a, near, tail = _normal_tail(s, x)
    far = s.where(s.less(x, 0.0), tail, 1.0 - tail)
    return s.where(s.less(a, sqrt(0.5)), s.fma(near, 0.5, 0.5), far)


@leaf("gelu")
def gelu(s: Any, x: Any) -> Any:
    """x ndtr(x), accurate in its lower tail."""
    a, near, tail = _normal_tail(s, x, lambda a: 0.5 * a)
    far = s.where(s.less(x, 0.0), -tail, x - tail)
    return s.where(s.less(a, sqrt(0.5)), x * s.fma(near, 0.5, 0.5), far)
