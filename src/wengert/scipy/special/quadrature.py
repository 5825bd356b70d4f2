"""Vectorized quadrature with composite Gauss-Legendre and trapezoidal rules.

Derivatives of special functions with respect to orders and parameters are integrals of smooth
functions that are negligible outside of a window.  For these, a Gauss-Legendre rule of 24 points on
each of a few panels is accurate to rounding.  The cost is an exponential at each point, so elements
that need equally many panels are integrated together, in chunks that fit in memory.

    integrals   Gauss-Legendre, elementwise from low to high
    trapezoid   of analytic functions that vanish at both ends
    edge        the distance at which a concave exponent has decreased by a given amount
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .traced_loops import is_traced_scalar, repeat

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
FALL = 42.0  # exp(-42) is below the rounding error of the sum
_MIDDLES = np.arange(-7.0, 8.0, 2.0) / 8.0
_MAX_POINTS = 1 << 20  # points evaluated at once


def integrals(
    f: Callable[[Any, Any], Any], low: Any, high: Any, panels: Any, dtype: Any = float
) -> Any:
    """The integral from `low` to `high` of ``f(points, indices)``, for each element.

    Parameters
    ----------
    f : callable
        Takes points of shape (elements, points), and the indices of these elements.
    low, high : ndarray of shape (n,)
        Finite bounds; an empty window (high <= low) has the integral 0.
    panels : ndarray of shape (n,)
        The minimum number of panels; it is rounded up to a power of two.
    dtype : dtype, default float
        That of the result.
    """
    if is_traced_scalar(low):
        return low.writer.quadrature(f, (low, high), panels, (NODES, WEIGHTS), dtype)
    total = np.zeros(len(low), dtype)
    number = 1 << np.ceil(np.log2(np.maximum(panels, 4))).astype(int)
    number[~(high > low)] = 0
    for count in np.unique(number[number > 0]):
        indices = np.nonzero(number == count)[0]
        rows = max(1, _MAX_POINTS // (24 * count))
        for start in range(0, len(indices), rows):
            chunk = indices[start : start + rows]
            total[chunk] = _integrate_chunk(f, low[chunk], high[chunk], count, chunk, dtype)
    return total


def _integrate_chunk(f: Any, low: Any, high: Any, count: int, indices: Any, dtype: Any) -> Any:
    """The integrals of a chunk of elements, each with at most `_MAX_POINTS` points at once."""
    half = (high - low)[:, None] / (2 * count)
    total = np.zeros(len(low), dtype)
    at_once = max(1, _MAX_POINTS // 24)
    for first in range(0, count, at_once):
        centers = np.arange(first, min(first + at_once, count)) * 2.0 + 1.0
        steps = (centers[:, None] + NODES).ravel()
        weights = np.tile(WEIGHTS, len(centers))
        total += (f(low[:, None] + half * steps, indices) * weights).sum(-1)
    return total * half[:, 0]


def trapezoid(
    f: Callable[[Any, Any], Any], low: Any, high: Any, step: float, dtype: Any = float
) -> Any:
    """The integral of an analytic f that vanishes at both ends, with steps of at most `step`.

    Other arguments are those of `integrals`. Points are the centers of the steps.
    """
    if is_traced_scalar(low):
        rule = _MIDDLES, np.full(8, 0.25)
        return low.writer.quadrature(f, (low, high), (high - low) / (8.0 * step), rule, dtype)
    total = np.zeros(len(low), dtype)
    number = 8 * max(4, int(np.ceil(np.max(high - low) / (8.0 * step))))
    steps = (high - low) / number
    rows = max(1, _MAX_POINTS // (2 * number))
    for start in range(0, len(low), rows):
        chunk = np.arange(start, min(start + rows, len(low)))
        points = low[chunk, None] + steps[chunk, None] * (np.arange(number) + 0.5)
        total[chunk] = f(points, chunk).sum(-1)
    return total * steps


def edge(exponent: Callable[[Any], Any], width: Any, fall: float = FALL) -> Any:
    """The distance at which a concave exponent has decreased by `fall`, to a few percent.

    `exponent(distance)` is 0 at distance 0 and decreases; `width` is an initial guess.
    """
    (far,) = repeat(
        lambda _, far: (far * 2.0,), (width * 1.0,), 200, lambda far: exponent(far) > -fall
    )

    def bisect(_: Any, low: Any, far: Any) -> Any:
        middle = 0.5 * (low + far)
        inside = exponent(middle) > -fall
        return np.where(inside, middle, low), np.where(inside, far, middle)

    return repeat(bisect, (np.zeros_like(far), far), 5)[1]
