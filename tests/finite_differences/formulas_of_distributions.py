"""Formulas in mpmath of methods of distributions (formulas.py).

    METHODS    by name, as "alpha.isf", with location and scale last

Standard forms are written below, and placed by what their method makes of location and scale.
"""

from __future__ import annotations

import mpmath
from mpmath import (
    betainc,
    digamma,
    e1,
    erfc,
    erfinv,
    euler,
    exp,
    expm1,
    inf,
    log,
    log1p,
    loggamma,
    mpf,
    nan,
    pi,
    sqrt,
)

from .exact import each
from .formulas_of_sums import besselk, boltzmann_entropy, skellam_logsf, vonmises_cdf, vonmises_isf

METHODS = {}


def formula(*names):
    """Register a standard form as a method: the part of the name after the point says how."""

    def register(standard):
        for name in names:
            placed = PLACES[name.rpartition(".")[2]]
            METHODS[name] = each(lambda *args, placed=placed: placed(standard, *args))
        return standard

    return register


def _at(standard, x, *args):
    *shapes, loc, scale = args
    return standard((x - loc) / scale, *shapes)


def _density(standard, x, *args):
    return _at(standard, x, *args) / args[-1]


def _log_density(standard, x, *args):
    return _at(standard, x, *args) - log(args[-1])


def _quantile(standard, q, *args):
    *shapes, loc, scale = args
    return loc + scale * standard(q, *shapes)


def _mean(standard, *args):
    *shapes, loc, scale = args
    return loc + scale * standard(*shapes)


def _entropy(standard, *args):
    return standard(*args[:-2]) + log(args[-1])


PLACES = {
    **dict.fromkeys(("cdf", "sf", "logcdf", "logsf"), _at),
    "pdf": _density,
    "logpdf": _log_density,
    **dict.fromkeys(("ppf", "isf"), _quantile),
    "mean": _mean,
    "std": lambda standard, *args: args[-1] * standard(*args[:-2]),
    "var": lambda standard, *args: args[-1] ** 2 * standard(*args[:-2]),
    "entropy": _entropy,
    "discrete": lambda standard, *args: standard(*args),
}


def tails(name, lower, upper, methods="cdf sf logcdf logsf"):
    """The distribution function and its relatives, from both tails."""
    ways = {
        "cdf": lower,
        "sf": upper,
        "logcdf": lambda *args: log(lower(*args)),
        "logsf": lambda *args: log(upper(*args)),
    }
    for method in methods.split():
        formula(f"{name}.{method}")(ways[method])


def inverse(log_part, start, *shapes):
    """The y at which a part has a logarithm, by Newton's steps for log y: `log_part(t) = 0`."""
    return exp(mpmath.findroot(log_part, start, tol=mpf(10) ** -60))


# ---- half logistic, logistic, Laplace ----------------------------------------------------------


def _root(x, c):
    if not 0 < x < 1 / c:
        return nan
    return (1 - c * x) ** (1 / c)


tails(
    "genhalflogistic",
    lambda x, c: (1 - _root(x, c)) / (1 + _root(x, c)),
    lambda x, c: 2 * _root(x, c) / (1 + _root(x, c)),
)


@formula("genhalflogistic.pdf")
def _(x, c):
    root = _root(x, c)
    return 2 * root / (1 - c * x) / (1 + root) ** 2


@formula("genhalflogistic.isf")
def _(q, c):
    return (1 - (q / (2 - q)) ** c) / c


@formula("genlogistic.logsf")
def _(x, c):
    return log(-expm1(-c * log1p(exp(-x))))


@formula("laplace_asymmetric.logcdf")
def _(x, kappa):
    if x < 0:
        return x / kappa + log(kappa) - log(kappa + 1 / kappa)
    return log1p(-exp(-x * kappa) / kappa / (kappa + 1 / kappa))


# ---- of the normal distribution ----------------------------------------------------------------


@formula("alpha.isf")
def _(q, a):
    part = (1 - q) * erfc(-a / sqrt(2)) / 2
    return 1 / (a - sqrt(2) * erfinv(2 * part - 1))


@formula("lognorm.std")
def _(s):
    return sqrt(expm1(s * s)) * exp(s * s / 2)


# ---- of the gamma function ---------------------------------------------------------------------


def _power_part(x, beta):
    """P(1 / beta, |x|^beta), by the series DLMF 8.7.1 where the power is tiny."""
    a, power = 1 / beta, abs(x) ** beta
    if power > 1e5:
        return mpf(1)
    return mpmath.gammainc(a, 0, power, regularized=True)


def _even(x, beta):
    return (1 + mpmath.sign(x) * _power_part(x, beta)) / 2


def _odd(x, beta):
    return (1 - mpmath.sign(x) * _power_part(x, beta)) / 2


tails("gennorm", _even, _odd)
tails("halfgennorm", _power_part, lambda x, beta: 1 - _power_part(x, beta), "cdf sf logcdf logsf")


def _gamma_ratio(a, b):
    return exp(loggamma(a) - loggamma(b))


@formula("halfgennorm.mean")
def _(beta):
    return _gamma_ratio(2 / beta, 1 / beta)


@formula("gengamma.mean")
def _(a, c):
    return _gamma_ratio(a + 1 / c, a) if a + 1 / c > 0 else inf


@formula("nakagami.mean")
def _(nu):
    return _gamma_ratio(nu + mpf(1) / 2, nu) / sqrt(nu)


def _gamma_quantile(a, q):
    """The y at which P(a, y) is q."""

    def off(t):
        y = exp(t)
        # log P(a, y) = a log y - y - log gamma(a + 1) + log 1F1(1; a + 1; y), DLMF 8.5.1
        series = log(mpmath.hyp1f1(1, a + 1, y)) if y > mpf(10) ** -90 else mpf(0)
        return a * t - y - loggamma(a + 1) + series - log(q)

    low = (log(q) + loggamma(a + 1)) / a
    return inverse(off, min(low, log(a + 1)))


@formula("nakagami.ppf")
def _(q, nu):
    return sqrt(_gamma_quantile(nu, q) / nu)


@formula("chi.ppf")
def _(q, df):
    return sqrt(2 * _gamma_quantile(df / 2, q))


@formula("gompertz.mean")
def _(c):
    return exp(c) * e1(c)


# ---- of powers ---------------------------------------------------------------------------------


def _moment_of_frechet(n, c):
    return mpmath.gamma(1 - n / c)


@formula("invweibull.mean")
def _(c):
    return _moment_of_frechet(1, c) if c > 1 else inf


@formula("invweibull.var")
def _frechet_var(c):
    return _moment_of_frechet(2, c) - _moment_of_frechet(1, c) ** 2 if c > 2 else inf


@formula("invweibull.std")
def _(c):
    return sqrt(_frechet_var(c))


@formula("burr.ppf")
def _(q, c, d):
    return (q ** (-1 / d) - 1) ** (-1 / c)


@formula("burr.entropy")
def _burr_entropy(c, d):
    out = -log(c) - log(d) - (c * d - 1) / c * (digamma(d) + euler)
    return out + (d + 1) * (digamma(d + 1) + euler)


@formula("mielke.entropy")
def _(k, s):
    return _burr_entropy(s, k / s)


@formula("burr12.entropy")
def _(c, d):
    return -log(c) - log(d) + (c - 1) / c * (digamma(d) + euler) + 1 + 1 / d


@formula("kappa3.logpdf")
def _(x, a):
    return log(a) - (a + 1) / a * log(a + x**a) if x > 0 else nan


# ---- of the beta function ----------------------------------------------------------------------


def _log_beta(a, b):
    return loggamma(a) + loggamma(b) - loggamma(a + b)


@formula("betaprime.entropy")
def _(a, b):
    out = _log_beta(a, b) - (a - 1) * digamma(a) - (b + 1) * digamma(b)
    return out + (a + b) * digamma(a + b)


@formula("rdist.entropy")
def _(c):
    # of the beta distribution of c / 2, c / 2 on an interval of length 2
    half = c / 2
    out = _log_beta(half, half) - 2 * (half - 1) * digamma(half)
    return out + (c - 2) * digamma(c) + log(2)


def _skew_t(sign):
    def part(x, a, b):
        y = (1 + x / sqrt(a + b + x * x)) / 2
        ends = (0, y) if sign > 0 else (y, 1)
        return betainc(a, b, *ends, regularized=True)

    return part


tails("jf_skew_t", _skew_t(1), _skew_t(-1))


@formula("yulesimon.discrete")
def _yule(k, alpha):
    return 1 - mpf(int(k)) * mpmath.beta(int(k), alpha + 1)


METHODS["yulesimon.cdf"] = METHODS.pop("yulesimon.discrete")


# ---- of Bessel's functions ---------------------------------------------------------------------


@formula("ncx2.logpdf")
def _(x, df, nc):
    order = df / 2 - 1
    if not (x > 0 and nc > 0):
        return nan
    bessel = log(mpmath.besseli(order, sqrt(nc * x)))
    return -log(mpf(2)) - (x + nc) / 2 + order / 2 * (log(x) - log(nc)) + bessel


@formula("geninvgauss.mean")
def _(p, b):
    return besselk(p + 1, b) / besselk(p, b)


@formula("genhyperbolic.pdf")
def _(x, p, a, b):
    square, size = (a - b) * (a + b), sqrt(1 + x * x)
    out = (square / a**2) ** (p / 2) * sqrt(a) / sqrt(2 * pi) / besselk(p, sqrt(square))
    return out * exp(b * x) * size ** (p - mpf(1) / 2) * besselk(p - mpf(1) / 2, a * size)


# ---- sums --------------------------------------------------------------------------------------

tails("vonmises", vonmises_cdf, lambda x, kappa: 1 - vonmises_cdf(x, kappa))
tails("vonmises_line", vonmises_cdf, lambda x, kappa: 1 - vonmises_cdf(x, kappa))
formula("vonmises.isf")(vonmises_isf)
METHODS["boltzmann.entropy"] = each(boltzmann_entropy)
METHODS["skellam.logsf"] = each(skellam_logsf)


# ---- the others --------------------------------------------------------------------------------


@formula("skewcauchy.pdf")
def _(x, a):
    return 1 / (pi * (1 + (x / (1 + a * mpmath.sign(x))) ** 2))


@formula("recipinvgauss.mean")
def _(mu):
    return 1 + 1 / mu
