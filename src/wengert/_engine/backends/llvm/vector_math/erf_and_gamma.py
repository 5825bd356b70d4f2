"""The error function, the gamma function (DLMF 5, 7.2), and the normal quantile.

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
needed as well, for a derivative, erf and it share one (`bell`).

    gamma      gamma(x)
    gammaln    log |gamma(x)|

With n the nearest integer to x and t = x - n, gamma(2 + t) is a polynomial; the recurrence
gamma(x + 1) = x gamma(x) extends it to |x| < 8.5.  Beyond that, Stirling's formula is used, for
gamma as a power of two whose exponent is a sum of two parts, because its error is multiplied by up
to 1024.  Negative numbers: gamma(x) gamma(-x) = -pi / (x sin(pi x)).  log gamma has zeros at 1 and
2: near them t and 1 + t are factors, so the relative error is small there.  At its zeros between
the poles on the negative side only the absolute error is small.  float32 is computed in float64 and
rounded once.

    normal_quantile     |p - 1/2| <= 0.4    (p - 1/2) P((p - 1/2)**2)
                        beyond              t + D(t), t = sqrt(-2 log v), v = min(p, 1 - p)

D is a polynomial in each of four intervals of t, the last of which ends at the least positive
number.  Relative errors of the polynomials are below 2**-53.  Random numbers are functions of tail
probabilities: each body is a vector function, so its instructions and its table are in a module
once.  They are those of the body, in its order: no multiplication is contracted with an addition,
so the bits are those of NumPy.

Coefficients: docs/generate/special_coefficients.py.
"""

from __future__ import annotations

from math import inf, log, nan, pi, sqrt
from typing import Any

from wengert._engine.core.types import Scalar, ScalarLanguage
from wengert._engine.ops.random import tail_functions

from ..ir.llvm_types import F64
from .exponential import clipped, power_of_two, rounded, times_power
from .power import log2_in_two_parts
from .registry import horner, leaf, polynomial

# ---- error function ------------------------------------------------------------------------------


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


# ---- gamma function ------------------------------------------------------------------------------


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


# ---- normal quantile -----------------------------------------------------------------------------


_CENTRAL = 0.4
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
    p = s.cast(p, F64)
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
