"""Elementary functions: powers, exponentials, Box-Cox, degrees, multiples of pi; quotients.

    exprel_of                       (e^x - 1) / x     the integral over s from 0 to 1 of s^n e^(x s)
    log1prel_of                     log(1 + x) / x    of (-1)^n n! s^n / (1 + x s)^(n + 1)
    sinc_of                         sin(x) / x        of s^n cos(x s + n pi / 2)
    sinhc_of                        sinh(x) / x       of s^n cosh(x s), or sinh for odd n
    cbrt exp2 expm1 log1p           operations of wengert, to which SciPy's ufuncs dispatch
    exp10 cosm1 exprel powm1        10^x, cos(x) - 1, (e^x - 1) / x, x^y - 1
    sindg cosdg tandg cotdg radian  angles in degrees
    sinc round                      as in NumPy
    expit logit log_expit softplus  the logistic function, its inverse and logarithm; softplus
    boxcox, boxcox1p                (x^lambda - 1) / lambda, log(x) at lambda = 0; the same of 1 + x
    inv_boxcox, inv_boxcox1p        their inverses
    sinpi, cospi                    sin(pi x) and cos(pi x), accurate for large x and near zeros: x
                                    - 2 round(x / 2) is exact, unlike pi x
    check_integers                  validates orders and degrees

n is the order of the derivative, whose value is the integral on the right.  Near 0 it is computed
from its power series; elsewhere from the derivatives of g(x) = x f(x), by

    x f^(n) = g^(n) - n f^(n-1)

The quotients occur in Box-Cox transforms and in exponential and trigonometric integrals (DLMF 6.2,
25.12).

With L = log(x) the transform is L (e^u - 1) / u at u = lambda L, and the inverse is exp(y h(v))
with h(v) = log(1 + v) / v at v = lambda y.  Both quotients are smooth at 0,
and so are the derivatives with respect to lambda: L^2 / 2 and -y^2 e^y / 2 at lambda = 0.

G. E. P. Box and D. R. Cox, "An analysis of transformations", J. Royal Statistical Society B 26
(1964) 211-252.
"""

from __future__ import annotations

from math import factorial, log, pi
from typing import Any

import numpy as np
import scipy.special

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import POSITIVE, REAL, elementwise
from wengert._engine.tensor.numpy_dispatch import counterpart
from wengert.errors import ArgumentError, at, user_line

from ...numpy.elementwise import sinc as sinc
from .register import PREFIX, OracleExpression, family, function

__all__ = [
    "boxcox", "boxcox1p", "cbrt", "cosdg", "cosm1", "cotdg", "exp10", "exp2", "expit", "expm1",
    "exprel", "inv_boxcox", "inv_boxcox1p", "log1p", "log_expit", "logit", "powm1", "radian",
    "round", "sinc", "sindg", "tandg",
]  # fmt: skip


def _falling_factorial(n: int, k: int) -> int:
    return factorial(n) // factorial(n - k)


def _quotient(n: int, x: Any, derivatives: Any) -> Any:
    """f^(n) for f(x) = g(x) / x; `derivatives(k)` is g^(k) at x."""
    total = np.zeros_like(x)
    for k in range(n + 1):
        total = total + (-1.0) ** k * _falling_factorial(n, k) * derivatives(n - k) / x ** (k + 1)
    return total


@family(native=True, oracle=OracleExpression("x", "quad(lambda s: s**n * exp(x * s), [0, 1])"))
def exprel_of(x: Any, *, n: int) -> Any:
    """The derivative of order n of (e^x - 1) / x."""
    radius = 8.0 + n
    size = np.abs(x)
    near, below = size <= radius, x < 0
    a = np.where(near, size, 1.0)
    total, up, down = np.zeros_like(a), np.ones_like(a), 1.0 / (n + 1) * np.ones_like(a)
    for k in range(40 + 5 * n):  # in both series all terms are positive
        total = total + np.where(below, down, up / (n + 1 + k))
        up, down = up * (a / (k + 1)), down * (a / (n + 2 + k))
    total = np.where(below, np.exp(-a) * total, total)
    y = np.where(near, radius, x)
    return np.where(near, total, _quotient(n, y, lambda k: np.exp(y) if k else np.expm1(y)))


exprel_of.partials(lambda t, out, x, *, n: t * exprel_of(x, n=n + 1))


@family(
    native=True,
    oracle=OracleExpression(
        "x", "(-1)**n * factorial(n) * quad(lambda s: s**n / (1 + x*s)**(n+1), [0, 1])"
    ),
)
def log1prel_of(x: Any, *, n: int) -> Any:
    """The derivative of order n of log(1 + x) / x, x > -1.

    With q = x / (1 + x) it is (-1)^n n! / x^(n+1) times the sum of q^j / j over all j > n.
    """
    q = x / (1.0 + x)
    near = np.abs(q) <= 0.5
    p, total = np.where(near, q, 0.0), np.zeros_like(q)
    for j in range(56, -1, -1):
        total = total * p + 1.0 / (n + 1 + j)
    close = total / (1.0 + np.where(near, x, 0.0)) ** (n + 1)
    y, r = np.where(near, 1.0, x), np.where(near, 0.5, q)
    far = np.log1p(y) - sum(r**j / j for j in range(1, n + 1))
    return (-1.0) ** n * factorial(n) * np.where(near, close, far / y ** (n + 1))


log1prel_of.partials(lambda t, out, x, *, n: t * log1prel_of(x, n=n + 1))


def _series(n: int, x: Any, sign: int, terms: int) -> Any:
    """The sum of sign^j x^(2j - n) / ((2j - n)! (2j + 1)) over 2j >= n."""
    odd, first = n % 2, (n + n % 2) // 2
    square, total = x * x, np.zeros_like(x)
    for i in range(terms, -1, -1):
        factor = float(sign) ** (first + i) / (2 * (first + i) + 1)
        total = total + factor / factorial(2 * i + odd)
        total = total * square if i else total
    return total * x if odd else total


@family(
    native=True,
    oracle=OracleExpression("x", "quad(lambda s: s**n * cos(x * s + n * pi / 2), [0, 1])"),
)
def sinc_of(x: Any, *, n: int) -> Any:
    """The derivative of order n of sin(x) / x."""
    radius = 1.0 + 0.5 * n
    near = np.abs(x) <= radius
    y = np.where(near, radius, x)
    far = _quotient(n, y, lambda k: _sin_derivative(y, k))
    return np.where(near, _series(n, np.where(near, x, 0.0), -1, 14 + 2 * n), far)


def _sin_derivative(x: Any, k: int) -> Any:
    """The k-th derivative of sin: sin(x + k pi / 2)."""
    return (np.cos(x) if k % 2 else np.sin(x)) * (-1.0) ** (k // 2)


sinc_of.partials(lambda t, out, x, *, n: t * sinc_of(x, n=n + 1))


@family(
    native=True,
    oracle=OracleExpression(
        "x", "quad(lambda s: s**n * (sinh(x*s) if n % 2 else cosh(x*s)), [0, 1])"
    ),
)
def sinhc_of(x: Any, *, n: int) -> Any:
    """The derivative of order n of sinh(x) / x."""
    radius = 3.0 + n
    near = np.abs(x) <= radius
    y = np.where(near, radius, x)
    far = _quotient(n, y, lambda k: np.cosh(y) if k % 2 else np.sinh(y))
    return np.where(near, _series(n, np.where(near, x, 0.0), 1, 18 + 2 * n), far)


sinhc_of.partials(lambda t, out, x, *, n: t * sinhc_of(x, n=n + 1))


@exprel_of.examples
def _(rng: np.random.Generator) -> Any:
    for n in (0, 1, 3):
        yield (rng.normal(size=4) * 3.0,), {"n": n}
    yield (np.array([-30.0, 1e-9, 25.0]),), {"n": 2}


@log1prel_of.examples
def _(rng: np.random.Generator) -> Any:
    for n in (0, 1, 3):
        yield (rng.uniform(-0.9, 4.0, size=4),), {"n": n}
    yield (np.array([-0.99, 1e-9, 1e6]),), {"n": 1}


def _both_signs(rng: np.random.Generator) -> Any:
    for n in (0, 1, 2, 5):
        yield (rng.normal(size=4) * 3.0,), {"n": n}
    yield (np.array([-9.0, 1e-9, 12.0]),), {"n": 3}


sinc_of.examples(_both_signs)
sinhc_of.examples(_both_signs)


# ---- functions ---------------------------------------------------------------------------------


cbrt, exp2, expm1, log1p, round = map(lookup, "cbrt exp2 expm1 log1p rint".split())
expit, log_expit = lookup("sigmoid"), lookup("log_sigmoid")
DEGREE = pi / 180.0

exp10 = function("exp10", "x", oracle="mpf(10)**x", doc="10^x; its derivative is log(10) 10^x.")
exp10.partials(lambda t, out, x: t * (out * log(10.0)))

cosm1 = function(
    "cosm1",
    "x",
    oracle="-2 * sin(x / 2)**2",
    doc="cos(x) - 1, without cancellation near 0; its derivative is -sin(x).",
)
cosm1.partials(lambda t, out, x: -t * np.sin(x))

exprel = function(
    "exprel",
    "x",
    oracle="expm1(x) / x if x else mpf(1)",
    doc="(e^x - 1) / x, and 1 at 0; all derivatives are smooth at 0.",
)
exprel.partials(lambda t, out, x: t * exprel_of(x, n=1))

powm1 = function(
    "powm1",
    "x y",
    domain=[POSITIVE, REAL],
    oracle="expm1(y * log(x))",
    singular=True,
    doc="x^y - 1, without cancellation near 0; d/dx = y x^(y - 1), d/dy = x^y log(x).",
)


def _powm1_by_y(t: Any, out: Any, x: Any, y: Any) -> Any:
    power = lookup("power")
    return power.rules[1](t, power(x, y), x, y)


def _powm1_by_x(t: Any, out: Any, x: Any, y: Any) -> Any:
    power = lookup("power")
    return power.rules[0](t, power(x, y), x, y)


powm1.partials(_powm1_by_x, _powm1_by_y)

# ---- degrees -----------------------------------------------------------------------------------

sindg = function("sindg", "x", oracle="sinpi(x / 180)", doc="The sine of an angle in degrees.")
cosdg = function("cosdg", "x", oracle="cospi(x / 180)", doc="The cosine of an angle in degrees.")
sindg.partials(lambda t, out, x: t * (DEGREE * cosdg(x)))
cosdg.partials(lambda t, out, x: t * (-DEGREE * sindg(x)))

tandg = function(
    "tandg",
    "x",
    domain=[(-90.0, 90.0)],
    oracle="sinpi(x / 180) / cospi(x / 180)",
    singular=True,
    doc="The tangent of an angle in degrees.",
)
tandg.partials(lambda t, out, x: t * DEGREE / cosdg(x) ** 2)

cotdg = function(
    "cotdg",
    "x",
    domain=[(0.0, 180.0)],
    oracle="cospi(x / 180) / sinpi(x / 180)",
    singular=True,
    doc="The cotangent of an angle in degrees.",
)
cotdg.partials(
    lambda t, out, x: t * -DEGREE / sindg(x) ** 2
)  # in terms of SciPy's cotdg it would cancel

radian = function(
    "radian",
    "d m s",
    oracle="(d + m / 60 + s / 3600) * pi / 180",
    bounded=True,
    doc="An angle in degrees, minutes and seconds converted to radians.",
)
radian.partials(
    lambda t, out, d, m, s: t * DEGREE,
    lambda t, out, d, m, s: t * (DEGREE / 60.0),
    lambda t, out, d, m, s: t * (DEGREE / 3600.0),
)

# ---- the logistic function ---------------------------------------------------------------------

logit = function(
    "logit",
    "x",
    domain=[(0.0, 1.0)],
    oracle="log(x / (1 - x))",
    singular=True,
    doc="log(x / (1 - x)), the inverse of expit; its derivative is 1 / (x (1 - x)).",
)
logit.partials(lambda t, out, x: t / (x * (1.0 - x)))

if hasattr(scipy.special, "softplus"):
    __all__.append("softplus")

    @counterpart(scipy.special.softplus)
    def softplus(x: Any, **kwargs: Any) -> Any:
        """log(1 + e^x), without overflow; its derivative is expit(x)."""
        return lookup("softplus")(x, **kwargs)


EXPONENT = (-3.0, 3.0)

boxcox = function(
    "boxcox",
    "x lmbda",
    domain=[POSITIVE, EXPONENT],
    oracle="(x**lmbda - 1) / lmbda if lmbda else log(x)",
    singular=True,
    doc="(x^lambda - 1) / lambda, and log(x) at lambda = 0; d/dx = x^(lambda - 1).",
)


def _by_lambda(t: Any, log: Any, lmbda: Any) -> Any:
    """L^2 times the derivative of (e^u - 1) / u at u = lambda L; 1 / lambda^2 where L is -inf."""
    where = lookup("where")
    end = np.logical_and(np.isneginf(value_of(log)), value_of(lmbda) > 0)
    inside = where(end, 0.0, log)
    slope = inside * inside * exprel_of(lmbda * inside, n=1)
    return t * where(end, 1.0 / where(end, lmbda, 1.0) ** 2, slope)


boxcox.partials(
    lambda t, out, x, lmbda: t * x ** (lmbda - 1.0),
    lambda t, out, x, lmbda: _by_lambda(t, np.log(x), lmbda),
)

boxcox1p = function(
    "boxcox1p",
    "x lmbda",
    domain=[(-1.0, np.inf), EXPONENT],
    oracle="expm1(lmbda * log1p(x)) / lmbda if lmbda else log1p(x)",
    singular=True,
    doc="((1 + x)^lambda - 1) / lambda, and log(1 + x) at lambda = 0; d/dx = (1 + x)^(lambda - 1).",
)
boxcox1p.partials(
    lambda t, out, x, lmbda: t * (1.0 + x) ** (lmbda - 1.0),
    lambda t, out, x, lmbda: _by_lambda(t, np.log1p(x), lmbda),
)

inv_boxcox = function(
    "inv_boxcox",
    "y lmbda",
    domain=[POSITIVE, (1e-290, 3.0)],
    oracle="exp(log1p(lmbda * y) / lmbda) if lmbda else exp(y)",
    singular=True,
    doc="(1 + lambda y)^(1 / lambda), and e^y at lambda = 0.",
)


def _inverse_by_y(t: Any, power: Any, y: Any, lmbda: Any) -> Any:
    """(1 + lambda y)^(1 / lambda - 1)."""
    where = lookup("where")
    end = value_of(lmbda) * value_of(y) == -1.0
    zero = where(end, 0.0, 1.0) ** (where(end, 1.0 / where(end, lmbda, 1.0) - 1.0, 0.0))
    return t * where(end, zero, power / where(end, 1.0, 1.0 + lmbda * y))


def _inverse_by_lambda(t: Any, power: Any, y: Any, lmbda: Any) -> Any:
    """(1 + lambda y)^(1 / lambda) y^2 h'(lambda y); 0 where the power is 0."""
    where = lookup("where")
    end = value_of(lmbda) * value_of(y) == -1.0
    slope = y * y * log1prel_of(where(end, 0.0, lmbda * y), n=1)
    return t * where(end, 0.0, power * slope)


inv_boxcox.partials(
    lambda t, out, y, lmbda: _inverse_by_y(t, out, y, lmbda),
    lambda t, out, y, lmbda: _inverse_by_lambda(t, out, y, lmbda),
)

inv_boxcox1p = function(
    "inv_boxcox1p",
    "y lmbda",
    domain=[POSITIVE, (1e-290, 3.0)],
    oracle="expm1(log1p(lmbda * y) / lmbda) if lmbda else expm1(y)",
    singular=True,
    doc="(1 + lambda y)^(1 / lambda) - 1, and e^y - 1 at lambda = 0.",
)


def _power(out: Any, y: Any, lmbda: Any) -> Any:
    """out + 1; e^y for tiny lambda y, where SciPy returns y instead of e^y - 1."""
    return lookup("where")(np.abs(lmbda * y) < 1e-150, np.exp(y), out + 1.0)


inv_boxcox1p.partials(
    lambda t, out, y, lmbda: _inverse_by_y(t, _power(out, y, lmbda), y, lmbda),
    lambda t, out, y, lmbda: _inverse_by_lambda(t, _power(out, y, lmbda), y, lmbda),
)


@elementwise(name=f"{PREFIX}sinpi", oracle="sinpi(x)", complex_ok=True)
def sinpi(s: Any, x: Any) -> Any:
    """sin(pi x)."""
    return s.sin(pi * _reduce(s, x))


@elementwise(name=f"{PREFIX}cospi", oracle="cospi(x)", complex_ok=True)
def cospi(s: Any, x: Any) -> Any:
    """cos(pi x)."""
    r = x - 2.0 * s.rint(0.5 * (x + s.conj(x)) * 0.5)
    shifted = s.where(s.less(s.conj(r) + r, 0.0), r + 0.5, 0.5 - r)
    return s.sin(pi * shifted)


def _reduce(s: Any, x: Any) -> Any:
    """r with sin(pi r) = sin(pi x) and real part in [-1/2, 1/2]."""
    r = x - 2.0 * s.rint(0.5 * (x + s.conj(x)) * 0.5)
    real = 0.5 * (r + s.conj(r))
    return s.where(s.less(0.5, real), 1.0 - r, s.where(s.less(real, -0.5), -1.0 - r, r))


sinpi.partials(lambda t, out, x: t * (pi * cospi(x)))
cospi.partials(lambda t, out, x: t * (-pi * sinpi(x)))


def check_integers(n: Any, function: str, parameter: str, minimum: int) -> Any:
    """`n` as an int or an array of int64.

    Raises
    ------
    ArgumentError
        It is not an integer, less than `minimum`, or not known while tracing.
    """
    values = np.asarray(value_of(n) if isinstance(n, Handle) else n)
    kind = values.dtype.kind
    if kind not in "biuf" or np.any(values < minimum) or (kind == "f" and np.any(values % 1)):
        raise ArgumentError(
            f"{function} with {parameter}={n}: {parameter} must be an integer of at least "
            f"{minimum}{at(user_line())}."
        )
    integers = values.astype(np.int64)
    return int(integers) if integers.ndim == 0 else integers
