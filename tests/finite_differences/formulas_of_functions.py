"""Formulas in mpmath of functions that are no methods of distributions (formulas.py).

SPECIAL      of scipy.special
SUMMARIES    of scipy.stats, of arrays
"""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import acos, betainc, cos, exp, jacobi, legendre, log, mpf, sin, sqrt
from scipy import optimize, special

from .exact import each


@each
def eval_sh_chebyt(n, x):
    if not 0 <= x <= 1:
        return mpmath.nan
    return cos(n * acos(2 * x - 1))  # DLMF 18.5.1


@each
def eval_sh_chebyu(n, x):
    if not 0 < x < 1:
        return mpmath.nan
    angle = acos(2 * x - 1)
    return sin((n + 1) * angle) / sin(angle)  # DLMF 18.5.2


@each
def eval_sh_legendre(n, x):
    return legendre(n, 2 * x - 1) if x > 0 else mpmath.nan  # a pole, or two values, beyond


@each
def eval_sh_jacobi(n, p, q, x):
    if not x > 0:
        return mpmath.nan
    return jacobi(n, p - q, q - 1, 2 * x - 1) / mpmath.binomial(2 * n + p - 1, n)


def _student(df, t):
    """Student's distribution function, DLMF 8.17.2 and its relation to the beta distribution's."""
    tail = betainc(df / 2, mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


@each
def stdtridf(p, t):
    def off(log_df):
        return _student(exp(log_df), t) - p

    def roughly(log_df):
        return special.stdtr(np.exp(log_df), float(t)) - float(p)

    start = optimize.brentq(roughly, -15.0, 15.0)  # an error where none has that probability
    return exp(mpmath.findroot(off, (mpf(start), mpf(start) + mpf("1e-5")), tol=1e-120))


def _named(*functions):
    return {f.__name__: f for f in functions}


SPECIAL = _named(eval_sh_chebyt, eval_sh_chebyu, eval_sh_legendre, eval_sh_jacobi, stdtridf)


def circstd(samples):
    turns = [exp(mpmath.mpc(0, x)) for x in samples]
    length = abs(sum(turns)) / len(turns)
    return np.array([sqrt(-2 * log(length))], object)


SUMMARIES = {"circstd": circstd}
