"""The error function, its complement (DLMF 7.2) and their derivative, in the scalar language.

    |x| < 1/2    erf(x) = x P(x^2), P of degree 9
    beyond       erfc(x) = exp(-x^2) F(t) / (1 + 2 |x|), t = (|x| - 3.75) / (|x| + 3.75),
                 F the series of M. M. Shepherd and J. G. Laframboise, Math. Comp. 36 (1981)
                 249-253, valid on the whole half-line; its coefficients decay fast enough for
                 powers of t to be as accurate as Chebyshev polynomials, at half the cost

The coefficients were computed with mpmath, at 50 digits from Chebyshev nodes; the oracle in the
tests is mpmath's erf.  SciPy has both functions, but importing scipy.special takes twice as long as
importing NumPy, and the bodies also serve compiled backends.

The exponent is split so that the rounding error of x^2 does not affect the result.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BOUNDED, SATURATES, call, facts
from wengert._engine.kinds.elementwise import elementwise

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Scalar, ScalarLanguage

_NEAR_ZERO_COEFFICIENTS = (
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
    1.2375126308378275,
    -0.14024059858554697,
    0.003585415485464436,
    0.08227673849014522,
    -0.10880393014174887,
    0.09230432116037748,
    -0.05869339858963677,
    0.028362277418956403,
    -0.009746579558029276,
    0.0017556258528952954,
    0.0002937136655913448,
    -0.0002901540805408417,
    5.16490988926824e-05,
    2.2384239155082227e-05,
    -1.1444146237700524e-05,
    -9.735598967367748e-07,
    1.751637648849062e-06,
    -5.721823060322409e-08,
    -2.586685071615589e-07,
    2.3263508708859124e-08,
    3.867533424222236e-08,
    -3.744210080962019e-09,
    -5.1739902140113095e-09,
    3.1114333809799254e-10,
    4.2514714447963895e-10,
)


def _polynomial(coefficients: tuple[float, ...], x: Scalar) -> Any:
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def _bell(s: ScalarLanguage, a: Scalar) -> Any:
    """exp(-a*a) for 0 <= a <= 40."""
    z = s.rint(a * 1024.0) * (1.0 / 1024.0)  # its square is exact
    return s.exp(-z * z) * s.exp((z - a) * (z + a))


def erf_near_zero(x: Scalar) -> Any:
    """erf(x) for |x| < 1/2, in the scalar language."""
    return x * _polynomial(_NEAR_ZERO_COEFFICIENTS, x * x)


def scaled_erfc(x: Scalar) -> Any:
    """exp(x*x) erfc(x) for x >= 1/2, in the scalar language."""
    return _polynomial(_TAIL, (x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x)


def _pieces(s: ScalarLanguage, x: Scalar) -> tuple[Any, Any, Any]:
    """|x|; erf for |x| < 1/2; erfc(|x|) elsewhere.  Both are finite where they are not used."""
    a = s.abs(x)
    inner = s.where(s.less(a, 0.5), x, 0.0)
    small = erf_near_zero(inner)
    # NaN propagates, and the tail is cut off where erfc is zero.
    far = s.where(s.less(a, 0.5), 0.5, s.min(a, 28.0))
    z = s.rint(far * 64.0) * (1.0 / 64.0)  # its square is exact, in float32 too
    bell = s.exp(-z * z) * s.exp((z - far) * (z + far))
    return a, small, bell * scaled_erfc(far)


@facts(cost=call(95.0), onnx="Erf", zero_slope=SATURATES, range=BOUNDED)
@elementwise(oracle="erf(x)")
def erf(s: ScalarLanguage, x: Scalar) -> Any:
    """The error function, 2 / sqrt(pi) times the integral of exp(-u*u) from 0 to x."""
    a, small, tail = _pieces(s, x)
    return s.where(s.less(a, 0.5), small, s.copysign(1.0 - tail, x))


@facts(zero_slope=SATURATES, cost=call())
@elementwise(oracle="exp(-x * x)")
def bell(s: ScalarLanguage, x: Scalar) -> Any:
    """exp(-x*x), accurate in the tails; proportional to the derivative of erf."""
    a = s.min(s.abs(x), 40.0)  # beyond, it is zero
    return _bell(s, a)


def _bell_by_x(t: Array, out: Array, x: Array) -> Any:
    # Where bell is zero, so are its derivatives; inf * 0 would be NaN.
    inside = lookup("where")(np.abs(value_of(x)) > 40.0, 0.0, x)
    return -2.0 * t * (inside * out)


bell.partials(_bell_by_x)


def _slope(t: Array, x: Array) -> Any:
    """The derivative of erf times t."""
    return t * (2.0 / sqrt(pi) * bell(x))


erf.partials(lambda t, out, x: _slope(t, x))


@facts(cost=call(95.0), zero_slope=SATURATES)
@elementwise(oracle="erfc(x)")
def erfc(s: ScalarLanguage, x: Scalar) -> Any:
    """1 - erf(x), accurate where erf(x) is close to 1."""
    a, small, tail = _pieces(s, x)
    return s.where(s.less(a, 0.5), 1.0 - small, s.where(s.less(x, 0.0), 2.0 - tail, tail))


erfc.partials(lambda t, out, x: -_slope(t, x))
