"""Distributions that are sums, in mpmath (formulas_of_distributions.py).

    boltzmann_entropy skellam_logsf vonmises_cdf vonmises_isf besselk

Sums end where their terms are less than all digits of the result.
"""

from __future__ import annotations

import mpmath
from mpmath import besseli, exp, log, log1p, mp, mpf, nan, pi, sin, sqrt


def boltzmann_entropy(rate, count, loc=0):
    """The entropy of 0 .. N - 1 with probabilities proportional to exp(-lambda k)."""
    if not rate > 0:
        return nan
    weights = [exp(-rate * k) for k in range(int(count))]
    log_whole = log1p(sum(weights[1:]))  # which may be less than all digits of 1
    shares = [w * exp(-log_whole) for w in weights]
    return sum(w * (log_whole + rate * k) for k, w in enumerate(shares))


def skellam_logsf(k, first, second, loc=0):
    """The logarithm of the probability of more than k, by the smaller of both tails."""
    if not (first > 0 and second > 0):
        return nan
    k, root = int(k - loc), 2 * sqrt(first * second)
    shares = _ratios(root)
    middle, base = exp(-first - second) * besseli(0, root), sqrt(first / second)

    def tail(j, way):
        total, power = mpf(0), base**j
        while abs(j) < len(shares):
            term = power * shares[abs(j)]
            total += term
            if term < total * mpf(10) ** -(mp.dps + 5) and term:
                break
            power, j = power * base**way, j + way
        return middle * total

    if first - second > k:
        return log1p(-tail(k, -1))
    return log(tail(k + 1, 1))


def _ratios(kappa):
    """I_j / I_0 for j = 0, 1 ..., backwards by J. C. P. Miller's method, DLMF 3.6.3 and 10.29.1."""
    last = int(sqrt(2 * kappa * mp.dps * log(10))) + 2 * mp.dps + 20
    ratio, ratios = mpf(0), []
    for j in range(last, 0, -1):
        ratio = 1 / (2 * j / kappa + ratio)  # I_j / I_(j-1)
        ratios.append(ratio)
    share, shares = mpf(1), [mpf(1)]
    for ratio in reversed(ratios):
        share *= ratio
        shares.append(share)
        if share < mpf(10) ** -(mp.dps + 10):
            break
    return shares


def besselk(order, z):
    """K of an order, by the trapezium rule on the whole line, DLMF 10.32.9 and 3.5.5."""
    if not z > 0:
        return nan
    middle = mpmath.asinh(order / z)
    step = min(mpf(1) / 30, mpf(1) / 4 / (z * z + order * order) ** mpf("0.25"))

    def term(k):
        t = middle + k * step
        return exp(order * t - z * mpmath.cosh(t) - height)

    height = order * middle - z * mpmath.cosh(middle)
    total = mpf(1)
    for way in (1, -1):
        k, part = way, mpf(1)
        while part > mpf(10) ** -(mp.dps + 8):
            part = term(k)
            total += part
            k += way
    return exp(height) * total * step / 2


def vonmises_cdf(x, kappa):
    """1/2 + x / (2 pi) + the sum of I_j / I_0 sin(j x) / j, divided by pi."""
    if not kappa > 0:
        return nan
    shares = _ratios(kappa)
    terms = (shares[j] * sin(j * x) / j for j in range(1, len(shares)))
    return mpf(1) / 2 + x / (2 * pi) + sum(terms) / pi


def vonmises_isf(q, kappa):
    """The x beyond which the probability is q, by Newton's steps."""
    if not kappa > 0:
        return nan
    height = exp(-kappa) / (2 * pi * besseli(0, kappa) * exp(-kappa))
    x, step = mpf(0), mpf(1)
    for _ in range(200):
        step = (1 - vonmises_cdf(x, kappa) - q) / (height * exp(kappa * (mpmath.cos(x))))
        x += max(min(step, mpf(1) / 2), -mpf(1) / 2)
        if abs(step) < mpf(10) ** -60:
            return x
    return nan
