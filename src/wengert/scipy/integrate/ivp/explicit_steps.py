"""Steps of explicit Runge-Kutta methods, from their tables (explicit_tables.py).

ExplicitMethod    the method of a table
Dop853            DOP853, with its norm of two error estimates
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .explicit_tables import ExplicitTable
from .method import Evaluations, Method, MethodStep
from .problem import IvpProblem, Tolerance


def combination(weights: Sequence[float], ks: Sequence[Any]) -> Any:
    """The sum of vectors with weights; zero weights cost nothing."""
    total: Any = None
    for weight, k in zip(weights, ks, strict=False):
        if weight:
            term = k if weight == 1.0 else weight * k
            total = term if total is None else total + term
    return 0.0 * ks[0] if total is None else total


class ExplicitMethod(Method):
    """An explicit Runge-Kutta method whose last stage is the first of the next step.

    table : its coefficients.
    """

    def __init__(self, table: ExplicitTable) -> None:
        self.table = table
        self.name, self.order, self.error_order = table.name, table.order, table.error_order
        self.dense_counts = Evaluations(len(table.extra_c))
        self.dense_arrays = len(table.b) + 1 + len(table.extra_c)

    def start(self, problem: IvpProblem, t: Any, y: Any) -> Any:
        """The derivative."""
        return problem.f(t, y)

    def derivative(self, carry: Any) -> Any:
        """The derivative."""
        return carry

    def step(
        self, problem: IvpProblem, t: Any, h: Any, y: Any, carry: Any, tolerance: Tolerance
    ) -> MethodStep:
        """The stages; the derivative at the end is the last of them."""
        table = self.table
        ks = [carry]
        for c, row in zip(table.c[1:], table.a, strict=True):
            ks.append(problem.f(t + c * h, y + h * combination(row, ks)))
        new = y + h * combination(table.b, ks)
        ks.append(problem.f(t + h, new))
        error = h * combination(table.error, ks)
        return MethodStep(new, error, ks[-1], carry, ks, counts=Evaluations(len(ks) - 1))

    def prepared(self, problem: IvpProblem, t: Any, h: Any, y: Any, y_new: Any, dense: Any) -> Any:
        """The stages, and the stages that only the interpolant has."""
        ks = list(dense)
        for c, row in zip(self.table.extra_c, self.table.extra_a, strict=True):
            ks.append(problem.f(t + c * h, y + h * combination(row, ks)))
        return ks

    def interpolate(self, theta: Any, h: Any, y: Any, y_new: Any, prepared: Any) -> Any:
        """A polynomial in theta for each stage."""
        total: Any = None
        for k, row in zip(prepared, self.table.interpolant, strict=True):
            if any(row):
                term = k * _polynomial(theta, row)
                total = term if total is None else total + term
        return y + h * total


def _polynomial(theta: Any, row: Sequence[float]) -> Any:
    """The polynomial without constant term with coefficients of theta, theta**2, ..."""
    value: Any = 0.0
    for coefficient in reversed(row):
        value = (value + coefficient) * theta
    return value


class Dop853(ExplicitMethod):
    """DOP853; see Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, II.10."""

    def step(
        self, problem: IvpProblem, t: Any, h: Any, y: Any, carry: Any, tolerance: Tolerance
    ) -> MethodStep:
        """The stages, with two estimates of the error."""
        found = super().step(problem, t, h, y, carry, tolerance)
        third = combination(self.table.error_3, found.dense)
        return found._replace(error=(combination(self.table.error, found.dense), third))

    def error_norm(self, step: MethodStep, h: Any, scale: Any) -> Any:
        """The norm of the estimate of order 5, corrected by that of order 3."""
        squares = []
        for error in step.error:
            relative = np.abs(error / scale)
            squares.append(np.sum(relative * relative))
        fifth, third = squares
        below = fifth + 0.01 * third
        is_zero = below == 0
        size = np.sqrt(np.where(is_zero, 1.0, below) * float(scale.size))
        return np.where(is_zero, 0.0, np.abs(h) * fifth / size)

    def interpolate(self, theta: Any, h: Any, y: Any, y_new: Any, prepared: Any) -> Any:
        """A polynomial of degree 7 from the state and the derivative at both ends and 4 more."""
        ks = prepared
        difference = y_new - y
        count = len(self.table.b)
        terms = [
            difference,
            h * ks[0] - difference,
            2 * difference - h * (ks[count] + ks[0]),
            *[h * combination(row, ks) for row in self.table.dop853_interpolant],
        ]
        value: Any = 0.0
        for i, term in enumerate(reversed(terms)):
            value = (value + term) * (theta if i % 2 == 0 else 1 - theta)
        return y + value
