"""The binomial and negative binomial distributions, differentiable w.r.t. p: DLMF 8.17.

    bdtr bdtrc bdtri        binomial distribution function, its complement, and its inverse
    nbdtr nbdtrc nbdtri     the same of the negative binomial distribution

The counts k and n are rounded down, as in SciPy, and are not differentiable.  SciPy's ufuncs have
loops for integer n and for floats, of which the latter warn; here the integer loop is always
used, in double precision, so that the dtype of p does not select the loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .derivative_families import family
from .incomplete_beta import beta_density
from .oracle_expression import OracleExpression

__all__ = "bdtr bdtrc bdtri nbdtr nbdtrc nbdtri".split()

_BINOMIAL = "betainc(floor(k) + 1, n - floor(k), 0, p, regularized=True)"
_NEGATIVE = "betainc(n, k + 1, 0, p, regularized=True)"


def _beta_density(a: Any, b: Any, p: Any) -> Any:
    return beta_density(a * 1.0, b * 1.0, p, j=0, k=0, m=0)


def _bdtrc_derivative(k: Any, n: Any, p: Any) -> Any:
    """The derivative of bdtrc with respect to p."""
    return _beta_density(np.floor(k) + 1.0, np.floor(n) - np.floor(k), p)


def _nbdtr_derivative(k: Any, n: Any, p: Any) -> Any:
    """The derivative of nbdtr with respect to p."""
    return _beta_density(np.floor(n), np.floor(k) + 1.0, p)


@family(native=True, oracle=OracleExpression("k n p", f"1 - {_BINOMIAL}"))
def bdtr(k: Any, n: Any, p: Any) -> Any:
    """Binomial distribution function I_{1-p}(n - k, k + 1), DLMF 8.17.5."""
    return special.bdtr(k, n.astype(int), p)


@family(native=True, oracle=OracleExpression("k n p", _BINOMIAL))
def bdtrc(k: Any, n: Any, p: Any) -> Any:
    """1 - bdtr(k, n, p), which is I_p(k + 1, n - k)."""
    return special.bdtrc(k, n.astype(int), p)


@family(
    native=True,
    oracle=lambda k, n, y: special.betaincinv(np.floor(k) + 1.0, n - np.floor(k), 1.0 - y),
)
def bdtri(k: Any, n: Any, y: Any) -> Any:
    """The p at which bdtr(k, n, p) is y."""
    return special.bdtri(k, n.astype(int), y)


@family(native=True, oracle=OracleExpression("k n p", _NEGATIVE))
def nbdtr(k: Any, n: Any, p: Any) -> Any:
    """Negative binomial distribution function I_p(n, k + 1), DLMF 8.17.5."""
    return special.nbdtr(k.astype(int), n.astype(int), p)


@family(native=True, oracle=OracleExpression("k n p", f"1 - {_NEGATIVE}"))
def nbdtrc(k: Any, n: Any, p: Any) -> Any:
    """1 - nbdtr(k, n, p)."""
    return special.nbdtrc(k.astype(int), n.astype(int), p)


@family(native=True, oracle=lambda k, n, y: special.betaincinv(n * 1.0, k + 1.0, y))
def nbdtri(k: Any, n: Any, y: Any) -> Any:
    """The p at which nbdtr(k, n, p) is y."""
    return special.nbdtri(k.astype(int), n.astype(int), y)


bdtr.partials(None, None, lambda t, out, k, n, p: -t * _bdtrc_derivative(k, n, p))
bdtrc.partials(None, None, lambda t, out, k, n, p: t * _bdtrc_derivative(k, n, p))
bdtri.partials(None, None, lambda t, out, k, n, y: -t / _bdtrc_derivative(k, n, out))
nbdtr.partials(None, None, lambda t, out, k, n, p: t * _nbdtr_derivative(k, n, p))
nbdtrc.partials(None, None, lambda t, out, k, n, p: -t * _nbdtr_derivative(k, n, p))
nbdtri.partials(None, None, lambda t, out, k, n, y: t / _nbdtr_derivative(k, n, out))


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
