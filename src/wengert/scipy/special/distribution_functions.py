"""Distribution functions based on incomplete gamma and beta functions: DLMF 8.

    chdtr chdtrc chdtri                chi-square distribution
    gdtr gdtrc gdtrix gdtria gdtrib    gamma distribution with rate a and shape b
    pdtr pdtrc pdtri                   Poisson distribution
    fdtr fdtrc fdtri                   F distribution
    btdtria btdtrib                    parameters of the beta distribution
    bdtr bdtrc bdtri                   binomial distribution function, its complement, and its
                                       inverse
    nbdtr nbdtrc nbdtri                the same of the negative binomial distribution

Names end with c for the complementary function and with i for an inverse, followed by the argument
that is solved for.  All are differentiable with respect to real arguments; inverses by the implicit
function theorem.

The counts k and n are rounded down, as in SciPy, and are not differentiable.  SciPy's ufuncs have
loops for integer n and for floats, of which the latter warn; here the integer loop is always
used, in double precision, so that the dtype of p does not select the loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .incomplete_beta import beta_density, betainc_orders
from .incomplete_gamma import gamma_density, gammainc_order
from .register import OracleExpression, family, inverse_partials, sampled_function

__all__ = """
    chdtr chdtrc chdtri gdtr gdtrc gdtrix gdtria gdtrib pdtr pdtrc pdtri fdtr fdtrc fdtri
    btdtria btdtrib bdtr bdtrc bdtri nbdtr nbdtrc nbdtri
""".split()


_COUNT = (0, 4)
_RANGE = (0.6, 3.0)
_CENTRAL = (0.15, 0.85)


def _gamma_density(a: Any, x: Any) -> Any:
    """The derivative of P(a, x) with respect to x."""
    return gamma_density(a, x, n=0, m=0)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b) with respect to x."""
    return beta_density(a, b, x, j=0, k=0, m=0)


# ---- chi-square ----------------------------------------------------------------------------------

_CHI = "gammainc(v / 2, 0, x / 2, regularized=True)"
chdtr = sampled_function("chdtr", "v x", "P(v/2, x/2), DLMF 8.2.4.", _CHI, [_RANGE, _RANGE])
chdtrc = sampled_function(
    "chdtrc", "v x", "Q(v/2, x/2), DLMF 8.2.4.", f"1 - {_CHI}", [_RANGE, _RANGE]
)
chdtr.partials(
    lambda t, out, v, x: 0.5 * t * gammainc_order(0.5 * v, 0.5 * x, n=1),
    lambda t, out, v, x: 0.5 * t * _gamma_density(0.5 * v, 0.5 * x),
)
chdtrc.partials(
    lambda t, out, v, x: -0.5 * t * gammainc_order(0.5 * v, 0.5 * x, n=1),
    lambda t, out, v, x: -0.5 * t * _gamma_density(0.5 * v, 0.5 * x),
)
chdtri = sampled_function(
    "chdtri",
    "v p",
    "The x at which Q(v/2, x/2) is p.",
    lambda v, p: 2.0 * special.gammaincinv(0.5 * v, 1.0 - p),
    [_RANGE, _CENTRAL],
)


def _zero_at_zero(out: Any, partial: Any) -> Any:
    """The partial of an inverse with respect to a parameter: 0 where the inverse is x = 0."""
    return np.where(out == 0.0, 0.0, partial)


chdtri.partials(
    lambda t, out, v, p: _zero_at_zero(
        out, -t * gammainc_order(0.5 * v, 0.5 * out, n=1) / _gamma_density(0.5 * v, 0.5 * out)
    ),
    lambda t, out, v, p: -2.0 * t / _gamma_density(0.5 * v, 0.5 * out),
)

# ---- gamma ---------------------------------------------------------------------------------------

_GAMMA = "gammainc(b, 0, a * x, regularized=True)"
gdtr = sampled_function("gdtr", "a b x", "P(b, a x), DLMF 8.2.4.", _GAMMA, [_RANGE] * 3)
gdtrc = sampled_function("gdtrc", "a b x", "Q(b, a x), DLMF 8.2.4.", f"1 - {_GAMMA}", [_RANGE] * 3)
for _op, _sign in ((gdtr, 1.0), (gdtrc, -1.0)):
    _op.partials(
        lambda t, out, a, b, x, s=_sign: s * t * (x * _gamma_density(b, a * x)),
        lambda t, out, a, b, x, s=_sign: s * t * gammainc_order(b, a * x, n=1),
        lambda t, out, a, b, x, s=_sign: s * t * (a * _gamma_density(b, a * x)),
    )
gdtrix = sampled_function(
    "gdtrix",
    "a b p",
    "The x at which P(b, a x) is p.",
    lambda a, b, p: special.gammaincinv(b, p) / a,
    [_RANGE, _RANGE, _CENTRAL],
)
gdtrix.partials(
    lambda t, out, a, b, p: -t * (out / a),
    lambda t, out, a, b, p: _zero_at_zero(
        out, -t * gammainc_order(b, a * out, n=1) / (a * _gamma_density(b, a * out))
    ),
    lambda t, out, a, b, p: t / (a * _gamma_density(b, a * out)),
)
gdtria = sampled_function(
    "gdtria",
    "p b x",
    "The a at which P(b, a x) is p.",
    lambda p, b, x: special.gammaincinv(b, p) / x,
    [_CENTRAL, _RANGE, _RANGE],
)
gdtria.partials(
    lambda t, out, p, b, x: t / (x * _gamma_density(b, out * x)),
    lambda t, out, p, b, x: _zero_at_zero(
        out, -t * gammainc_order(b, out * x, n=1) / (x * _gamma_density(b, out * x))
    ),
    lambda t, out, p, b, x: -t * (out / x),
)
gdtrib = sampled_function(
    "gdtrib",
    "a p x",
    "The b at which P(b, a x) is p.",
    lambda a, p, x: special.gdtrib(a, special.gdtr(a, special.gdtrib(a, p, x), x), x),
    [_RANGE, _CENTRAL, _RANGE],
)
gdtrib.partials(
    *inverse_partials(
        1,
        lambda a, b, x: x * _gamma_density(b, a * x),
        lambda a, b, x: gammainc_order(b, a * x, n=1),
        lambda a, b, x: a * _gamma_density(b, a * x),
    )
)

# ---- Poisson -------------------------------------------------------------------------------------

_POISSON = "gammainc(k + 1, m, inf, regularized=True)"
pdtr = sampled_function(
    "pdtr", "k m", "Q(floor(k) + 1, m), DLMF 8.2.4.", _POISSON, [(0, 4), _RANGE]
)
pdtrc = sampled_function("pdtrc", "k m", "P(floor(k) + 1, m).", f"1 - {_POISSON}", [(0, 4), _RANGE])
pdtr.partials(None, lambda t, out, k, m: -t * _gamma_density(np.floor(k) + 1.0, m))
pdtrc.partials(None, lambda t, out, k, m: t * _gamma_density(np.floor(k) + 1.0, m))
pdtri = sampled_function(
    "pdtri",
    "k y",
    "The m at which pdtr(k, m) is y.",
    lambda k, y: special.gammaincinv(k + 1.0, 1.0 - y),
    [(0, 4), _CENTRAL],
)
pdtri.partials(None, lambda t, out, k, y: -t / _gamma_density(np.floor(k) + 1.0, out))

# ---- F -------------------------------------------------------------------------------------------


def _f_partials(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """The partials of fdtr = I_y(a/2, b/2), y = a x / (a x + b), w.r.t. a, b and x; and a x + b.

    Where y > 1/2, a, b and y are exchanged with b, a and 1 - y, which is computed without
    cancellation.
    """
    s = a * x + b
    low = a * x < b
    y = np.where(low, a * x, b) / s
    first, second = np.where(low, a, b) * 0.5, np.where(low, b, a) * 0.5
    by_first = betainc_orders(first, second, y, j=1, k=0)
    by_second = betainc_orders(first, second, y, j=0, k=1)
    density = _beta_density(first, second, y)
    by_a = np.where(low, by_first, -by_second)
    by_b = np.where(low, by_second, -by_first)
    # dy/da = b x / s^2, dy/db = -a x / s^2, dy/dx = a b / s^2
    return (
        0.5 * by_a + density * (b * x / (s * s)),
        0.5 * by_b - density * (a * x / (s * s)),
        density * (a * b / (s * s)),
        s,
    )


_F = "betainc(a / 2, b / 2, 0, a * x / (a * x + b), regularized=True)"
fdtr = sampled_function(
    "fdtr", "a b x", "I(a/2, b/2) of a x / (a x + b), DLMF 8.17.2.", _F, [_RANGE] * 3
)
fdtrc = sampled_function("fdtrc", "a b x", "1 - fdtr(a, b, x).", f"1 - {_F}", [_RANGE] * 3)
for _op, _sign in ((fdtr, 1.0), (fdtrc, -1.0)):
    _op.partials(
        lambda t, out, a, b, x, s=_sign: s * t * _f_partials(a, b, x)[0],
        lambda t, out, a, b, x, s=_sign: s * t * _f_partials(a, b, x)[1],
        lambda t, out, a, b, x, s=_sign: s * t * _f_partials(a, b, x)[2],
    )


def _f_inverse(a: Any, b: Any, p: Any) -> Any:
    y = special.betaincinv(0.5 * a, 0.5 * b, p)
    return b * y / (a * (1.0 - y))


def _fdtri_partial(t: Any, out: Any, a: Any, b: Any, operand: int) -> Any:
    parts = _f_partials(a, b, out)
    return _zero_at_zero(out, -t * parts[operand] / parts[2])


fdtri = sampled_function(
    "fdtri", "a b p", "The x at which fdtr(a, b, x) is p.", _f_inverse, [_RANGE, _RANGE, _CENTRAL]
)
fdtri.partials(
    lambda t, out, a, b, p: _fdtri_partial(t, out, a, b, 0),
    lambda t, out, a, b, p: _fdtri_partial(t, out, a, b, 1),
    lambda t, out, a, b, p: t / _f_partials(a, b, out)[2],
)

# ---- parameters of the beta distribution ---------------------------------------------------------


_BETA = (
    lambda a, b, x: betainc_orders(a, b, x, j=1, k=0),
    lambda a, b, x: betainc_orders(a, b, x, j=0, k=1),
    _beta_density,
)
btdtria = sampled_function(
    "btdtria",
    "p b x",
    "The a at which I_x(a, b) is p.",
    lambda p, b, x: special.btdtria(special.betainc(special.btdtria(p, b, x), b, x), b, x),
    [_CENTRAL, _RANGE, _CENTRAL],
)
btdtria.partials(*inverse_partials(0, *_BETA))
btdtrib = sampled_function(
    "btdtrib",
    "a p x",
    "The b at which I_x(a, b) is p.",
    lambda a, p, x: special.btdtrib(a, special.betainc(a, special.btdtrib(a, p, x), x), x),
    [_RANGE, _CENTRAL, _CENTRAL],
)
btdtrib.partials(*inverse_partials(1, *_BETA))


_BINOMIAL = "betainc(floor(k) + 1, n - floor(k), 0, p, regularized=True)"
_NEGATIVE = "betainc(n, k + 1, 0, p, regularized=True)"


def _binomial_density(a: Any, b: Any, p: Any) -> Any:
    return beta_density(a * 1.0, b * 1.0, p, j=0, k=0, m=0)


def _bdtrc_derivative(k: Any, n: Any, p: Any) -> Any:
    """The derivative of bdtrc with respect to p."""
    return _binomial_density(np.floor(k) + 1.0, np.floor(n) - np.floor(k), p)


def _nbdtr_derivative(k: Any, n: Any, p: Any) -> Any:
    """The derivative of nbdtr with respect to p."""
    return _binomial_density(np.floor(n), np.floor(k) + 1.0, p)


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
