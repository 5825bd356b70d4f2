"""Integral representations of derivatives of I and K with respect to the order, on plain arrays.

They are integrals of exp(x cosh t - v t), DLMF 10.32, along paths through the saddle point as in
bessel_order_integrals.py, and scaled so that they neither overflow nor underflow where I and K do:

    scaled_i              exp(-x) times the n-th derivative of I
    scaled_k              exp(x) times the n-th derivative of K
    log_and_factor_of_k   the same as a logarithm and a factor
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from .bessel_order_integrals import cospi_and_sinpi
from .quadrature import FALL, edge, integrals

__all__: list[str] = []


def scaled_k(n: int, v: Any, x: Any) -> Any:
    """exp(x) times the n-th derivative of K with respect to v, for x > 0."""
    top, total = log_and_factor_of_k(n, v, x)
    with np.errstate(over="ignore"):
        return np.exp(top) * total


def log_and_factor_of_k(n: int, v: Any, x: Any) -> tuple[Any, Any]:
    """`scaled_k` as exp of the first result times the second, DLMF 10.32.9.

    The first result does not depend on n.
    """
    sign = np.where(v < 0, (-1.0) ** n, 1.0)  # K is even in v
    v = np.abs(v)
    peak = np.arcsinh(v / x)
    all_elements = np.arange(len(v))

    def exponent(t: Any, i: Any) -> Any:
        return v[i, None] * t - 2.0 * x[i, None] * np.sinh(0.5 * t) ** 2

    top = exponent(peak[:, None], all_elements)[:, 0]
    with np.errstate(over="ignore"):

        def above(d: Any) -> Any:
            return exponent((peak + d)[:, None], all_elements)[:, 0] - top

        def below(d: Any) -> Any:
            return exponent((peak - np.minimum(d, peak))[:, None], all_elements)[:, 0] - top

        right = edge(above, np.minimum(1.0, 1.0 / np.sqrt(np.hypot(x, v))))
        is_negligible = below(peak) < -FALL
        left = np.where(
            is_negligible,
            edge(lambda d: np.where(is_negligible, below(d), -1e9), 1e-3 + right),
            peak,
        )

        def f(t: Any, i: Any) -> Any:
            # exp(v t) + (-1)^n exp(-v t) over exp(v t), without cancellation for small v
            other = np.exp(-2.0 * v[i, None] * t) if n % 2 == 0 else 0.0
            both = 1.0 + other if n % 2 == 0 else -np.expm1(-2.0 * v[i, None] * t)
            return np.exp(exponent(t, i) - top[i, None]) * both * t**n

        total = integrals(f, peak, peak + right, np.maximum(8.0, right / 1.5))
        total += integrals(f, peak - left, peak, np.maximum(8.0, left / 1.5))
        return top, 0.5 * sign * total


def scaled_i(n: int, v: Any, x: Any) -> Any:
    """exp(-x) times the n-th derivative of I with respect to v, for x > 0; DLMF 10.32.4."""
    mu = np.arcsinh(np.maximum(v, 0.0) / x)
    cosine, sine = np.hypot(x, np.maximum(v, 0.0)), np.maximum(v, 0.0)  # x cosh(mu), x sinh(mu)
    # x cosh(mu) - x without cancellation
    height = sine * (sine / (cosine + x)) - v * mu
    end = np.where(
        cosine > 0.5 * FALL, np.arccos(np.clip(1.0 - FALL / np.maximum(cosine, 1.0), -1.0, 1.0)), pi
    )

    def f(theta: Any, i: Any) -> Any:
        up = cosine[i, None] * (-2.0 * np.sin(0.5 * theta) ** 2)
        phase = sine[i, None] * np.sin(theta) - v[i, None] * theta
        return (np.exp(up + 1j * phase) * (-(mu[i, None] + 1j * theta)) ** n).real

    phases = np.abs(v) * np.where(v > 0, np.minimum(end, end**3), end)
    total = np.exp(height) * integrals(f, np.zeros_like(v), end, np.maximum(8.0, phases / 6.0))
    total += _horizontal_part(n, v, x, mu)
    return total / pi


def _horizontal_part(n: int, v: Any, x: Any, mu: Any) -> Any:
    """exp(-x) times the integral of exp(-x cosh s - v s - i pi v) from mu + i pi to infinity."""
    cos, sin = cospi_and_sinpi(v)
    peak = np.maximum(mu, np.arcsinh(np.maximum(-v, 0.0) / x))
    all_elements = np.arange(len(v))

    def exponent(s: Any, i: Any) -> Any:
        return -x[i, None] * (1.0 + np.cosh(s)) - v[i, None] * s

    top = exponent(peak[:, None], all_elements)[:, 0]
    reach = peak - mu
    with np.errstate(over="ignore", under="ignore"):

        def f(s: Any, i: Any) -> Any:
            far = (-(s + 1j * pi)) ** n
            both = far.imag * cos[i, None] - far.real * sin[i, None]
            return np.exp(exponent(s, i) - top[i, None]) * both

        def above(d: Any) -> Any:
            return exponent((peak + d)[:, None], all_elements)[:, 0] - top

        def below(d: Any) -> Any:
            return exponent((peak - np.minimum(d, reach))[:, None], all_elements)[:, 0] - top

        right = edge(above, np.full_like(v, 1e-3))
        is_negligible = below(reach) < -FALL
        left = np.where(
            is_negligible,
            edge(lambda d: np.where(is_negligible, below(d), -1e9), 1e-3 + right),
            reach,
        )
        total = integrals(f, peak, peak + right, np.maximum(8.0, right / 1.5))
        total += integrals(f, peak - left, peak, np.maximum(8.0, left / 1.5))
        return np.exp(top) * total
