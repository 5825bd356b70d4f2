"""Derivatives at a solution: its active limits, Newton steps with them, the sparse linear system.

    refined               the outcome after Newton steps, or as it was if they do not lead to a
                          solution
    H                     J'        I
    a J                   1 - a     0         a: 1 for active constraints, b: for active bounds
    b                     0         1 - b
    SparseConditions      the system
    is_active             which limits are active
    active_multipliers    multipliers that are zero unless their limit is active
    slope_of              a norm of the gradient of the objective
    Violations            how far a point is from satisfying the limits

trust-constr ends when the gradient of the Lagrange function is small, at whatever barrier parameter
it has then, so that its solutions have errors of 1e-4.  From there Newton's method converges in a
few steps.

The Jacobian of the conditions (program.py) with respect to x, y and nu is

with the Hessian H of the Lagrange function and the Jacobian J of the constraints, whose patterns
and programs the solver has already.  Its entries are differentiated, so that derivatives of higher
order exist.

The product of the multiplier of a limit and its distance is about the barrier parameter, so one of
them is much smaller than the other, relative to the sizes of the gradients, unless the limit is
active with a multiplier of zero.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import block_array, coo_array, csc_array
from scipy.sparse.linalg import MatrixRankWarning, spsolve

from wengert.scipy.sparse.linalg.solve_operation import sparse_solve

from .problem_data import (
    CompiledFunctions,
    ProblemData,
    ProgramFunctions,
    ProgramOutcome,
    compiled_functions,
    entries_of,
)


def is_active(multipliers: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Whether lower limits are active, and whether upper ones are."""
    return (multipliers < 0.0) | (lower == upper), (multipliers > 0.0) & (lower != upper)


class SparseConditions:
    """The Jacobian of the conditions of a program as a linear system.

    Parameters
    ----------
    functions : ProgramFunctions
    skipped : int
        The number of captured values that the functions do not have, which come first.
    trans : {0, 2}
        2 for the adjoint system.
    """

    def __init__(self, functions: ProgramFunctions, skipped: int, trans: int = 0) -> None:
        self.functions, self.skipped, self.trans = functions, skipped, trans

    @property
    def adjoint(self) -> SparseConditions:
        """The system with the adjoint matrix."""
        return SparseConditions(self.functions, self.skipped, 2 - self.trans)

    @functools.cached_property
    def compiled(self) -> CompiledFunctions:
        """The compiled functions, with the patterns."""
        return compiled_functions(self.functions)

    def __call__(self, values: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        """The solution, for captured values, limits and the solution of the program."""
        order, indices, indptr = self._pattern
        data = self._entries(values[self.skipped :])[order]
        column = right[0].reshape((-1, 1))
        found = sparse_solve(data, indices, indptr, column, trans=self.trans, checked=True)
        return [found.reshape((-1,))]

    def adjoint_solution(self, values: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        """The solution of the system with the adjoint matrix."""
        return self.adjoint(values, right)

    def _entries(self, values: Sequence[Any]) -> Any:
        own, compiled = self.functions, self.compiled
        n, m = own.size, own.constraint_count
        consts, (lower_x, upper_x, lower_g, upper_g, z) = values[:-5], values[-5:]
        x, y, nu = z[:n], z[n : n + m], z[n + m :]
        half = compiled.hessian.values(x, np.float64(1.0), y, *consts)
        rows, columns = entries_of(compiled.hessian)
        below = np.flatnonzero(rows != columns)
        of_bounds = _as_number(is_active(nu, lower_x, upper_x))
        parts = [half, half[below], np.ones(n), of_bounds, 1.0 - of_bounds]
        if m:
            jacobian = compiled.jacobian.values(x, *consts)
            of_limits = _as_number(is_active(y, lower_g, upper_g))
            rows, _ = entries_of(compiled.jacobian)
            parts += [jacobian, jacobian * of_limits[rows], 1.0 - of_limits]
        return np.concatenate(parts)

    @functools.cached_property
    def _pattern(self) -> tuple[Any, Any, Any]:
        """The order of the entries in the CSR format, and its arrays."""
        own, compiled = self.functions, self.compiled
        n, m = own.size, own.constraint_count
        rows, columns = entries_of(compiled.hessian)
        below = np.flatnonzero(rows != columns)
        unknowns, bounds, limits = np.arange(n), n + m + np.arange(n), n + np.arange(m)
        places = [
            (rows, columns),
            (columns[below], rows[below]),
            (unknowns, bounds),
            (bounds, unknowns),
            (bounds, bounds),
        ]
        if m:
            rows, columns = entries_of(compiled.jacobian)
            places += [(columns, n + rows), (n + rows, columns), (limits, limits)]
        i, j = [np.concatenate(parts) for parts in zip(*places, strict=True)]
        size = 2 * n + m
        matrix = coo_array((np.arange(len(i)), (i, j)), (size, size)).tocsr()
        assert matrix.nnz == len(i)  # no entry stands twice
        matrix.sort_indices()
        return matrix.data, matrix.indices, matrix.indptr


def _as_number(active: tuple[Any, Any]) -> Any:
    return np.where(active[0] | active[1], 1.0, 0.0)


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
