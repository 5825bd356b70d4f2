"""Values and derivatives by hand as loops for numba: what a person writes who knows it.

Each function is plain Python until `libraries.numba_call` compiles it, with the liberties that C
has in these suites (-ffast-math).  They make their results, as users of numba do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def sum_tanh(x: Any, w: Any, b: Any) -> Any:
    """sum(tanh(x w + b) exp(-x^2)) and its gradient."""
    gradient = np.empty_like(x)
    value = x.dtype.type(0)
    for i in range(x.size):
        t = math.tanh(x[i] * w + b)
        e = math.exp(-x[i] * x[i])
        value += t * e
        gradient[i] = ((1 - t * t) * w - 2 * x[i] * t) * e
    return value, gradient


def black_scholes(spot: Any, strike: Any, time: Any, sigma: Any, rate: Any, half: Any) -> Any:
    """Price, and its derivatives by spot, time and volatility; ``half`` is 1 / 2 in their dtype."""
    price, delta = np.empty_like(spot), np.empty_like(spot)
    theta, vega = np.empty_like(spot), np.empty_like(spot)
    root_half = math.sqrt(half)
    for i in range(spot.size):
        root = math.sqrt(time[i])
        spread = sigma[i] * root
        d1 = (
            math.log(spot[i] / strike[i]) + (rate + half * sigma[i] * sigma[i]) * time[i]
        ) / spread
        n1 = half + half * math.erf(d1 * root_half)
        n2 = half + half * math.erf((d1 - spread) * root_half)
        paid = strike[i] * math.exp(-rate * time[i]) * n2
        bell = spot[i] * math.exp(-half * d1 * d1) * spot.dtype.type(0.3989422804014327)
        price[i] = spot[i] * n1 - paid
        delta[i] = n1
        theta[i] = bell * sigma[i] * half / root + rate * paid
        vega[i] = bell * root
    return price, delta, theta, vega


def logsumexp(x: Any) -> Any:
    """Of every row."""
    values = np.empty(x.shape[0], x.dtype)
    for r in range(x.shape[0]):
        top = x[r, 0]
        for i in range(x.shape[1]):
            top = max(top, x[r, i])
        total = x.dtype.type(0)
        for i in range(x.shape[1]):
            total += math.exp(x[r, i] - top)
        values[r] = math.log(total) + top
    return values


def logsumexp_gradient(x: Any) -> Any:
    """Of every row, and the gradient of their sum."""
    values, gradient = np.empty(x.shape[0], x.dtype), np.empty_like(x)
    for r in range(x.shape[0]):
        top = x[r, 0]
        for i in range(x.shape[1]):
            top = max(top, x[r, i])
        total = x.dtype.type(0)
        for i in range(x.shape[1]):
            e = math.exp(x[r, i] - top)
            gradient[r, i] = e
            total += e
        values[r] = math.log(total) + top
        for i in range(x.shape[1]):
            gradient[r, i] /= total
    return values, gradient


def cross_entropy(z: Any, labels: Any) -> Any:
    """The mean over rows, and its gradient."""
    gradient = np.empty_like(z)
    value = 0.0
    scale = z.dtype.type(1) / z.dtype.type(z.shape[0])
    for r in range(z.shape[0]):
        top = z[r, 0]
        for i in range(z.shape[1]):
            top = max(top, z[r, i])
        total = z.dtype.type(0)
        for i in range(z.shape[1]):
            e = math.exp(z[r, i] - top)
            gradient[r, i] = e
            total += e
        value += math.log(total) + top - z[r, labels[r]]
        share = scale / total
        for i in range(z.shape[1]):
            gradient[r, i] *= share
        gradient[r, labels[r]] -= scale
    return value / z.shape[0], gradient


def axpy_gradient(x: Any, y: Any, a: float) -> Any:
    """a (a x + y)."""
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = a * (a * x[i] + y[i])
    return out


def rosenbrock_hessian(x: Any) -> Any:
    """Three diagonals."""
    n = x.size
    out = np.zeros((n, n))
    for i in range(n - 1):
        out[i, i] += 2.0 + 1200.0 * x[i] * x[i] - 400.0 * x[i + 1]
        out[i + 1, i + 1] += 200.0
        out[i, i + 1] = out[i + 1, i] = -400.0 * x[i]
    return out


def fifth(x: float) -> float:
    """Leibniz's rule with Hermite's polynomials."""
    h = (1.0, 2.0 * x)
    h2 = 2.0 * x * h[1] + 2.0 * h[0]
    h3 = 2.0 * x * h2 + 4.0 * h[1]
    h4 = 2.0 * x * h3 + 6.0 * h2
    h5 = 2.0 * x * h4 + 8.0 * h3
    s, c = math.sin(x), math.cos(x)
    inner = s * h5 + 5.0 * c * h4 - 10.0 * s * h3 - 10.0 * c * h2 + 5.0 * s * h[1] + c
    return math.exp(x * x) * inner


def mixture(alphas: Any, means: Any, icf: Any, points: Any, gamma: float, fixed: float) -> Any:
    """The objective of ADBench's mixture and its gradients, a point after the other."""
    k, d = means.shape
    n = points.shape[0]
    diagonals = np.exp(icf[:, :d])
    logdets = np.array([icf[c, :d].sum() for c in range(k)])
    alphas_bar, means_bar, icf_bar = np.zeros(k), np.zeros((k, d)), np.zeros_like(icf)
    centered, y, terms, back = np.empty((k, d)), np.empty((k, d)), np.empty(k), np.empty(d)
    value = fixed
    for p in range(n):
        for c in range(k):
            at, square = d, 0.0
            for i in range(d):
                centered[c, i] = points[p, i] - means[c, i]
                y[c, i] = diagonals[c, i] * centered[c, i]
            for i in range(d):
                for j in range(i + 1, d):
                    y[c, j] += icf[c, at + j - i - 1] * centered[c, i]
                at += d - i - 1
                square += y[c, i] * y[c, i]
            terms[c] = alphas[c] + logdets[c] - 0.5 * square
        top = terms.max()
        total = 0.0
        for c in range(k):
            terms[c] = math.exp(terms[c] - top)
            total += terms[c]
        value += math.log(total) + top
        for c in range(k):
            weight = terms[c] / total
            alphas_bar[c] += weight
            at = d
            for i in range(d):
                icf_bar[c, i] += weight * (1.0 - diagonals[c, i] * y[c, i] * centered[c, i])
                back[i] = diagonals[c, i] * y[c, i]
                for j in range(i + 1, d):
                    back[i] += icf[c, at + j - i - 1] * y[c, j]
                    icf_bar[c, at + j - i - 1] -= weight * y[c, j] * centered[c, i]
                at += d - i - 1
                means_bar[c, i] += weight * back[i]
    top = alphas.max()
    shares = np.exp(alphas - top)
    value -= n * (math.log(shares.sum()) + top)
    alphas_bar -= n * shares / shares.sum()
    for c in range(k):
        for i in range(icf.shape[1]):
            entry = diagonals[c, i] if i < d else icf[c, i]
            value += 0.5 * gamma * gamma * entry * entry
            icf_bar[c, i] += gamma * gamma * entry * (entry if i < d else 1.0)
    return value, (alphas_bar, means_bar, icf_bar)
