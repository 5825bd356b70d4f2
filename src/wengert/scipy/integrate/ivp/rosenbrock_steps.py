"""Steps of Rosenbrock methods, from their tables (rosenbrock_tables.py).

    RosenbrockMethod    the method of a table

A stage is one linear system; all stages have the same matrix, which contains the Jacobian at the
start of the step.  Nothing is iterated, so the derivative is that of the step as it is written:
second derivatives of the right-hand side are in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.autodiff.jvp_vjp import jvp

from .explicit_steps import combination
from .method import Evaluations, Method, MethodStep
from .problem import IvpProblem, Tolerance
from .rosenbrock_tables import RosenbrockTable
from .stage_systems import stage_matrix


class RosenbrockMethod(Method):
    """A Rosenbrock method, which carries the right-hand side at the start of the step.

    table : its coefficients.
    """

    is_implicit = True

    def __init__(self, table: RosenbrockTable) -> None:
        self.table = table
        self.name, self.order, self.error_order = table.name, table.order, table.error_order
        self.dense_arrays = len(table.interpolant)

    def start(self, problem: IvpProblem, t: Any, y: Any) -> Any:
        """The right-hand side."""
        return problem.f(t, y)

    def derivative(self, carry: Any) -> Any:
        """The right-hand side."""
        return carry

    def step(
        self, problem: IvpProblem, t: Any, h: Any, y: Any, carry: Any, tolerance: Tolerance
    ) -> MethodStep:
        """The stages; the last one is the estimate of the error."""
        table = self.table
        one = np.ones((), dtype=np.float64)
        _, slope = jvp(lambda time: problem.f(time, y), (t * one,), (one,))
        matrix = stage_matrix(problem, t, y, 1.0 / (h * table.gamma))
        us: list[Any] = []
        state, f = y, carry
        before: tuple[float, ...] = ()
        for i, time in enumerate(table.times):
            right = f
            if i:
                row = table.a[i - 1]
                if row[:-1] == before and row[-1] == 1:
                    state = state + us[-1]
                else:
                    state = y + combination(row, us)
                before = row
                earlier = combination(table.c[i - 1], us)
                if problem.mass is not None:
                    earlier = problem.mass @ earlier
                right = problem.f(t + time * h, state) + earlier / h
            if table.time_weights[i]:
                right = right + (h * table.time_weights[i]) * slope
            us.append(matrix.solve(right))
        new = state + us[-1]
        last = problem.f(t + h, new)
        return MethodStep(
            new, us[-1], last, carry, tuple(us), counts=Evaluations(rhs=len(us), jac=1, lu=1)
        )

    def prepared(self, problem: IvpProblem, t: Any, h: Any, y: Any, y_new: Any, dense: Any) -> Any:
        """The coefficients of the polynomial."""
        return tuple([combination(row, dense) for row in self.table.interpolant])

    def interpolate(self, theta: Any, h: Any, y: Any, y_new: Any, prepared: Any) -> Any:
        """The state at both ends, and a polynomial that is zero there."""
        value: Any = 0.0
        for term in reversed(prepared):
            value = term + theta * value
        return (1 - theta) * y + theta * (y_new + (1 - theta) * value)
