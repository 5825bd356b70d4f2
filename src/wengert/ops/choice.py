"""Kinks and choices: absolute value, the larger and the smaller, where, clip.

A choice is a choice and not a multiplication by a mask: the cotangent of what was not chosen is
the number zero, never 0 * inf.  Ties are split evenly (docs/conventions.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kinds.elementwise import REAL, elementwise


@elementwise(ufunc=np.absolute, oracle="abs(x)", kinks=[0.0], complex_ok=True)
def absolute(s, x):
    """|x|; derivative sign(x), and 0 at x = 0."""
    return s.abs(x)


absolute.to_real(lambda out, x: _direction(x))


def _direction(x: Any) -> Any:
    """x / |x|, and 0 at 0."""
    if x.dtype.kind != "c":
        return np.sign(x)
    size = absolute(x)
    at_zero = size == 0
    return where(at_zero, 0.0, x / where(at_zero, 1.0, size))


@elementwise(ufunc=np.fabs, oracle="abs(x)", kinks=[0.0])
def fabs(s, x):
    """|x| of real x, in floating point."""
    return s.abs(x)


fabs.partials(lambda t, out, x: t * np.sign(x))


def _winner_takes(a_wins: Any, b_wins: Any, t: Any) -> Any:
    return where(a_wins, t, where(b_wins, 0.0, 0.5 * t))


@elementwise(ufunc=np.maximum, oracle="max(x, y)")
def maximum(s, x, y):
    """The larger of x and y, NaN if either is; where x == y, half to each."""
    return s.max(x, y)


maximum.partials(
    lambda t, out, x, y: _winner_takes(x > y, x < y, t),
    lambda t, out, x, y: _winner_takes(y > x, y < x, t),
)


@elementwise(ufunc=np.minimum, oracle="min(x, y)")
def minimum(s, x, y):
    """The smaller of x and y, NaN if either is; where x == y, half to each."""
    return s.min(x, y)


minimum.partials(
    lambda t, out, x, y: _winner_takes(x < y, x > y, t),
    lambda t, out, x, y: _winner_takes(y < x, y > x, t),
)


@elementwise(oracle="x if condition else y", domain=[REAL, REAL, REAL], complex_ok=True)
def where(s, condition, x, y):
    """x where the condition holds, else y; no derivative by the condition."""
    return s.where(condition, x, y)


where.partials(
    None,
    lambda t, out, condition, x, y: where(condition, t, 0.0),
    lambda t, out, condition, x, y: where(condition, 0.0, t),
)
