"""The binomial and negative binomial distributions, differentiable in the probability: DLMF 8.17.

    bdtr bdtrc bdtri        the binomial distribution, its complement, the p of a given value
    nbdtr nbdtrc nbdtri     the negative binomial

The counts k and n are rounded down, as SciPy does, and have no derivative.  SciPy's ufuncs have
loops for whole n beside those for floats, which warn, so that the dtype of p does not decide which
is taken; here it is always that for whole n, in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .derivative_families import family
from .incomplete_beta import beta_density
from .oracle_expression import Witness

__all__ = "bdtr bdtrc bdtri nbdtr nbdtrc nbdtri".split()

_BINOMIAL = "betainc(floor(k) + 1, n - floor(k), 0, p, regularized=True)"
_NEGATIVE = "betainc(n, k + 1, 0, p, regularized=True)"


def _slope(a: Any, b: Any, p: Any) -> Any:
    return beta_density(a * 1.0, b * 1.0, p, j=0, k=0, m=0)


def _binomial(k: Any, n: Any, p: Any) -> Any:
    """The slope of the complement by p."""
    return _slope(np.floor(k) + 1.0, np.floor(n) - np.floor(k), p)


def _negative(k: Any, n: Any, p: Any) -> Any:
    return _slope(np.floor(n), np.floor(k) + 1.0, p)


@family(native=True, oracle=Witness("k n p", f"1 - {_BINOMIAL}"))
def bdtr(k: Any, n: Any, p: Any) -> Any:
    """I(n - k, k + 1) of 1 - p, DLMF 8.17.5; by p: minus the density of the beta distribution."""
    return special.bdtr(k, n.astype(int), p)


@family(native=True, oracle=Witness("k n p", _BINOMIAL))
def bdtrc(k: Any, n: Any, p: Any) -> Any:
    """I(k + 1, n - k) of p, 1 - bdtr(k, n, p)."""
    return special.bdtrc(k, n.astype(int), p)


@family(
    native=True,
    oracle=lambda k, n, y: special.betaincinv(np.floor(k) + 1.0, n - np.floor(k), 1.0 - y),
)
def bdtri(k: Any, n: Any, y: Any) -> Any:
    """The p at which bdtr(k, n, p) is y."""
    return special.bdtri(k, n.astype(int), y)


@family(native=True, oracle=Witness("k n p", _NEGATIVE))
def nbdtr(k: Any, n: Any, p: Any) -> Any:
    """I(n, k + 1) of p, DLMF 8.17.5; by p: the density of the beta distribution."""
    return special.nbdtr(k.astype(int), n.astype(int), p)


@family(native=True, oracle=Witness("k n p", f"1 - {_NEGATIVE}"))
def nbdtrc(k: Any, n: Any, p: Any) -> Any:
    """1 - nbdtr(k, n, p)."""
    return special.nbdtrc(k.astype(int), n.astype(int), p)


@family(native=True, oracle=lambda k, n, y: special.betaincinv(n * 1.0, k + 1.0, y))
def nbdtri(k: Any, n: Any, y: Any) -> Any:
    """The p at which nbdtr(k, n, p) is y."""
    return special.nbdtri(k.astype(int), n.astype(int), y)


bdtr.partials(None, None, lambda t, out, k, n, p: -t * _binomial(k, n, p))
bdtrc.partials(None, None, lambda t, out, k, n, p: t * _binomial(k, n, p))
bdtri.partials(None, None, lambda t, out, k, n, y: -t / _binomial(k, n, out))
nbdtr.partials(None, None, lambda t, out, k, n, p: t * _negative(k, n, p))
nbdtrc.partials(None, None, lambda t, out, k, n, p: -t * _negative(k, n, p))
nbdtri.partials(None, None, lambda t, out, k, n, y: t / _negative(k, n, out))


@bdtr.examples
@bdtrc.examples
@bdtri.examples
def _counts(rng: Any) -> Any:
    yield (rng.integers(0, 4, size=2), rng.integers(4, 8, size=2), rng.uniform(0.2, 0.8)), {}


@nbdtr.examples
@nbdtrc.examples
@nbdtri.examples
def _failures(rng: Any) -> Any:
    yield (rng.integers(0, 4, size=2), rng.integers(1, 5, size=2), rng.uniform(0.2, 0.8)), {}
