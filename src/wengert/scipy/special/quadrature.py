"""Vectorized quadrature: panels of the Gauss-Legendre rule over windows.

Derivatives of special functions by their orders and parameters are integrals of smooth functions
that are far from zero in one window only (the other files here say which).  For such integrands a
rule of 24 points on each of a few panels is exact to rounding; what costs is the exponential at
every point, so elements that need as many panels are treated together, in pieces that fit in
memory.

    integrals   of f from low to high, elementwise
    trapezoid   of f from low to high, where it is next to nothing at both ends
    edge        where a concave exponent has fallen by so much: the end of a window
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .traced_loops import is_element, repeat

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
FALL = 42.0  # exp(-42) is below the rounding of what is summed
_MIDDLES = np.arange(-7.0, 8.0, 2.0) / 8.0
_PIECE = 1 << 20  # points that are held at a time


def integrals(
    f: Callable[[Any, Any], Any], low: Any, high: Any, panels: Any, dtype: Any = float
) -> Any:
    """The integral from `low` to `high` of ``f(points, which)`` for each of many elements.

    Parameters
    ----------
    f : callable
        Takes points of shape (elements, number) and the indices of these elements.
    low, high : ndarray of shape (n,)
        Finite bounds; an empty window (high <= low) has the integral 0.
    panels : ndarray of shape (n,)
        At least how many panels; it is rounded up to a power of two.
    """
    if is_element(low):
        return low.writer.quadrature(f, (low, high), panels, (NODES, WEIGHTS), dtype)
    total = np.zeros(len(low), dtype)
    number = 1 << np.ceil(np.log2(np.maximum(panels, 4))).astype(int)
    number[~(high > low)] = 0
    for count in np.unique(number[number > 0]):
        which = np.nonzero(number == count)[0]
        rows = max(1, _PIECE // (24 * count))
        for start in range(0, len(which), rows):
            some = which[start : start + rows]
            total[some] = _piece(f, low[some], high[some], count, some, dtype)
    return total


def _piece(f: Any, low: Any, high: Any, count: int, which: Any, dtype: Any) -> Any:
    """The integrals of a few elements, panel by panel where there are very many."""
    half = (high - low)[:, None] / (2 * count)
    total = np.zeros(len(low), dtype)
    at_once = max(1, _PIECE // 24)
    for first in range(0, count, at_once):
        centers = np.arange(first, min(first + at_once, count)) * 2.0 + 1.0
        steps = (centers[:, None] + NODES).ravel()
        weights = np.tile(WEIGHTS, len(centers))
        total += (f(low[:, None] + half * steps, which) * weights).sum(-1)
    return total * half[:, 0]


def trapezoid(
    f: Callable[[Any, Any], Any], low: Any, high: Any, step: float, dtype: Any = float
) -> Any:
    """The integral of an analytic f that vanishes at the ends, by steps of at most this length.

    Its arguments are those of `integrals`; points lie in the middle of their steps.
    """
    if is_element(low):
        rule = _MIDDLES, np.full(8, 0.25)
        return low.writer.quadrature(f, (low, high), (high - low) / (8.0 * step), rule, dtype)
    total = np.zeros(len(low), dtype)
    number = 8 * max(4, int(np.ceil(np.max(high - low) / (8.0 * step))))
    steps = (high - low) / number
    rows = max(1, _PIECE // (2 * number))
    for start in range(0, len(low), rows):
        some = np.arange(start, min(start + rows, len(low)))
        points = low[some, None] + steps[some, None] * (np.arange(number) + 0.5)
        total[some] = f(points, some).sum(-1)
    return total * steps


def edge(exponent: Callable[[Any], Any], width: Any, fall: float = FALL) -> Any:
    """The distance at which a concave exponent has fallen by `fall`.

    `exponent(distance)` is 0 at distance 0 and falls; `width` is a first guess.
    """
    (far,) = repeat(
        lambda _, far: (far * 2.0,), (width * 1.0,), 200, lambda far: exponent(far) > -fall
    )

    def halved(_: Any, low: Any, far: Any) -> Any:
        middle = 0.5 * (low + far)
        inside = exponent(middle) > -fall
        return np.where(inside, middle, low), np.where(inside, far, middle)

    # to a few percent: it is only the end of a window
    return repeat(halved, (np.zeros_like(far), far), 5)[1]
