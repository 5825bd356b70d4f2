"""Inverse hyperbolic functions.

    arcsinh      up to 0.52 a polynomial; beyond, log(|x| + sqrt(x**2 + 1))
    arccosh      up to 1.1276 sqrt(2 (x - 1)) times a polynomial; beyond, log(x + sqrt(x**2 - 1))
    arctanh      up to 1/2 a polynomial; beyond, log((1 + |x|) / (1 - |x|)) / 2

The arguments of the logarithms are at least 1.6, so they are computed as k log(2) + 2 arctanh(q)
with k >= 1 and q = (m - 1) / (m + 1) for the remaining factor m near 1: rounding errors of q are
small compared to the sum.  Polynomials: minimax (docs/generate/minimax_coefficients.py).
Measured errors: arcsinh 1.7, arccosh 1.7, arctanh 1.2 ulp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from .float_decomposition import power_of_two, split, whole_as_float
from .lane_loops import horner, polynomial
from .registry import leaf

# (arcsinh(x) - x) / x**3 in x**2, x to 0.5212.  Errors 2**-58.7 and 2**-28.9.
_SINE = {
    8: (
        -0.1666666666666653, 0.07499999999965162, -0.04464285711190391, 0.030381943062292676,
        -0.02237212281061144, 0.017352155334949448, -0.013957978151417912, 0.011498431430559805,
        -0.009472349889232934, 0.0072997684636576295, -0.004492557281227051, 0.0015469831450145455,
    ),
    4: (
        -0.16666632890701294, 0.07498185336589813, -0.04432255029678345, 0.02785022370517254,
        -0.012678935192525387,
    ),
}  # fmt: skip

# (arccosh(1 + t) / sqrt(2 * t) - 1) / t, t to 0.1277.  Errors 2**-59.6 and 2**-34.2.
_COSINE = {
    8: (
        -0.08333333333333247, 0.018749999999778215, -0.005580357123443895, 0.0018988707054891478,
        -0.0006991106627702579, 0.00027087157422388535, -0.0001069649924065117,
        3.56654652328245e-05,
    ),
    4: (-0.083333320915699, 0.018749065697193146, -0.005558425094932318, 0.0016933921724557877),
}  # fmt: skip

# (arctanh(x) - x) / x**3 in x**2, x to 1/2.  Errors 2**-57.0 and 2**-29.4.
_TANGENT = {
    8: (
        0.3333333333333399, 0.19999999999794502, 0.1428571430809582, 0.11111109885565158,
        0.09090948574650622, 0.07691493096994646, 0.0667796486326549, 0.05774223048124835,
        0.05983404276621065, 0.014525941256215409, 0.14502489711602448, -0.15303530292375664,
        0.22486637707585616,
    ),
    4: (
        0.33333301544189453, 0.2000245302915573, 0.14223769307136536, 0.11816641688346863,
        0.051590725779533386, 0.17640243470668793,
    ),
}  # fmt: skip

# (2 * arctanh(q) - 2 * q) / q**3 in q**2, q to 0.202.  Errors 2**-54.6 and 2**-27.3.
_LOGARITHM = {
    8: (
        0.6666666666667374, 0.3999999999560516, 0.28571429494453543, 0.22222130468180906,
        0.18186682198058596, 0.15243722759744918, 0.1541801050262684,
    ),
    4: (0.6666696667671204, 0.399558961391449, 0.30401769280433655),
}  # fmt: skip
# log(2) and its rounding error.
_LOG_2 = {
    8: (0.6931471805599453, 2.3190468138462996e-17),
    4: (0.6931471824645996, -1.9046542121259336e-09),
}
# From here on sqrt(x**2 +- 1) rounds to |x|.
_LARGE_ARGUMENT = {8: 2.0**28, 4: 2.0**13}


@leaf("arcsinh")
def arcsinh(s: Language, x: Lane) -> Any:
    """The inverse hyperbolic sine."""
    a = s.abs(x)
    square = a * a
    small = s.fma(a * square, polynomial(s, square, _SINE), a)
    root = s.where(s.less(a, _LARGE_ARGUMENT[x.dtype.itemsize]), s.sqrt(s.fma(a, a, 1.0)), a)
    large = s.where(s.less(a, np.inf), _log_of_sum(s, root, a), a)
    return s.copysign(s.where(s.less(a, 0.5211), small, large), x)


@leaf("arccosh")
def arccosh(s: Language, x: Lane) -> Any:
    """The inverse hyperbolic cosine; NaN below 1."""
    near = s.less(x, 1.1276)
    beyond = x - 1.0
    root = s.sqrt(s.where(near, 2.0 * beyond, s.fma(x, x, -1.0)))
    series = polynomial(s, beyond, _COSINE)
    small = s.fma(root * beyond, series, root)
    other = s.where(s.less(x, _LARGE_ARGUMENT[x.dtype.itemsize]), root, x)
    large = s.where(s.less(x, np.inf), _log_of_sum(s, x, other), x)
    return s.where(near, small, large)


@leaf("arctanh")
def arctanh(s: Language, x: Lane) -> Any:
    """The inverse hyperbolic tangent; infinite at 1, NaN beyond."""
    a = s.abs(x)
    square = a * a
    small = s.fma(a * square, polynomial(s, square, _TANGENT), a)
    # (1 + a) / (1 - a) = 2**-k * above / m.
    above = s.fma(a, 0.5, 0.5)
    below = s.fma(a, -0.5, 0.5)
    k, m = split(s, below, above)
    sum_of = _log_of_quotient(s, above - m, above + m, -whole_as_float(s, k, x.dtype))
    large = s.where(s.less(a, 1.0), 0.5 * sum_of, s.where(s.equal(a, 1.0), np.inf, np.nan))
    y = s.where(s.less(a, 0.5), small, s.where(s.isnan(x), x, large))
    return s.copysign(y, x)


def _log_of_sum(s: Language, larger: Scalar, smaller: Scalar) -> Any:
    """log(larger + smaller), for a sum of at least 1.6."""
    # The sum of halves is finite; Dekker's fast sum gives its rounding error.
    larger, smaller = 0.5 * larger, 0.5 * smaller
    total = larger + smaller
    lacks = smaller - (total - larger)
    k, m = split(s, total)
    rest = (lacks * 0.5) * power_of_two(s, -k, -1)
    return _log_of_quotient(s, (m - 1.0) + rest, m + 1.0, whole_as_float(s, k, total.dtype) + 1.0)


def _log_of_quotient(s: Language, difference: Lane, total: Lane, k: Lane) -> Any:
    """k log(2) + 2 arctanh(difference / total), k at least 1."""
    size = k.dtype.itemsize
    first, second = _LOG_2[size]
    q = difference / total
    square = q * q
    rest = s.fma(q * square, horner(s, square, _LOGARITHM), k * second)
    return s.fma(k, first, s.fma(q, 2.0, rest))
