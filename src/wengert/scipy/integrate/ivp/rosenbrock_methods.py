"""Rosenbrock methods: their coefficients and their steps.

    RosenbrockTable     the form in which coefficients are stored
    RODAS4              Hairer and Wanner 4(3), 6 stages
    RODAS5P             Steinebach 5(4), 8 stages
    RosenbrockMethod    the method of a table

Both are L-stable and stiffly accurate, so that they solve differential-algebraic equations of index
1. `tests/integrate/test_tables.py` checks the order conditions in rational arithmetic.

A stage is one linear system; all stages have the same matrix, which contains the Jacobian at the
start of the step.  Nothing is iterated, so the derivative is that of the step as it is written:
second derivatives of the right-hand side are in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._engine.autodiff.jvp_vjp import jvp

from .explicit_methods import combination
from .method import Evaluations, IvpProblem, Method, MethodStep, Tolerance
from .stage_systems import stage_matrix

Row = tuple[float, ...]


@dataclass(frozen=True)
class RosenbrockTable:
    """A Rosenbrock method for ``M y' = f(t, y)`` without products with the Jacobian J [1]_.

    The s stages solve linear systems with one matrix::

        (M / (h gamma) - J) u_i = f(t + c_i h, y + sum_j a_ij u_j)
                                  + M sum_j c_ij / h u_j + h d_i df/dt(t, y)

    The new state is ``y + sum_i m_i u_i``. The methods here are stiffly accurate: the weights m are
    those of the last stage and 1, and the last u is the estimate of the error.

    Attributes
    ----------
    name : str
        Name of the method, as users write it.
    order : int
        Order of the new state.
    error_order : int
        Order of the embedded state.
    gamma : float
    times : tuple of float
        The numbers c_i.
    time_weights : tuple of float
        The numbers d_i.
    a, c : tuple of tuple of float
        Rows of 1, 2, ... s - 1 numbers, for the stages after the first.
    interpolant : tuple of tuple of float
        Rows of s numbers; with ``p_k = sum_i interpolant[k][i] u_i``, the state at t + x h is
        ``(1 - x) y + x (y1 + (1 - x) (p_0 + x (p_1 + x p_2 ...)))``.
    source : str
        Where the coefficients were published.

    References
    ----------
    .. [1] E. Hairer and G. Wanner, Solving Ordinary Differential Equations II (1996), IV.7.
    """

    name: str
    order: int
    error_order: int
    gamma: float
    times: Row
    time_weights: Row
    a: tuple[Row, ...]
    c: tuple[Row, ...]
    interpolant: tuple[Row, ...]
    source: str


# fmt: off
RODAS4 = RosenbrockTable(
    name="rodas4",
    order=4,
    error_order=3,
    gamma=0.25,
    times=(0, 0.386, 0.21, 0.63, 1, 1),
    time_weights=(0.25, -0.1043, 0.1035, -0.0362, 0, 0),
    a=(
        (1.544,),
        (0.9466785280815826, 0.2557011698983284),
        (3.314825187068521, 2.896124015972201, 0.9986419139977817),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895, 1),
    ),
    c=(
        (-5.6688,),
        (-2.430093356833875, -0.2063599157091915),
        (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
        (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616),
        (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136,
         -6.058818238834054),
    ),
    interpolant=(
        (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823,
         1.025137723295662, 0),
        (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386,
         -6.594389125716872, 0),
    ),
    source="E. Hairer and G. Wanner, Solving Ordinary Differential Equations II (1996), VI.4",
)

RODAS5P = RosenbrockTable(
    name="rodas5p",
    order=5,
    error_order=4,
    gamma=0.21193756319429014,
    times=(0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664,
           1, 1, 1),
    time_weights=(0.21193756319429014, -0.42387512638858027, -0.3384627126235924,
                  1.8046452872882734, 2.325825639765069, 0, 0, 0),
    a=(
        (3.0,),
        (2.849394379747939, 0.45842242204463923),
        (-6.954028509809101, 2.489845061869568, -10.358996098473584),
        (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
        (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256,
         0.030198172008377946),
        (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256,
         0.030198172008377946, 1),
        (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256,
         0.030198172008377946, 1, 1),
    ),
    c=(
        (-14.155112264123755,),
        (-17.97296035885952, -2.859693295451294),
        (147.12150275711716, -1.41221402718213, 71.68940251302358),
        (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
        (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125,
         -0.6610691825249471),
        (30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783,
         -19.097331116725623, -28.087943162872662),
        (37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047,
         -40.06618937091002, -54.66780262877968, -9.48861652309627),
    ),
    interpolant=(
        (25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204,
         0.524948541321073, 1.1241088310450404, 0.4272876194431874, -0.17202221070155493),
        (-9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796,
         20.176138334709044, 15.98066361424651, -6.789040303419874, -6.710236069923372),
        (11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643,
         -52.072871366152654, -59.78993625266729, -0.15582684282751913, 4.883087185713722),
    ),
    source="G. Steinebach, BIT Numer. Math. 63 (2023) 27",
)
# fmt: on


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
