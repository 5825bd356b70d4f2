"""The size of the first step.

    initial_step    from the sizes of the state and its derivatives

References
----------
.. [1] E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, II.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .problem import IvpProblem, Tolerance, rms

EVALUATIONS = 1  # of the right-hand side


def initial_step(
    problem: IvpProblem,
    t: Any,
    y: Any,
    f: Any,
    direction: Any,
    length: Any,
    order: int,
    tolerance: Tolerance,
    max_step: Any,
) -> Any:
    """The absolute size of the first step, as SciPy chooses it; nothing is differentiated.

    f : the derivative at `t`.
    length : of the interval.
    order : of the error estimate.
    """
    scale = tolerance.scale(y)
    d0, d1 = rms(y / scale), rms(f / scale)
    is_tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.where(is_tiny, 1e-6, 0.01 * d0 / np.where(is_tiny, 1.0, d1))
    h0 = np.minimum(h0, length)
    safe = np.where(h0 > 0, h0, 1.0)  # an empty interval
    d2 = rms((problem.slope(t + h0 * direction, y + h0 * direction * f) - f) / scale) / safe
    largest = np.maximum(d1, d2)
    is_flat = largest <= 1e-15
    h1 = np.where(
        is_flat,
        np.maximum(1e-6, h0 * 1e-3),
        (0.01 / np.where(is_flat, 1.0, largest)) ** (1.0 / (order + 1)),
    )
    return np.minimum(np.minimum(100 * h0, h1), np.minimum(length, max_step))
