"""Numerical derivatives of a function, the reference for rules.

Central differences with steps that shrink by a constant factor, extrapolated to step zero by
Neville's scheme (Ridders 1982, Adv. Eng. Software 4(2), 75-76).  The best entry of the table comes
with an error estimate, so a comparison can distinguish a wrong rule from a difficult function.  The
table ends early where that error is a hundredth of the required accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SHRINK = 1.6
STEPS = 9
FEWEST_STEPS = 4  # with fewer, entries may agree by chance
NEGLIGIBLE = 0.01  # fraction of the required error


def directional(f: Callable[[float], Any], scale: float = 1.0, needed: float = 0.0) -> Any:
    """The derivative of `f` at 0 and an estimate of its error, elementwise.

    Parameters
    ----------
    f : callable
        From a step (float) to an array; defined for steps up to `scale / 16`.
    scale : float
        A length over which `f` varies.
    needed : float
        Error above which successively shorter scales are tried, since a kink may be near. A
        hundredth of it is considered negligible.
    """
    enough = NEGLIGIBLE * needed
    best, worst = _extrapolated(f, scale, enough)
    for shorter in (scale / 32.0, scale / 1024.0):
        if not np.any(~(worst <= needed)):
            break
        other, error = _extrapolated(f, shorter, enough)
        better = (error < worst) | ~np.isfinite(worst)
        best, worst = np.where(better, other, best), np.where(better, error, worst)
    return best, worst


def _extrapolated(f: Callable[[float], Any], scale: float, enough: float) -> Any:
    h = scale / 16.0
    table: list[list[Any]] = []
    best: Any = None
    worst: Any = None
    with np.errstate(all="ignore"):
        for i in range(STEPS):
            row = [(np.asarray(f(h)) - np.asarray(f(-h))) / (2.0 * h)]
            factor = SHRINK * SHRINK
            for k in range(i):
                row.append((row[k] * factor - table[-1][k]) / (factor - 1.0))
                factor *= SHRINK * SHRINK
                error = np.maximum(np.abs(row[-1] - row[-2]), np.abs(row[-1] - table[-1][k]))
                if best is None:
                    best, worst = row[-1], error
                    continue
                better = (error < worst) | ~np.isfinite(worst)
                best, worst = np.where(better, row[-1], best), np.where(better, error, worst)
            if i + 1 >= FEWEST_STEPS and np.all(worst <= enough):
                break
            table.append(row)
            h /= SHRINK
    return best, worst
