"""The solution of a system for plain values: at times, and between them.

SolverOperands   the operands of a solution
states           states at times
start_of         consistent initial values
sampled          the steps of a solution, with samples of each
SampledSolution  the solution as a function of time
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from wengert.scipy.integrate.ivp.loop import Status

from .library import Array, SolverSteps, StepLimits, integrate
from .system import Compiled, System

OTHERS = 8  # operands after captured values, those of `SolverOperands` without the captured ones
_DEGREES = {"CVODE_BDF": 5, "CVODE_Adams": 12, "IDA": 5}  # of the solver's own polynomials
_NEWTON_STEPS = 50
_LEAST_ULPS = 10_000  # of a step that is sampled
_LEAST_FRACTION = 1e-4  # of a Newton step


class SolverOperands(NamedTuple):
    """The operands of a solution.

    consts : captured values.
    t0, y0, slope0 : the start; its algebraic part, and the slope, are a first guess.
    rtol, atol, max_step, first_step : of which `atol` is a vector.
    times : of the result, in the order of the integration.
    """

    consts: Sequence[Any]
    t0: Any
    y0: Any
    slope0: Any
    rtol: Any
    atol: Any
    max_step: Any
    first_step: Any
    times: Any

    @classmethod
    def of(cls, operands: Sequence[Any]) -> SolverOperands:
        """The operands from a list."""
        return cls(operands[:-OTHERS], *operands[-OTHERS:])

    def operands(self) -> list[Any]:
        """The operands as a list."""
        return [*self.consts, *self[1:]]

    def control(self, max_steps: int) -> StepLimits:
        """Tolerances and limits for plain values."""
        limit, first = float(self.max_step), float(self.first_step)
        return StepLimits(
            float(self.rtol),
            np.ascontiguousarray(self.atol, float),
            limit if np.isfinite(limit) else 0.0,
            first if np.isfinite(first) else 0.0,
            max_steps,
        )


class ReachedStates(NamedTuple):
    """States at times.

    ys, slopes : at the start and at the times; NaN if they are not reached.
    last : time and state that are reached last.
    numbers : of times that are reached, the status, steps (-1: unknown), evaluations, Jacobians.
    """

    ys: Array
    slopes: Array
    last: Array
    numbers: Array


def states(system: System, operands: Sequence[Any]) -> ReachedStates:
    """The states at times, for plain operands."""
    given = SolverOperands.of([np.asarray(x) for x in operands])
    run = Compiled(system, given.consts)
    t0, times = float(given.t0), np.asarray(given.times, float)
    y, slope, status = start_of(run, given)
    ys = np.full((len(times) + 1, system.size), np.nan)
    slopes = ys.copy()
    path = SolverSteps(np.array([t0]), y[None], slope[None], status, (1, 0))
    count = 0
    if status == Status.FINISHED:
        ys[0], slopes[0] = y, slope
        count, span, positions = _span(t0, times)
        if len(span) > 1:
            control = given.control(system.max_steps)
            path = integrate(system.solver, run.functions(), span, y, slope, control)
        index = {t: k for k, t in enumerate(path.ts)}
        reached = [index.get(t, -1) for t in span[positions]]
        count = next((k for k, i in enumerate(reached) if i < 0), count)
        ys[1 : count + 1], slopes[1 : count + 1] = (
            path.ys[reached[:count]],
            path.slopes[reached[:count]],
        )
        steps = len(path.ts) - 1 if len(span) <= 2 else -1
    else:
        steps = 0
    last = np.concatenate([path.ts[-1:], path.ys[-1]])
    numbers = np.array([count, path.status, steps, *path.counts], np.int64)
    return ReachedStates(ys, slopes, last, numbers)


def _span(t0: float, times: Array) -> tuple[int, Array, Array]:
    """How many times are in order; the distinct ones after the start, and the positions in them."""
    sign = 1.0 if not len(times) or times[-1] >= t0 else -1.0
    steps = sign * np.diff(np.concatenate([[t0], times]))
    with np.errstate(invalid="ignore"):
        is_wrong = ~(steps >= 0)
    count = int(np.argmax(is_wrong)) if is_wrong.any() else len(times)
    distinct = np.concatenate([[True], steps[:count] > 0])
    span = np.concatenate([[t0], times[:count]])[distinct]
    return count, span, np.cumsum(distinct)[1:] - 1


# ---- consistent initial values -----------------------------------------------------------------


def start_of(run: Compiled, given: SolverOperands) -> tuple[Array, Array, int]:
    """The state and its slope at the start, and the status."""
    t, y = float(given.t0), np.array(given.y0, float)
    if run.system.basis is not None:
        slope0, control = np.array(given.slope0, float), given.control(1)
        return consistent(run, t, y, slope0, control)
    slope = run.value(t, y)
    finite = np.isfinite(slope).all() and np.isfinite(y).all()
    return y, slope, Status.FINISHED if finite else Status.NOT_FINITE


def consistent(
    run: Compiled, t: float, y: Array, slope: Array, control: StepLimits
) -> tuple[Array, Array, int]:
    """Initial values that satisfy the equations, by Newton's method.

    The differential part of `y` is given; unknown are the algebraic part, and the slope of the
    differential one.
    """
    basis = run.system.basis
    assert basis is not None
    d, a = basis.differential, basis.algebraic
    r, n = basis.rank, run.system.size
    slope = d @ (d.T @ slope)
    value = run.value(t, y, slope)
    for _ in range(_NEWTON_STEPS):
        if not np.isfinite(value).all():
            return y, slope, Status.NOT_FINITE
        both = run.jacobian(t, y, slope)
        matrix = np.hstack([both[:, n:] @ d, both[:, :n] @ a])
        try:
            step = -np.linalg.solve(matrix, value)
        except np.linalg.LinAlgError:
            return y, slope, Status.INCONSISTENT
        if not np.isfinite(step).all():
            return y, slope, Status.INCONSISTENT
        fraction, norm = 1.0, np.linalg.norm(value)
        while True:
            new_y, new_slope = y + fraction * (a @ step[r:]), slope + fraction * (d @ step[:r])
            value = run.value(t, new_y, new_slope)
            # The last steps are as large as rounding errors, and reduce nothing.
            is_small = _is_small(step, y, slope, a, d, control)
            if is_small or np.linalg.norm(value) < norm or fraction < _LEAST_FRACTION:
                break
            fraction /= 2
        y, slope = new_y, new_slope
        if is_small:
            return y, slope, Status.FINISHED
    return y, slope, Status.INCONSISTENT


def _is_small(step: Array, y: Array, slope: Array, a: Array, d: Array, control: StepLimits) -> bool:
    """Whether a Newton step is much smaller than the tolerances."""
    r = d.shape[1]
    tolerated = np.maximum(control.atol, control.rtol * np.abs(y))
    relative = control.rtol * (np.abs(slope) + np.linalg.norm(slope)) + np.min(control.atol)
    return bool(
        np.all(np.abs(a @ step[r:]) <= 1e-6 * tolerated + 1e-14 * np.abs(y))
        and np.all(np.abs(d @ step[:r]) <= 1e-4 * relative + 1e-14 * np.abs(slope))
    )


# ---- between the steps -------------------------------------------------------------------------


class SampledSolution:
    """The solution as a function of time, by polynomials through samples of each step.

    Parameters
    ----------
    ends : vector
        The ends of the steps, the first of which is the start.
    nodes : vector
        From 0 to 1, with both.
    samples : array of shape (steps, nodes, m)
    """

    def __init__(self, ends: Array, nodes: Array, samples: Array) -> None:
        self.ends, self.nodes, self.samples = ends, nodes, samples
        self._sign = 1.0 if ends[-1] >= ends[0] else -1.0
        self._increasing = self._sign * ends
        differences = nodes[:, None] - nodes[None, :] + np.eye(len(nodes))
        self._weights = 1.0 / np.prod(differences, axis=1)

    def __call__(self, t: float) -> Array:
        """The value at a time."""
        k = int(self._increasing.searchsorted(self._sign * t)) - 1
        k = min(max(k, 0), len(self.ends) - 2)
        start = self.ends[k]
        distance = (t - start) / (self.ends[k + 1] - start) - self.nodes
        smallest = np.abs(distance).argmin()
        if distance[smallest] == 0:
            found: Array = self.samples[k, smallest]
            return found
        weights = self._weights / distance
        found = weights @ self.samples[k] / weights.sum()
        return found

    def at_times(self, ts: Array) -> Array:
        """The values at times, along the first axis."""
        steps = self._increasing.searchsorted(self._sign * ts) - 1
        steps = np.clip(steps, 0, len(self.ends) - 2)
        theta = (ts - self.ends[steps]) / (self.ends[steps + 1] - self.ends[steps])
        distance = theta[:, None] - self.nodes
        is_exact = distance == 0
        weights = self._weights / np.where(is_exact, 1.0, distance)
        weights = np.where(is_exact.any(axis=1)[:, None], is_exact, weights)
        weights /= weights.sum(axis=1)[:, None]
        found: Array = np.einsum("kj,kjm->km", weights, self.samples[steps])
        return found


def sampled(
    solver: str,
    run: Any,
    ends: tuple[float, float],
    y: Array,
    slope: Array,
    control: StepLimits,
    nodes: Array,
) -> tuple[SolverSteps, Array, Array, Array]:
    """The ends of the steps, and states and slopes at the nodes of each step.

    The steps are found first; the second integration takes the same ones, as its first step is that
    of the first one, and its samples are those of the solver's own polynomials.
    """
    path = integrate(solver, run, np.array(ends), y, slope, control)
    if path.status != Status.FINISHED or len(path.ts) < 2:
        return path, path.ts, path.ys[:0, None], path.slopes[:0, None]
    ts = _long_enough(path.ts)
    sizes = np.diff(ts)
    times = ts[:-1, None] + sizes[:, None] * nodes
    times[:, -1] = ts[1:]
    direction = np.sign(sizes[0])
    span, inverse = np.unique(direction * times, return_inverse=True)
    again = replace(control, first_step=abs(path.ts[1] - path.ts[0]))
    dense = integrate(solver, run, direction * span, y, slope, again)
    if dense.status != Status.FINISHED or len(dense.ts) < len(span):
        return dense, path.ts, path.ys[:0, None], path.slopes[:0, None]
    inverse = inverse.reshape(times.shape)
    return path, ts, dense.ys[inverse], dense.slopes[inverse]


def _long_enough(ts: Array) -> Array:
    """The ends of the steps without those so near that samples are not distinct."""
    least = _LEAST_ULPS * np.finfo(float).eps * np.max(np.abs(ts))
    kept = [0]
    for k in range(1, len(ts)):
        if abs(ts[k] - ts[kept[-1]]) >= least:
            kept.append(k)
    if kept[-1] != len(ts) - 1:  # the last end stays
        kept[-1 if len(kept) > 1 else len(kept) :] = [len(ts) - 1]
    return ts[kept]


def nodes_of(solver: str) -> Array:
    """Chebyshev's points in a step: as many as the solver's polynomials have coefficients."""
    degree = _DEGREES[solver]
    return 0.5 - 0.5 * np.cos(np.pi * np.arange(degree + 1) / degree)
