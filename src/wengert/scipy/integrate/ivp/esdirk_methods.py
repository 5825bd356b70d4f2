"""Singly diagonally implicit Runge-Kutta methods of Kvaerno: their coefficients and their steps.

    EsdirkTable                     the form in which coefficients are stored
    KVAERNO3, KVAERNO4, KVAERNO5    methods of order 3(2), 4(3) and 5(4)
    EsdirkMethod                    the method of a table

The first stage is explicit, and is the last one of the step before; the others have the same number
gamma on the diagonal, so one factorization serves all of them. All are L-stable and stiffly
accurate: the last stage is the new state, the last but one the embedded one. The coefficients of
KVAERNO3 and KVAERNO4 are her formulas at the numbers gamma for which the last stage is L-stable,
the roots near 0.4358665215 and 0.5728160625, computed with 40 digits.
`tests/integrate/test_tables.py` checks the order conditions in rational arithmetic.

With M y' = f(t, y), the increment u of a stage solves ``M (u - g) = h gamma f(t_i, y + u)``, where
g contains the earlier stages, and its slope is ``(u - g) / (h gamma)``.  Newton's iteration runs on
values; the derivative of a stage is that of its equation, with the Jacobian at the stage, so that
it does not depend on the matrix of the iteration and exists in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .explicit_methods import combination
from .method import Evaluations, IvpProblem, Method, MethodStep, Tolerance, fixed
from .stage_equations import IterationMatrix, NearMatrix, newton, newton_tolerance, stage_root

Row = tuple[float, ...]
SOURCE = "A. Kvaerno, BIT 44 (2004) 489-502"


@dataclass(frozen=True)
class EsdirkTable:
    """A method whose s stages are ``k_i = f(t + c_i h, y + h sum_j a_ij k_j + h gamma k_i)``.

    Attributes
    ----------
    name : str
        Name of the method, as users write it.
    order : int
        Order of the new state, that of the last stage.
    error_order : int
        Order of the embedded state, that of the stage before.
    gamma : float
        The diagonal of the matrix of weights, but for the first stage, which is explicit.
    times : tuple of float
        The numbers c_i.
    a : tuple of tuple of float
        Weights of the earlier stages, rows of 1, 2, ... s - 1 numbers.
    predictor : tuple of tuple of float
        Weights of the earlier stages in the initial guess of a stage: an extrapolation in time, or
        a value of an embedded method.
    source : str
        Where the coefficients were published.
    """

    name: str
    order: int
    error_order: int
    gamma: float
    times: Row
    a: tuple[Row, ...]
    predictor: tuple[Row, ...]
    source: str


# fmt: off
KVAERNO3 = EsdirkTable(
    name="kvaerno3",
    order=3,
    error_order=2,
    gamma=0.435866521508459,
    times=(0, 0.871733043016918, 1, 1),
    a=(
        (0.435866521508459,),
        (0.49056338842178054, 0.07357009006976042),
        (0.30880996997674653, 1.4905633884217806, -1.2352398799069861),
    ),
    predictor=(
        (1,),
        (-0.14714018013952085, 1.147140180139521),
        (0.49056338842178054, 0.07357009006976042, 0.435866521508459),
    ),
    source=SOURCE,
)

KVAERNO4 = EsdirkTable(
    name="kvaerno4",
    order=4,
    error_order=3,
    gamma=0.5728160624821349,
    times=(0, 1.1456321249642698, 0.5971049876523115, 1, 1),
    a=(
        (0.5728160624821349,),
        (0.16723546202721076, -0.14294653685703412),
        (0.2626032902526958, -0.3119043274205632, 0.4764849746857325),
        (0.197216548312835, 0.17684378390637218, 0.8154421813508385, -0.7623185760521805),
    ),
    predictor=(
        (1,),
        (0.47879866962447987, 0.5212013303755201),
        (0, 0.7345033361923791, 0.26549666380762094),
        (0.2626032902526958, -0.3119043274205632, 0.4764849746857325, 0.5728160624821349),
    ),
    source=SOURCE,
)

KVAERNO5 = EsdirkTable(
    name="kvaerno5",
    order=5,
    error_order=4,
    gamma=0.26,
    times=(0, 0.52, 1.230333209967908, 0.8957659843500759, 0.43639360985864756, 1, 1),
    a=(
        (0.26,),
        (0.13, 0.8403332099679081),
        (0.22371961478320504, 0.476755323197997, -0.06470895363112615),
        (0.16648564323248322, 0.1045001884159172, 0.03631482272098715, -0.13090704451073998),
        (0.13855640231268224, 0, -0.04245337201752043, 0.02446657898003141, 0.6194303907248068),
        (0.13659751177640292, 0, -0.05496908796538376, -0.04118626728321046, 0.629933048990164,
         0.06962479448202728),
    ),
    predictor=(
        (1,),
        (-1.366025403784441, 2.3660254037844357),
        (-0.19650552613122207, 0.8113579546496623, 0.38514757148155954),
        (0.10375304369958693, 0.937994698066431, -0.04174774176601781, 0),
        (-0.17281112873898072, 0.6235784481025847, 0.5492326806363959, 0, 0),
        (0.13855640231268224, 0, -0.04245337201752043, 0.02446657898003141, 0.6194303907248068,
         0.26),
    ),
    source=SOURCE,
)
# fmt: on


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
