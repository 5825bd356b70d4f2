"""Formulas in mpmath of functions that are no methods of distributions (formulas.py).

SPECIAL      of scipy.special
SUMMARIES    of scipy.stats, of arrays
"""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import acos, cos, exp, jacobi, legendre, log, sin, sqrt

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


SPECIAL = {
    f.__name__: f for f in (eval_sh_chebyt, eval_sh_chebyu, eval_sh_legendre, eval_sh_jacobi)
}


def circstd(samples):
    turns = [exp(mpmath.mpc(0, x)) for x in samples]
    length = abs(sum(turns)) / len(turns)
    return np.array([sqrt(-2 * log(length))], object)


SUMMARIES = {"circstd": circstd}
