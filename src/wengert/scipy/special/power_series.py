"""Truncated power series in two variables: derivatives of any order in both.

A series is an array whose first two axes say the powers: c[j, k] stands before h**j g**k.  The
derivative of orders j and k is j! k! times that.  What else is in the array are elements.

    exponential    exp of a series, divided by exp(c[0, 0])
    product        of a series and a polynomial of degree 1 in one step
    log_gamma      the series of the logarithm of gamma, without its constant
    rest           what Stirling's formula leaves of log gamma, with all digits
    log_minus_psi  log(x) - psi(x), with all digits
    zeros          the series that is 0
    BERNOULLI      the numbers B_2, B_4 ... of DLMF 24.2(iv)
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np
from scipy import special

from .traced_loops import is_element

__all__: list[str] = []


BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
)  # fmt: skip


def zeros(j: int, k: int, *like: Any) -> Any:
    """The series 0 of powers up to j and k, for elements as those of arrays (broadcast)."""
    if any(map(is_element, like)):  # of native code
        return np.full((j + 1, k + 1), 0.0, object)
    return np.zeros((j + 1, k + 1, *np.broadcast_shapes(*[np.shape(x) for x in like])))


def exponential(c: Any) -> Any:
    """The series of exp(c - c[0, 0]): j e_j is the sum of p c_p e_(j-p)."""
    first, second = c.shape[:2]
    e = np.zeros_like(c)
    e[0, 0] = 1.0
    for j in range(first):
        for k in range(second):
            if j == k == 0:
                continue
            if j:  # along the first step
                terms = [
                    (p * c[p, q], e[j - p, k - q]) for p in range(1, j + 1) for q in range(k + 1)
                ]
                e[j, k] = sum(a * b for a, b in terms) / j
            else:
                terms = [(q * c[0, q], e[0, k - q]) for q in range(1, k + 1)]
                e[0, k] = sum(a * b for a, b in terms) / k
    return e


def product(c: Any, constant: Any, slope: Any, axis: int) -> Any:
    """The series times (constant + slope * step), the step being the first or the second."""
    out = c * constant
    if axis == 0:
        out[1:] += c[:-1] * slope
    else:
        out[:, 1:] += c[:, :-1] * slope
    return out


def log_gamma(x: Any, order: int) -> list[Any]:
    """The coefficients of h, h**2 ... h**order of log gamma(x + h)."""
    return [
        special.psi(x) if k == 1 else (-1.0) ** k / k * special.zeta(float(k), x)
        for k in range(1, order + 1)
    ]


def rest(x: Any) -> Any:
    """Log gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), DLMF 5.11.1, for x > 0."""
    near = np.minimum(x, 10.0)
    direct = special.gammaln(near) - ((near - 0.5) * np.log(near) - near + 0.5 * log(2.0 * pi))
    far = np.maximum(x, 10.0)
    inverse = 1.0 / (far * far)
    total: Any = 0.0
    for k in range(len(BERNOULLI), 0, -1):
        total = total * inverse + BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    return np.where(x < 10.0, direct, total / far)


def log_minus_psi(x: Any) -> Any:
    """log(x) - psi(x), DLMF 5.11.2, for x > 0."""
    near = np.minimum(x, 10.0)
    direct = np.log(near) - special.psi(near)
    far = np.maximum(x, 10.0)
    inverse = 1.0 / (far * far)
    total: Any = 0.0
    for k in range(len(BERNOULLI), 0, -1):
        total = total * inverse + BERNOULLI[k - 1] / (2 * k)
    return np.where(x < 10.0, direct, 0.5 / far + total * inverse)
