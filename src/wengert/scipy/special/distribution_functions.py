"""Distribution functions based on incomplete gamma and beta functions: DLMF 8.

    chdtr chdtrc chdtri            the chi-square distribution
    gdtr gdtrc gdtrix gdtria gdtrib    the gamma distribution, of rate a and shape b
    pdtr pdtrc pdtri               Poisson's
    fdtr fdtrc fdtri               F
    btdtria btdtrib                parameters of the beta distribution

The name ends with c for the complement, with i and what follows for an inverse: what has to be put
there for a given probability.  All differentiate in their real arguments, inverses by the implicit
function theorem; a count (k) is rounded down, so that it has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .incomplete_beta import beta_density, betainc_orders
from .incomplete_gamma import gamma_density, gammainc_order
from .register import inverse_partials, sampled_function

__all__ = """
    chdtr chdtrc chdtri gdtr gdtrc gdtrix gdtria gdtrib pdtr pdtrc pdtri
    fdtr fdtrc fdtri btdtria btdtrib
""".split()

_SHARE = (0.0, 1.0)
_COUNT = (0, 4)
_SOME = (0.6, 3.0)
_MIDDLE = (0.15, 0.85)


def _slope(a: Any, x: Any) -> Any:
    """The slope of P(a, x)."""
    return gamma_density(a, x, n=0, m=0)


def _share(a: Any, b: Any, x: Any) -> Any:
    """The slope of I_x(a, b)."""
    return beta_density(a, b, x, j=0, k=0, m=0)


# ---- chi-square ----------------------------------------------------------------------------------

_CHI = "gammainc(v / 2, 0, x / 2, regularized=True)"
chdtr = sampled_function("chdtr", "v x", "P(v/2, x/2), DLMF 8.2.4.", _CHI, [_SOME, _SOME])
chdtrc = sampled_function(
    "chdtrc", "v x", "Q(v/2, x/2), DLMF 8.2.4.", f"1 - {_CHI}", [_SOME, _SOME]
)
chdtr.partials(
    lambda t, out, v, x: 0.5 * t * gammainc_order(0.5 * v, 0.5 * x, n=1),
    lambda t, out, v, x: 0.5 * t * _slope(0.5 * v, 0.5 * x),
)
chdtrc.partials(
    lambda t, out, v, x: -0.5 * t * gammainc_order(0.5 * v, 0.5 * x, n=1),
    lambda t, out, v, x: -0.5 * t * _slope(0.5 * v, 0.5 * x),
)
chdtri = sampled_function(
    "chdtri",
    "v p",
    "The x at which Q(v/2, x/2) is p.",
    lambda v, p: 2.0 * special.gammaincinv(0.5 * v, 1.0 - p),
    [_SOME, _MIDDLE],
)


def _at_end(out: Any, moved: Any) -> Any:
    """How an inverse moves with a parameter; at x = 0 it stays."""
    return np.where(out == 0.0, 0.0, moved)


chdtri.partials(
    lambda t, out, v, p: _at_end(
        out, -t * gammainc_order(0.5 * v, 0.5 * out, n=1) / _slope(0.5 * v, 0.5 * out)
    ),
    lambda t, out, v, p: -2.0 * t / _slope(0.5 * v, 0.5 * out),
)

# ---- gamma ---------------------------------------------------------------------------------------

_GAMMA = "gammainc(b, 0, a * x, regularized=True)"
gdtr = sampled_function("gdtr", "a b x", "P(b, a x), DLMF 8.2.4.", _GAMMA, [_SOME] * 3)
gdtrc = sampled_function("gdtrc", "a b x", "Q(b, a x), DLMF 8.2.4.", f"1 - {_GAMMA}", [_SOME] * 3)
for _op, _sign in ((gdtr, 1.0), (gdtrc, -1.0)):
    _op.partials(
        lambda t, out, a, b, x, s=_sign: s * t * (x * _slope(b, a * x)),
        lambda t, out, a, b, x, s=_sign: s * t * gammainc_order(b, a * x, n=1),
        lambda t, out, a, b, x, s=_sign: s * t * (a * _slope(b, a * x)),
    )
gdtrix = sampled_function(
    "gdtrix",
    "a b p",
    "The x at which P(b, a x) is p.",
    lambda a, b, p: special.gammaincinv(b, p) / a,
    [_SOME, _SOME, _MIDDLE],
)
gdtrix.partials(
    lambda t, out, a, b, p: -t * (out / a),
    lambda t, out, a, b, p: _at_end(
        out, -t * gammainc_order(b, a * out, n=1) / (a * _slope(b, a * out))
    ),
    lambda t, out, a, b, p: t / (a * _slope(b, a * out)),
)
gdtria = sampled_function(
    "gdtria",
    "p b x",
    "The a at which P(b, a x) is p.",
    lambda p, b, x: special.gammaincinv(b, p) / x,
    [_MIDDLE, _SOME, _SOME],
)
gdtria.partials(
    lambda t, out, p, b, x: t / (x * _slope(b, out * x)),
    lambda t, out, p, b, x: _at_end(
        out, -t * gammainc_order(b, out * x, n=1) / (x * _slope(b, out * x))
    ),
    lambda t, out, p, b, x: -t * (out / x),
)
gdtrib = sampled_function(
    "gdtrib",
    "a p x",
    "The b at which P(b, a x) is p.",
    lambda a, p, x: special.gdtrib(a, special.gdtr(a, special.gdtrib(a, p, x), x), x),
    [_SOME, _MIDDLE, _SOME],
)
gdtrib.partials(
    *inverse_partials(
        1,
        lambda a, b, x: x * _slope(b, a * x),
        lambda a, b, x: gammainc_order(b, a * x, n=1),
        lambda a, b, x: a * _slope(b, a * x),
    )
)

# ---- Poisson -------------------------------------------------------------------------------------

_POISSON = "gammainc(k + 1, m, inf, regularized=True)"
pdtr = sampled_function("pdtr", "k m", "Q(floor(k) + 1, m), DLMF 8.2.4.", _POISSON, [(0, 4), _SOME])
pdtrc = sampled_function("pdtrc", "k m", "P(floor(k) + 1, m).", f"1 - {_POISSON}", [(0, 4), _SOME])
pdtr.partials(None, lambda t, out, k, m: -t * _slope(np.floor(k) + 1.0, m))
pdtrc.partials(None, lambda t, out, k, m: t * _slope(np.floor(k) + 1.0, m))
pdtri = sampled_function(
    "pdtri",
    "k y",
    "The m at which pdtr(k, m) is y.",
    lambda k, y: special.gammaincinv(k + 1.0, 1.0 - y),
    [(0, 4), _MIDDLE],
)
pdtri.partials(None, lambda t, out, k, y: -t / _slope(np.floor(k) + 1.0, out))

# ---- F -------------------------------------------------------------------------------------------


def _parts(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """By a, by b and by x of F, as they come from I_y(a/2, b/2), y = a x / (a x + b); and a x + b.

    y and 1 - y change places where y is close to 1, as its complement would lose its digits.
    """
    s = a * x + b
    low = a * x < b
    y = np.where(low, a * x, b) / s
    first, second = np.where(low, a, b) * 0.5, np.where(low, b, a) * 0.5
    by_first = betainc_orders(first, second, y, j=1, k=0)
    by_second = betainc_orders(first, second, y, j=0, k=1)
    share = _share(first, second, y)
    by_a = np.where(low, by_first, -by_second)
    by_b = np.where(low, by_second, -by_first)
    # y by a is b x / s^2, by b - a x / s^2, by x a b / s^2
    return (
        0.5 * by_a + share * (b * x / (s * s)),
        0.5 * by_b - share * (a * x / (s * s)),
        share * (a * b / (s * s)),
        s,
    )


_F = "betainc(a / 2, b / 2, 0, a * x / (a * x + b), regularized=True)"
fdtr = sampled_function(
    "fdtr", "a b x", "I(a/2, b/2) of a x / (a x + b), DLMF 8.17.2.", _F, [_SOME] * 3
)
fdtrc = sampled_function("fdtrc", "a b x", "1 - fdtr(a, b, x).", f"1 - {_F}", [_SOME] * 3)
for _op, _sign in ((fdtr, 1.0), (fdtrc, -1.0)):
    _op.partials(
        lambda t, out, a, b, x, s=_sign: s * t * _parts(a, b, x)[0],
        lambda t, out, a, b, x, s=_sign: s * t * _parts(a, b, x)[1],
        lambda t, out, a, b, x, s=_sign: s * t * _parts(a, b, x)[2],
    )


def _f_inverse(a: Any, b: Any, p: Any) -> Any:
    y = special.betaincinv(0.5 * a, 0.5 * b, p)
    return b * y / (a * (1.0 - y))


def _moved(t: Any, out: Any, a: Any, b: Any, which: int) -> Any:
    parts = _parts(a, b, out)
    return _at_end(out, -t * parts[which] / parts[2])


fdtri = sampled_function(
    "fdtri", "a b p", "The x at which fdtr(a, b, x) is p.", _f_inverse, [_SOME, _SOME, _MIDDLE]
)
fdtri.partials(
    lambda t, out, a, b, p: _moved(t, out, a, b, 0),
    lambda t, out, a, b, p: _moved(t, out, a, b, 1),
    lambda t, out, a, b, p: t / _parts(a, b, out)[2],
)

# ---- parameters of the beta distribution ---------------------------------------------------------


_BETA = (
    lambda a, b, x: betainc_orders(a, b, x, j=1, k=0),
    lambda a, b, x: betainc_orders(a, b, x, j=0, k=1),
    _share,
)
btdtria = sampled_function(
    "btdtria",
    "p b x",
    "The a at which I_x(a, b) is p.",
    lambda p, b, x: special.btdtria(special.betainc(special.btdtria(p, b, x), b, x), b, x),
    [_MIDDLE, _SOME, _MIDDLE],
)
btdtria.partials(*inverse_partials(0, *_BETA))
btdtrib = sampled_function(
    "btdtrib",
    "a p x",
    "The b at which I_x(a, b) is p.",
    lambda a, p, x: special.btdtrib(a, special.betainc(a, special.btdtrib(a, p, x), x), x),
    [_SOME, _MIDDLE, _MIDDLE],
)
btdtrib.partials(*inverse_partials(1, *_BETA))
