"""What experts write by hand for numba; the functions are plain Python until they are compiled.

kepler        Brent's method for Kepler's equation of each of many orbits, and both derivatives
factorized    pivots of a tridiagonal positive definite matrix: L D L^T
solved        the solution with these factors
inverse       diagonal and first off-diagonal of the inverse (recurrence of Takahashi)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def kepler(eccentricities: Any, means: Any) -> Any:
    """Sum of the anomalies, and its gradients."""
    total, by_e, by_m = 0.0, np.empty(means.size), np.empty(means.size)
    for i in range(means.size):
        e, m = eccentricities[i], means[i]
        a, b = m - 2.0, m + 2.0
        fa, fb = a - e * math.sin(a) - m, b - e * math.sin(b) - m
        c, fc, before, step = a, fa, b - a, b - a
        for _ in range(100):
            if (fb > 0.0) == (fc > 0.0):
                c, fc, before, step = a, fa, b - a, b - a
            if abs(fc) < abs(fb):
                a, b, c, fa, fb, fc = b, c, b, fb, fc, fb
            tolerance, middle = (2e-12 + 8.9e-16 * abs(b)) / 2.0, (c - b) / 2.0
            if fb == 0.0 or abs(middle) <= tolerance:
                break
            if abs(before) >= tolerance and abs(fa) > abs(fb):
                s = fb / fa
                if a == c:
                    p, q = 2.0 * middle * s, 1.0 - s
                else:
                    r, t = fb / fc, fa / fc
                    p = s * (2.0 * middle * t * (t - r) - (b - a) * (r - 1.0))
                    q = (t - 1.0) * (r - 1.0) * (s - 1.0)
                if p > 0.0:
                    q = -q
                p = abs(p)
                if 2.0 * p < min(3.0 * middle * q - abs(tolerance * q), abs(before * q)):
                    before, step = step, p / q
                else:
                    before, step = middle, middle
            else:
                before, step = middle, middle
            a, fa = b, fb
            b += step if abs(step) > tolerance else math.copysign(tolerance, middle)
            fb = b - e * math.sin(b) - m
        slope = 1.0 / (1.0 - e * math.cos(b))
        total += b
        by_e[i], by_m[i] = math.sin(b) * slope, slope
    return total, by_e, by_m


def factorized(diagonal: Any, off: Any) -> Any:
    """Pivots and multipliers."""
    pivots, multipliers = diagonal.copy(), off.copy()
    for i in range(off.size):
        multipliers[i] = off[i] / pivots[i]
        pivots[i + 1] -= multipliers[i] * off[i]
    return pivots, multipliers


def solved(pivots: Any, multipliers: Any, right: Any) -> Any:
    """Forward and backward substitution."""
    x = right.copy()
    for i in range(multipliers.size):
        x[i + 1] -= multipliers[i] * x[i]
    x /= pivots
    for i in range(multipliers.size - 1, -1, -1):
        x[i] -= multipliers[i] * x[i + 1]
    return x


def inverse(pivots: Any, multipliers: Any) -> Any:
    """Elements of the inverse on the pattern."""
    diagonal, off = 1.0 / pivots, np.empty_like(multipliers)
    for i in range(multipliers.size - 1, -1, -1):
        off[i] = -multipliers[i] * diagonal[i + 1]
        diagonal[i] -= multipliers[i] * off[i]
    return diagonal, off
