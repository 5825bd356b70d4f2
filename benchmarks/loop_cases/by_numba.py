"""Loops and their derivatives by hand for numba: Lorenz's equations and GARCH.

The formulas are those of benchmarks/c/lorenz.c and garch.c, on tuples and local variables, which
numba keeps in registers; compiled without -ffast-math, as C is in this suite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def lorenz(n: int, h: float, p: Any) -> float:
    """The sum of the state after n steps."""
    q, r, b = p[0], p[1], p[2]
    x, y, z = 1.0, 1.0, 1.0
    for _ in range(n):
        ax, ay, az = q * (y - x), x * (r - z) - y, x * y - b * z
        u, v, w = x + 0.5 * h * ax, y + 0.5 * h * ay, z + 0.5 * h * az
        bx, by, bz = q * (v - u), u * (r - w) - v, u * v - b * w
        u, v, w = x + 0.5 * h * bx, y + 0.5 * h * by, z + 0.5 * h * bz
        cx, cy, cz = q * (v - u), u * (r - w) - v, u * v - b * w
        u, v, w = x + h * cx, y + h * cy, z + h * cz
        dx, dy, dz = q * (v - u), u * (r - w) - v, u * v - b * w
        x += h / 6.0 * (ax + 2.0 * bx + 2.0 * cx + dx)
        y += h / 6.0 * (ay + 2.0 * by + 2.0 * cy + dy)
        z += h / 6.0 * (az + 2.0 * bz + 2.0 * cz + dz)
    return x + y + z


def lorenz_gradient(n: int, h: float, p: Any) -> Any:
    """The sum and its gradient: tangents of the state by the three parameters beside it."""
    q, r, b = p[0], p[1], p[2]
    s = np.ones(3)
    t = np.zeros((3, 3))  # of the state by each parameter
    k, dk = np.empty((4, 3)), np.empty((4, 3, 3))
    for _ in range(n):
        for stage in range(4):
            by = 0.0 if stage == 0 else (h if stage == 3 else 0.5 * h)
            before = max(stage - 1, 0)
            u = s[0] + by * k[before, 0] if stage else s[0]
            v = s[1] + by * k[before, 1] if stage else s[1]
            w = s[2] + by * k[before, 2] if stage else s[2]
            k[stage, 0] = q * (v - u)
            k[stage, 1] = u * (r - w) - v
            k[stage, 2] = u * v - b * w
            for a in range(3):
                du = t[a, 0] + by * dk[before, a, 0] if stage else t[a, 0]
                dv = t[a, 1] + by * dk[before, a, 1] if stage else t[a, 1]
                dw = t[a, 2] + by * dk[before, a, 2] if stage else t[a, 2]
                dk[stage, a, 0] = q * (dv - du)
                dk[stage, a, 1] = du * (r - w) - u * dw - dv
                dk[stage, a, 2] = du * v + u * dv - b * dw
            dk[stage, 0, 0] += v - u
            dk[stage, 1, 1] += u
            dk[stage, 2, 2] -= w
        for i in range(3):
            s[i] += h / 6.0 * (k[0, i] + 2.0 * k[1, i] + 2.0 * k[2, i] + k[3, i])
            for a in range(3):
                t[a, i] += (
                    h / 6.0 * (dk[0, a, i] + 2.0 * dk[1, a, i] + 2.0 * dk[2, a, i] + dk[3, a, i])
                )
    return s[0] + s[1] + s[2], t[:, 0] + t[:, 1] + t[:, 2]


def garch(y: Any, start: float, p: Any) -> float:
    """The log-likelihood."""
    h, value = start, 0.0
    for i in range(y.size):
        e = y[i] - p[0]
        e2 = e * e
        value -= 0.5 * (math.log(h) + e2 / h)
        h = p[1] + p[2] * e2 + p[3] * h
    return value


def garch_gradient(y: Any, start: float, p: Any) -> Any:
    """The log-likelihood and its gradient, by forward sensitivities in registers."""
    h, value = start, 0.0
    d0 = d1 = d2 = d3 = s0 = s1 = s2 = s3 = 0.0
    for i in range(y.size):
        e = y[i] - p[0]
        e2 = e * e
        inverse = 1.0 / h
        z = e2 * inverse
        slope = 0.5 * inverse * (z - 1.0)
        value -= 0.5 * (math.log(h) + z)
        s0 += slope * d0 + e * inverse
        s1 += slope * d1
        s2 += slope * d2
        s3 += slope * d3
        d0 = p[3] * d0 - 2.0 * p[2] * e
        d1 = p[3] * d1 + 1.0
        d2 = p[3] * d2 + e2
        d3 = p[3] * d3 + h
        h = p[1] + p[2] * e2 + p[3] * h
    return value, np.array([s0, s1, s2, s3])
