"""Newton steps with the active limits of a solution, as equations.

trust-constr ends when the gradient of the Lagrange function is small, at whatever barrier parameter
it has then, so that its solutions have errors of 1e-4.  From there Newton's method converges in a
few steps.

    refined   the outcome after Newton steps, or as it was if they do not lead to a solution
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import block_array, coo_array, csc_array
from scipy.sparse.linalg import MatrixRankWarning, spsolve

from .active_set import Limited, active_multipliers, slope_of
from .compiled_functions import CompiledFunctions, entries_of
from .problem_data import ProblemData
from .result import ProgramOutcome

Array = np.ndarray[Any, Any]
_STEPS = 8
_CONVERGED = 1e-13  # relative to the gradient of the objective
_LONGEST = 0.1  # relative length of all steps; a longer one leads to another solution
_FEASIBLE = 1e-9
_MAX_DENSE_SIZE = 300


class Point(NamedTuple):
    """The functions of a program at some unknowns and multipliers."""

    x: Array
    multipliers: Array
    slope: Array
    values: Array
    jacobian: Any

    @property
    def balance(self) -> Array:
        """The gradient of the Lagrange function without bounds."""
        return self.slope + self.jacobian.T @ self.multipliers

    @property
    def lengths(self) -> Array:
        """The norms of the gradients of the constraints."""
        return np.sqrt(np.asarray(self.jacobian.multiply(self.jacobian).sum(axis=1))).reshape(-1)


def point(compiled: CompiledFunctions, consts: list[Any], x: Array, multipliers: Array) -> Point:
    """The functions at a point."""
    run = {n: np.asarray(compiled.by_name[n](x, *consts), float) for n in ("grad_f", "g", "jac_g")}
    plan = compiled.jacobian
    matrix = csc_array(coo_array((run["jac_g"], entries_of(plan)), plan.shape))
    return Point(x, multipliers, run["grad_f"], run["g"], matrix)


def refined(outcome: ProgramOutcome, data: ProblemData, consts: list[Any]) -> ProgramOutcome:
    """The outcome after Newton steps, if they converge to a solution nearby."""
    compiled = data.compiled
    now = point(compiled, consts, outcome.x, outcome.multipliers)
    slope, size = slope_of(data, consts, outcome.x), float(np.max(np.abs(now.x), initial=0.0))
    given_g = Limited(now.values, data.lower_g, data.upper_g, outcome.multipliers, now.lengths)
    ones = np.ones(len(now.x))
    given_x = Limited(now.x, data.lower_x, data.upper_x, outcome.bound_multipliers, ones)
    y, _ = active_multipliers(given_g, slope, size)
    nu, _ = active_multipliers(given_x, slope, size)
    rows = np.flatnonzero((y != 0.0) | (data.lower_g == data.upper_g))
    fixed = (nu != 0.0) | (data.lower_x == data.upper_x)
    limits = np.where(y > 0.0, data.upper_g, data.lower_g)[rows]
    x = np.where(fixed, np.where(nu > 0.0, data.upper_x, data.lower_x), now.x)
    now = point(compiled, consts, x, y)
    free = np.flatnonzero(~fixed)
    scale = slope + float(np.max(np.abs(limits), initial=0.0)) + 1e-300
    best = np.inf
    for _ in range(_STEPS):
        error = np.concatenate([now.balance[free], now.values[rows] - limits])
        length = float(np.linalg.norm(error))
        if not length < best:
            break
        best, kept = length, now
        if length <= _CONVERGED * scale:
            break
        step = _step(compiled, consts, now, free, rows, error)
        if step is None:
            return outcome
        x, y = now.x.copy(), now.multipliers.copy()
        x[free] += step[: len(free)]
        y[rows] += step[len(free) :]
        now = point(compiled, consts, x, y)
    nu = np.where(fixed, -kept.balance, 0.0)
    if best > 1e-9 * scale or not _is_solution(kept, nu, data, outcome.x):
        return outcome
    fun = float(compiled.by_name["f"](kept.x, *consts))
    return replace(outcome, x=kept.x, multipliers=kept.multipliers, bound_multipliers=nu, fun=fun)


def _step(
    compiled: CompiledFunctions,
    consts: list[Any],
    at: Point,
    free: Array,
    rows: Array,
    error: Array,
) -> Array | None:
    """The step of Newton's method; None if the matrix is singular."""
    entries = compiled.by_name["h"](at.x, np.float64(1.0), at.multipliers, *consts)
    half = coo_array(
        (np.asarray(entries, float), entries_of(compiled.hessian)), compiled.hessian.shape
    ).tocsc()
    diagonal = coo_array((half.diagonal(), (np.arange(len(at.x)),) * 2), half.shape)
    hessian = csc_array(half + half.T - diagonal)[free][:, free]
    jacobian = at.jacobian.tocsr()[rows][:, free]
    matrix = block_array([[hessian, jacobian.T], [jacobian, None]], format="csc")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error", MatrixRankWarning)
        try:
            step = spsolve(matrix, -error)
        except (MatrixRankWarning, RuntimeError):
            step = np.full(len(error), np.nan)
    if not np.all(np.isfinite(step)) and len(error) <= _MAX_DENSE_SIZE:
        # Gradients of active limits depend on each other: multipliers are not unique.
        step = np.linalg.lstsq(matrix.toarray(), -error)[0]
    return np.asarray(step) if np.all(np.isfinite(step)) else None


def _is_solution(at: Point, nu: Array, data: ProblemData, before: Array) -> bool:
    """Whether all limits hold, multipliers have the right signs, and the point is near."""
    for values, lower, upper, y in (
        (at.values, data.lower_g, data.upper_g, at.multipliers),
        (at.x, data.lower_x, data.upper_x, nu),
    ):
        room = _FEASIBLE * (1.0 + np.abs(values))
        if np.any(values < lower - room) or np.any(values > upper + room):
            return False
        at_lower, at_upper = values <= lower + room, values >= upper - room
        if np.any((y < 0.0) & ~at_lower) or np.any((y > 0.0) & ~at_upper):
            return False
    moved = float(np.max(np.abs(at.x - before), initial=0.0))
    return moved <= _LONGEST * (1.0 + float(np.max(np.abs(before), initial=0.0)))
