"""Steps of singly diagonally implicit Runge-Kutta methods (esdirk_tables.py).

    EsdirkMethod    the method of a table

With M y' = f(t, y), the increment u of a stage solves ``M (u - g) = h gamma f(t_i, y + u)``, where
g contains the earlier stages, and its slope is ``(u - g) / (h gamma)``.  Newton's iteration runs on
values; the derivative of a stage is that of its equation, with the Jacobian at the stage, so that
it does not depend on the matrix of the iteration and exists in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .esdirk_tables import EsdirkTable
from .explicit_steps import combination
from .method import Evaluations, Method, MethodStep
from .problem import IvpProblem, Tolerance, fixed
from .simplified_newton import IterationMatrix, newton, newton_tolerance
from .stage_roots import NearMatrix, stage_root


class EsdirkCarry(NamedTuple):
    """What a step leaves for the next one.

    slope : the derivative of the state.
    matrix : of the iteration.
    eta : the rate of convergence, see `StageIterations`.
    """

    slope: Any
    matrix: Any
    eta: Any


class EsdirkMethod(Method):
    """A method with an explicit first stage.

    table : its coefficients.
    """

    is_implicit = True
    dense_arrays = 2

    def __init__(self, table: EsdirkTable) -> None:
        self.table = table
        self.name, self.order, self.error_order = table.name, table.order, table.error_order

    def start(self, problem: IvpProblem, t: Any, y: Any) -> Any:
        """The derivative of the state, and no matrix."""
        return problem.slope(t, y), tuple(IterationMatrix.empty(problem, t, y)), np.float64(1.0)

    def derivative(self, carry: Any) -> Any:
        """The derivative of the state."""
        return carry[0]

    def step(
        self, problem: IvpProblem, t: Any, h: Any, y: Any, carry: Any, tolerance: Tolerance
    ) -> MethodStep:
        """The stages; the last is the new state, and its difference to the one before the error."""
        table, carry = self.table, EsdirkCarry(*carry)
        matrix, jacs, factors = IterationMatrix(*carry.matrix).updated(
            problem, t, fixed(y), h, table.gamma
        )
        step, stages = h * table.gamma, _Stages(problem, table, t, h)
        found = stages.solved(fixed(y), fixed(carry.slope), matrix, tolerance, carry.eta)
        near = NearMatrix.of_step(problem, (t, y), (t + h, y + found.increments[-1]), step)
        slopes, increments = [carry.slope], []
        for k, root in enumerate(found.increments):
            given, residual = stages.equation(k, y, slopes)
            u = stage_root(residual, root, near)
            increments.append(u)
            slopes.append((u - given) / step)
        new_matrix, same_matrix = matrix.after(found.slowest, found.converged)
        return MethodStep(
            y + increments[-1],
            increments[-1] - increments[-2],
            (slopes[-1], tuple(new_matrix), found.eta),
            (slopes[0], tuple(same_matrix), np.float64(1.0)),
            (slopes[0], slopes[-1]),
            found.converged,
            Evaluations(found.evaluations, jacs, factors),
            np.where(found.converged | matrix.is_current, np.nan, 1.0),
        )

    def interpolate(self, theta: Any, h: Any, y: Any, y_new: Any, prepared: Any) -> Any:
        """The cubic polynomial with the states and their derivatives at both ends."""
        first, last = prepared
        change = y_new - y
        bend = (1 - 2 * theta) * change + (theta - 1) * h * first + theta * h * last
        return y + theta * (change + (theta - 1) * bend)


class _SolvedStages(NamedTuple):
    """The increments of the stages, as values.

    slowest : the largest rate of convergence.
    """

    increments: list[Any]
    converged: Any
    eta: Any
    slowest: Any
    evaluations: Any


class _Stages(NamedTuple):
    """The equations of the stages of one step of size h from time t."""

    problem: IvpProblem
    table: EsdirkTable
    t: Any
    h: Any

    def equation(self, k: int, y: Any, slopes: list[Any]) -> tuple[Any, Callable[[Any], Any]]:
        """What the earlier slopes give, and the residual as a function of the increment."""
        problem, table, h = self.problem, self.table, self.h
        given, time = h * combination(table.a[k], slopes), self.t + table.times[k + 1] * h

        def residual(u: Any) -> Any:
            left = u - given if problem.mass is None else problem.mass @ (u - given)
            return left - h * table.gamma * problem.f(time, y + u)

        return given, residual

    def solved(
        self, y: Any, slope: Any, matrix: IterationMatrix, tolerance: Tolerance, eta: Any
    ) -> _SolvedStages:
        """The increments, by Newton's method; after a failure it is not continued."""
        step, small = self.h * self.table.gamma, newton_tolerance(tolerance)
        scale, slopes, increments = tolerance.scale(y), [slope], []
        converged, slowest, evaluations = np.bool_(True), np.float64(0.0), np.int64(0)
        for k, guess in enumerate(self.table.predictor):
            given, residual = self.equation(k, y, slopes)
            found = newton(
                residual,
                lambda r: matrix.solution(self.problem, self.t, y, step, r),
                given + step * combination(guess, slopes),
                scale,
                small,
                eta,
                converged,
            )
            converged, eta = found.converged, found.eta
            slowest = np.maximum(slowest, found.rate)
            evaluations = evaluations + found.iterations
            increments.append(found.x)
            slopes.append((found.x - given) / step)
        return _SolvedStages(increments, converged, eta, slowest, evaluations)
