"""Which limits are active at a solution: interior methods end at some distance from them.

The product of the multiplier of a limit and its distance is about the barrier parameter, so one of
them is much smaller than the other, relative to the sizes of the gradients, unless the limit is
active with a multiplier of zero.

    active_multipliers   multipliers that are zero unless their limit is active
    slope_of             a norm of the gradient of the objective
    Violations           how far a point is from satisfying the limits
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .problem_data import ProblemData

Array = np.ndarray[Any, Any]
_DEGENERATE = 1e-4  # relative multiplier and distance below which a limit is degenerate
_START = 0.1  # weight of the gradient where the solver began
_SMALLEST_FLOAT = np.finfo(float).tiny
FEASIBLE = 1e-6  # relative violation up to which a limit is satisfied


class Limited(NamedTuple):
    """Numbers with limits, at a solution.

    values, lower, upper : arrays
    multipliers : positive at upper limits.
    lengths : the norms of their gradients.
    """

    values: Array
    lower: Array
    upper: Array
    multipliers: Array
    lengths: Array


def active_multipliers(part: Limited, slope: float, size: float) -> tuple[Array, Array]:
    """Multipliers that are zero unless their limit is active, and which are degenerate.

    Parameters
    ----------
    part : Limited
    slope : float
        The norm of the gradient of the objective.
    size : float
        The norm of x.
    """
    y, lengths = part.multipliers, np.maximum(part.lengths, _SMALLEST_FLOAT)
    limit = np.where(y > 0.0, part.upper, part.lower)
    with np.errstate(all="ignore"):
        distance = np.abs(part.values - limit) / (lengths * (1.0 + size))
        nearest = np.minimum(np.abs(part.values - part.lower), np.abs(part.upper - part.values))
        nearest = nearest / (lengths * (1.0 + size))
        # Relative to the largest term of the balance of gradients.
        largest = max(slope, float(np.max(np.abs(y) * part.lengths, initial=0.0)), _SMALLEST_FLOAT)
        weight = np.abs(y) * part.lengths / largest
    equal = part.lower == part.upper
    active = equal | ((weight > distance) & np.isfinite(limit))
    smaller, larger = np.minimum(weight, nearest), np.maximum(weight, nearest)
    is_near = (larger < _DEGENERATE) | ((larger < 10.0 * _DEGENERATE) & (larger < 100.0 * smaller))
    degenerate = ~equal & is_near
    return np.where(active, y, 0.0), degenerate


def slope_of(data: ProblemData, consts: Sequence[Any], x: Array) -> float:
    """A norm of the gradient of the objective: at a solution, or less where the solver began."""
    gradient = data.compiled.by_name["grad_f"]
    at_solution, at_start = [np.asarray(gradient(v, *consts), float) for v in (x, data.x0)]
    start = float(np.linalg.norm(at_start))
    found = float(np.linalg.norm(at_solution))
    return max(found, _START * start) if np.isfinite(start) else found


class Violations(NamedTuple):
    """How far a point is from satisfying limits.

    largest : the largest violation.
    described : which limit that is, or None if all are satisfied.
    """

    largest: float
    described: str | None

    @classmethod
    def of(cls, values: Array, lower: Array, upper: Array, names: Sequence[str]) -> Violations:
        """The violations of numbers with limits."""
        if not values.size:
            return cls(0.0, None)
        distance = np.fmax(np.fmax(lower - values, values - upper), 0.0)
        distance = np.where(np.isnan(values), np.inf, distance)
        limit = np.where(values < lower, lower, upper)
        with np.errstate(invalid="ignore"):
            relative = distance / (1.0 + np.abs(np.where(np.isfinite(limit), limit, 0.0)))
        k = int(np.argmax(relative))
        if relative[k] <= FEASIBLE:
            return cls(float(np.max(distance)), None)
        if np.isnan(values[k]):
            return cls(float("inf"), f"{names[k]} is not a number")
        side = "below its lower" if values[k] < lower[k] else "above its upper"
        what = f"{names[k]} = {values[k]:.6g} is {side} limit {limit[k]:.6g}"
        return cls(float(np.max(distance)), what)
