"""Truncated power series in two variables, for derivatives of any order in both.

A series is an array whose first two axes are the powers: c[j, k] is the coefficient of h**j g**k.
The derivative of orders j and k is j! k! c[j, k].  The other axes are those of the elements.

    exponential          exp of a series, divided by exp(c[0, 0])
    product              a series times a polynomial of degree 1 in one variable
    log_gamma            the series of log gamma(x + h), without its constant
    stirling_remainder   log gamma minus Stirling's formula, without cancellation
    log_minus_psi        log(x) - psi(x), without cancellation
    zeros                the series 0
    BERNOULLI            the Bernoulli numbers B_2, B_4 ... of DLMF 24.2(iv)
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np
from scipy import special

from .traced_loops import is_traced_scalar

__all__: list[str] = []


BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
)  # fmt: skip


def zeros(j: int, k: int, *like: Any) -> Any:
    """The series 0 with powers up to j and k, for elements of the broadcast shape of `like`."""
    if any(map(is_traced_scalar, like)):  # for native code
        return np.full((j + 1, k + 1), 0.0, object)
    return np.zeros((j + 1, k + 1, *np.broadcast_shapes(*[np.shape(x) for x in like])))


def exponential(c: Any) -> Any:
    """The series e of exp(c - c[0, 0]), by j e_j = sum over p of p c_p e_(j-p)."""
    first, second = c.shape[:2]
    e = np.zeros_like(c)
    e[0, 0] = 1.0
    for j in range(first):
        for k in range(second):
            if j == k == 0:
                continue
            if j:  # recurrence in the first variable
                terms = [
                    (p * c[p, q], e[j - p, k - q]) for p in range(1, j + 1) for q in range(k + 1)
                ]
                e[j, k] = sum(a * b for a, b in terms) / j
            else:
                terms = [(q * c[0, q], e[0, k - q]) for q in range(1, k + 1)]
                e[0, k] = sum(a * b for a, b in terms) / k
    return e


def product(c: Any, constant: Any, slope: Any, axis: int) -> Any:
    """The series times (constant + slope * h), or g in place of h for axis 1."""
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


def stirling_remainder(x: Any) -> Any:
    """Compute log gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), DLMF 5.11.1, for x > 0."""
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
