"""The noncentral chi-square distribution, differentiable in all arguments: DLMF 8.2, 13.6(v).

    chndtr                         its distribution function
    chndtrix chndtridf chndtrinc   its inverses: the point, degrees of freedom, noncentrality
    noncentral_gamma               Poisson's weights of c times P(a + j, x), summed over j, and its
                                   derivatives with respect to a, a family; chndtr is that of halves
    noncentral_gammac              the complement, with the digits of its tail
    noncentral_density             the derivative with respect to x, a family

A change of c moves weight from each j to the next, and P(a, x) - P(a + 1, x) is the gamma
distribution's density of a + 1 (DLMF 8.8.5): the derivative in c is minus the density of a + 1, and
nothing cancels.  M. Figurnov, S. Mohamed, A. Mnih (2018) for the derivative with respect to a of P.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.optimize is loaded when the laws ask
from scipy import special

from .derivative_families import family
from .incomplete_gamma import gamma_density, gammainc_order
from .oracle_expression import Witness
from .register import inverse_partials, sampled_function
from .traced_loops import is_element, refuse, repeat

__all__ = "chndtr chndtrix chndtridf chndtrinc".split()

_FROM_NOUGHT = 4000.0  # of smaller c all terms are added up, so that tails keep their digits
_TERMS = 200_000
_SOME = (0.6, 3.0)
_MIDDLE = (0.15, 0.85)


def _reach(a: Any, x: Any, size: Any) -> tuple[Any, Any]:
    """The first and the last term: about Poisson's mean, and about the largest term of a tail."""
    whole = a + size
    x = np.minimum(x, whole + 60.0 * np.sqrt(whole) + 1000.0)  # beyond all terms underflow
    peak = 0.5 * (np.sqrt(a * a + 4.0 * size * x) - a)  # of size^j / j! x^(a + j) / gamma(a + j)
    low, high = np.minimum(size, peak), np.maximum(size, peak)
    spread = 12.0 * np.sqrt(high) + 50.0
    first = np.where(size < _FROM_NOUGHT, 0.0, np.maximum(0.0, np.floor(low - 4.0 * spread)))
    return first, high + spread


def _summed(term: Any, a: Any, x: Any, scale: Any) -> Any:
    """The sum over j of Poisson's weights times `term(a + j, x)`."""
    if is_element(x):
        return _summed_natively(term, a, x, scale)
    out = np.full(len(a), np.nan)
    for i, size in enumerate(scale):
        if not (size >= 0 and a[i] > 0 and x[i] >= 0 and np.isfinite(a[i] + size)):
            continue
        first, last = _reach(a[i], x[i], size)
        j = np.arange(first, last)
        weights = np.exp(special.xlogy(j, size) - size - special.gammaln(j + 1.0))
        terms = term(a[i] + j, np.full(len(j), x[i]))
        out[i] = np.sum(np.where(weights == 0.0, 0.0, weights * terms))
    return out


def _summed_natively(term: Any, a: Any, x: Any, scale: Any) -> Any:
    """The same for the elements of native code, one term after the other."""
    out = np.full_like(x, np.nan)
    inside = (scale >= 0) & (a > 0) & (x >= 0) & np.isfinite(a + scale)
    a, x, size = a[inside], x[inside], scale[inside]
    first, last = _reach(a, x, size)
    refuse(last - first > _TERMS, lambda: "a noncentrality of too many terms")

    def step(_: Any, j: Any, total: Any) -> Any:
        weight = np.exp(special.xlogy(j, size) - size - special.gammaln(j + 1.0))
        return j + 1.0, total + np.where(weight == 0.0, 0.0, weight * term(a + j, x))

    start = first, np.zeros_like(x)
    out[inside] = repeat(step, start, _TERMS, lambda j, _: j < last)[1]
    return out


@family(
    native=True,
    oracle=Witness(
        "a x c",
        "diff(lambda a: nsum(lambda j: exp(-c) * c**j / factorial(j) * "
        "gammainc(a + j, 0, x, regularized=True), [0, 60]), a, n)",
    ),
)
def noncentral_gamma(a: Any, x: Any, c: Any, *, n: int) -> Any:
    """The derivative of order n by a of the sum of Poisson's weights of c times P(a + j, x)."""
    if n == 0:
        return _summed(special.gammainc, a, x, c)
    return _summed(lambda a, x: gammainc_order.values(a, x, n=n), a, x, c)


@family(
    native=True,
    oracle=Witness(
        "a x c",
        "nsum(lambda j: exp(-c) * c**j / factorial(j) * "
        "gammainc(a + j, x, inf, regularized=True), [0, 60])",
    ),
)
def noncentral_gammac(a: Any, x: Any, c: Any) -> Any:
    """The sum of Poisson's weights of c times Q(a + j, x)."""
    return _summed(special.gammaincc, a, x, c)


@family(
    native=True,
    oracle=Witness(
        "a x c",
        "diff(lambda a, x: nsum(lambda j: exp(-c) * c**j / factorial(j) * "
        "x**(a + j - 1) * exp(-x) / gamma(a + j), [0, 60]), (a, x), (n, m))",
    ),
)
def noncentral_density(a: Any, x: Any, c: Any, *, n: int, m: int) -> Any:
    """The derivative, n times by a and m times by x, of the slope of noncentral_gamma by x."""
    return _summed(lambda a, x: gamma_density.values(a, x, n=n, m=m), a, x, c)


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
    "The noncentral chi-square distribution function of x, of df degrees of freedom.",
    Witness(
        "x df nc",
        "nsum(lambda j: exp(-nc / 2) * (nc / 2)**j / factorial(j) * "
        "gammainc(df / 2 + j, 0, x / 2, regularized=True), [0, 60])",
    ),
    [_SOME, _SOME, _SOME],
)
chndtr.partials(
    lambda t, out, x, df, nc: t * _by_x(x, df, nc),
    lambda t, out, x, df, nc: t * _by_df(x, df, nc),
    lambda t, out, x, df, nc: t * _by_nc(x, df, nc),
)


def _solved(place: int, low: float, high: float) -> Any:
    """The argument at which chndtr has a value, found by halving intervals."""

    def one(*given: float) -> float:
        def off(y: float) -> float:
            known = list(given)
            known[place] = y
            return float(special.chndtr(*known)) - given[place]

        return float(scipy.optimize.brentq(off, low, high, xtol=1e-14, rtol=1e-14))

    return np.vectorize(one)


chndtrix = sampled_function(
    "chndtrix",
    "p df nc",
    "The x at which chndtr(x, df, nc) is p.",
    _solved(0, 1e-12, 1e3),
    [_MIDDLE, _SOME, _SOME],
)
chndtrix.partials(*inverse_partials(0, _by_x, _by_df, _by_nc))
chndtridf = sampled_function(
    "chndtridf",
    "x p nc",
    "The df at which chndtr(x, df, nc) is p.",
    _solved(1, 1e-6, 1e3),
    [_SOME, (0.15, 0.4), _SOME],
)
chndtridf.partials(*inverse_partials(1, _by_x, _by_df, _by_nc))
chndtrinc = sampled_function(
    "chndtrinc",
    "x df p",
    "The nc at which chndtr(x, df, nc) is p.",
    _solved(2, 0.0, 1e3),
    [(3.0, 5.0), (0.6, 1.5), (0.15, 0.4)],
)
chndtrinc.partials(*inverse_partials(2, _by_x, _by_df, _by_nc))
