"""The noncentral chi-square distribution, differentiable in all arguments: DLMF 8.2, 13.6(v).

    chndtr                         distribution function
    chndtrix chndtridf chndtrinc   inverses, solved for the point, degrees of freedom, noncentrality
    noncentral_gamma               sum over j of P(a + j, x) with the Poisson weights of mean c, and
                                   derivatives with respect to a; chndtr is that of halved arguments
    noncentral_gammac              its complement, accurate in the upper tail
    noncentral_density             the derivative with respect to x, and its derivatives

The derivative of the Poisson weight of j with respect to c is the weight of j - 1 minus that of j,
and P(a, x) - P(a + 1, x) is the gamma density of shape a + 1 (DLMF 8.8.5).  So the derivative with
respect to c is minus the noncentral density of a + 1, without cancellation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.optimize is loaded when an oracle needs it
from scipy import special

from .incomplete_gamma import gamma_density, gammainc_order
from .register import OracleExpression, family, inverse_partials, sampled_function
from .series_and_quadrature import fail_where, is_traced_scalar, repeat

__all__ = "chndtr chndtrix chndtridf chndtrinc".split()

_SUM_ALL_BELOW = 4000.0  # for smaller c the sum starts at 0, which keeps tails accurate
_MAX_TERMS = 200_000
_RANGE = (0.6, 3.0)
_CENTRAL = (0.15, 0.85)
_SOLUTIONS = (1e-300, np.inf)  # SciPy searches from about 1e-315, its result if there is none


def _range_of_terms(a: Any, x: Any, mean: Any) -> tuple[Any, Any]:
    """The first and last relevant j: around the Poisson mean, and the largest term of a tail."""
    total_mean = a + mean
    # Above this x, all terms underflow.
    x = np.minimum(x, total_mean + 60.0 * np.sqrt(total_mean) + 1000.0)
    # The largest mean^j / j! x^(a + j) / gamma(a + j).
    peak = 0.5 * (np.sqrt(a * a + 4.0 * mean * x) - a)
    low, high = np.minimum(mean, peak), np.maximum(mean, peak)
    spread = 12.0 * np.sqrt(high) + 50.0
    first = np.where(mean < _SUM_ALL_BELOW, 0.0, np.maximum(0.0, np.floor(low - 4.0 * spread)))
    return first, high + spread


def _poisson_sum(term: Any, a: Any, x: Any, means: Any) -> Any:
    """The sum over j of Poisson weights times `term(a + j, x)`."""
    if is_traced_scalar(x):
        return _poisson_sum_natively(term, a, x, means)
    out = np.full(len(a), np.nan)
    for i, mean in enumerate(means):
        if not (mean >= 0 and a[i] > 0 and x[i] >= 0 and np.isfinite(a[i] + mean)):
            continue
        first, last = _range_of_terms(a[i], x[i], mean)
        j = np.arange(first, last)
        weights = np.exp(special.xlogy(j, mean) - mean - special.gammaln(j + 1.0))
        terms = term(a[i] + j, np.full(len(j), x[i]))
        out[i] = np.sum(np.where(weights == 0.0, 0.0, weights * terms))
    return out


def _poisson_sum_natively(term: Any, a: Any, x: Any, means: Any) -> Any:
    """`_poisson_sum` for traced scalars, as a loop over the terms."""
    out = np.full_like(x, np.nan)
    inside = (means >= 0) & (a > 0) & (x >= 0) & np.isfinite(a + means)
    a, x, mean = a[inside], x[inside], means[inside]
    first, last = _range_of_terms(a, x, mean)
    fail_where(
        last - first > _MAX_TERMS, lambda: "the series for this noncentrality has too many terms"
    )

    def step(_: Any, j: Any, total: Any) -> Any:
        weight = np.exp(special.xlogy(j, mean) - mean - special.gammaln(j + 1.0))
        return j + 1.0, total + np.where(weight == 0.0, 0.0, weight * term(a + j, x))

    start = first, np.zeros_like(x)
    out[inside] = repeat(step, start, _MAX_TERMS, lambda j, _: j < last)[1]
    return out


@family(
    native=True,
    oracle=OracleExpression(
        "a x c",
        "diff(lambda a: nsum(lambda j: exp(-c) * c**j / factorial(j) * "
        "gammainc(a + j, 0, x, regularized=True), [0, 60]), a, n)",
    ),
)
def noncentral_gamma(a: Any, x: Any, c: Any, *, n: int) -> Any:
    """The n-th derivative in a of the sum over j of P(a + j, x) with Poisson weights of mean c."""
    if n == 0:
        return _poisson_sum(special.gammainc, a, x, c)
    return _poisson_sum(lambda a, x: gammainc_order.values(a, x, n=n), a, x, c)


@family(
    native=True,
    oracle=OracleExpression(
        "a x c",
        "nsum(lambda j: exp(-c) * c**j / factorial(j) * "
        "gammainc(a + j, x, inf, regularized=True), [0, 60])",
    ),
)
def noncentral_gammac(a: Any, x: Any, c: Any) -> Any:
    """The sum over j of Q(a + j, x) with Poisson weights of mean c."""
    return _poisson_sum(special.gammaincc, a, x, c)


@family(
    native=True,
    oracle=OracleExpression(
        "a x c",
        "diff(lambda a, x: nsum(lambda j: exp(-c) * c**j / factorial(j) * "
        "x**(a + j - 1) * exp(-x) / gamma(a + j), [0, 60]), (a, x), (n, m))",
    ),
)
def noncentral_density(a: Any, x: Any, c: Any, *, n: int, m: int) -> Any:
    """The derivative of d/dx noncentral_gamma(a, x, c, n=0) of orders n in a and m in x."""
    return _poisson_sum(lambda a, x: gamma_density.values(a, x, n=n, m=m), a, x, c)


noncentral_gamma.partials(
    lambda t, out, a, x, c, n: t * noncentral_gamma(a, x, c, n=n + 1),
    lambda t, out, a, x, c, n: t * noncentral_density(a, x, c, n=n, m=0),
    lambda t, out, a, x, c, n: -t * noncentral_density(a + 1.0, x, c, n=n, m=0),
)
noncentral_gammac.partials(
    lambda t, out, a, x, c: -t * noncentral_gamma(a, x, c, n=1),
    lambda t, out, a, x, c: -t * noncentral_density(a, x, c, n=0, m=0),
    lambda t, out, a, x, c: t * noncentral_density(a + 1.0, x, c, n=0, m=0),
)
noncentral_density.partials(
    lambda t, out, a, x, c, n, m: t * noncentral_density(a, x, c, n=n + 1, m=m),
    lambda t, out, a, x, c, n, m: t * noncentral_density(a, x, c, n=n, m=m + 1),
    lambda t, out, a, x, c, n, m: -t * noncentral_density(a + 1.0, x, c, n=n, m=m + 1),
)


def _operands(rng: Any) -> Any:
    return rng.uniform(0.4, 3.0, size=2), rng.uniform(0.4, 3.0), rng.uniform(0.3, 2.0)


@noncentral_gamma.examples
def _orders(rng: Any) -> Any:
    yield _operands(rng), {"n": 1}


@noncentral_gammac.examples
def _complements(rng: Any) -> Any:
    yield _operands(rng), {}


@noncentral_density.examples
def _densities(rng: Any) -> Any:
    yield _operands(rng), {"n": 0, "m": 1}


# ---- chi-square ----------------------------------------------------------------------------------


def _by_x(x: Any, df: Any, nc: Any) -> Any:
    return 0.5 * noncentral_density(0.5 * df, 0.5 * x, 0.5 * nc, n=0, m=0)


def _by_df(x: Any, df: Any, nc: Any) -> Any:
    return 0.5 * noncentral_gamma(0.5 * df, 0.5 * x, 0.5 * nc, n=1)


def _by_nc(x: Any, df: Any, nc: Any) -> Any:
    return -0.5 * noncentral_density(0.5 * df + 1.0, 0.5 * x, 0.5 * nc, n=0, m=0)


chndtr = sampled_function(
    "chndtr",
    "x df nc",
    "Noncentral chi-square distribution function with df degrees of freedom.",
    OracleExpression(
        "x df nc",
        "nsum(lambda j: exp(-nc / 2) * (nc / 2)**j / factorial(j) * "
        "gammainc(df / 2 + j, 0, x / 2, regularized=True), [0, 60])",
    ),
    [_RANGE, _RANGE, _RANGE],
)
chndtr.partials(
    lambda t, out, x, df, nc: t * _by_x(x, df, nc),
    lambda t, out, x, df, nc: t * _by_df(x, df, nc),
    lambda t, out, x, df, nc: t * _by_nc(x, df, nc),
)


def _solve_for(index: int, low: float, high: float) -> Any:
    """The argument number `index` for which chndtr has a given value, by brentq."""

    def solve(*given: float) -> float:
        def residual(y: float) -> float:
            arguments = list(given)
            arguments[index] = y
            return float(special.chndtr(*arguments)) - given[index]

        return float(scipy.optimize.brentq(residual, low, high, xtol=1e-14, rtol=1e-14))

    return np.vectorize(solve)


chndtrix = sampled_function(
    "chndtrix",
    "p df nc",
    "The x at which chndtr(x, df, nc) is p.",
    _solve_for(0, 1e-12, 1e3),
    [_CENTRAL, _RANGE, _RANGE],
)
chndtrix.partials(*inverse_partials(0, _by_x, _by_df, _by_nc))
chndtridf = sampled_function(
    "chndtridf",
    "x p nc",
    "The df at which chndtr(x, df, nc) is p.",
    _solve_for(1, 1e-6, 1e3),
    [_RANGE, (0.15, 0.4), (0.6, 1.5)],  # a larger nc allows no p above exp(-nc / 2) for small x
)
chndtridf.partials(*inverse_partials(1, _by_x, _by_df, _by_nc, ends=_SOLUTIONS))
chndtrinc = sampled_function(
    "chndtrinc",
    "x df p",
    "The nc at which chndtr(x, df, nc) is p.",
    _solve_for(2, 0.0, 1e3),
    [(3.0, 5.0), (0.6, 1.5), (0.15, 0.4)],
)
chndtrinc.partials(*inverse_partials(2, _by_x, _by_df, _by_nc, ends=_SOLUTIONS))
