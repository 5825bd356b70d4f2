"""A solve as an operation of graphs: in a compiled function it is a host callback.

nonlinear_program   the operation; it has no derivative (program.py has)
leaves_of           its results
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import wrap
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert._engine.kinds.opaque import opaque
from wengert.scipy.optimize.solver_operation import SolverOptions

from .compiled_functions import ProgramFunctions
from .problem_data import SolverSettings
from .solve_program import solve_program

_NUMBER = Spec((), np.dtype(float))
_COUNT = Spec((), np.dtype(np.int64))


def leaves_of(outcome: Any) -> tuple[Any, ...]:
    """Solution, success, objective, status and number of iterations of an outcome.

    The solution is one vector: unknowns, multipliers of constraints, multipliers of bounds.
    """
    z = np.concatenate([outcome.x, outcome.multipliers, outcome.bound_multipliers])
    more = np.float64(outcome.fun), np.int64(outcome.status), np.int64(outcome.nit)
    return z, np.bool_(outcome.success), *more


def _nearest_on_a_line(*operands: Any, **params: Any) -> Any:
    """The outcome of the examples (the oracle)."""
    p, x = operands[0], np.asarray(operands[0]) - (np.sum(operands[0]) - 1.0) / 2.0
    multiplier = np.sum(p) - 1.0
    z = np.concatenate([x, [multiplier], np.zeros(2)])
    return z, np.bool_(True), np.sum((x - p) ** 2), np.int64(1), np.int64(3)


@opaque(name="nonlinear_program", trusted=True, oracle=_nearest_on_a_line)
def nonlinear_program(*operands: Any, functions: Any, settings: Any) -> Any:
    """The solution of a nonlinear program, whether it was found, the objective, and counts."""
    return leaves_of(solve_program(functions, settings, operands))


nonlinear_program.host_callback = BY_SCIPY


@nonlinear_program.spec
def _(*operands: Spec, functions: Any, settings: Any) -> Any:
    size = 2 * functions.size + functions.constraint_count
    return Spec((size,), np.dtype(float)), Spec((), np.dtype(bool)), _NUMBER, _COUNT, _COUNT


@nonlinear_program.examples
def _(rng: np.random.Generator) -> Any:
    with tracing_body():
        vector = Spec((2,), np.dtype(float))
        p, x = placeholder(vector), placeholder(vector)
        distance = wrap(x) - wrap(p)
        value = np.sum(distance * distance)
        total = np.sum(wrap(x)).reshape((1,))
    objective = Body(value.node, inputs=[p, x], name="the distance from p")
    constraint = Body(total.node, inputs=[p, x], name="the sum of x")
    none = SolverOptions({})
    names = ("x[0]", "x[1]"), ("total[0]",)
    settings = SolverSettings("trust-constr", None, none, SolverOptions(None), None, False, *names)
    params = {"functions": ProgramFunctions(objective, constraint, 1), "settings": settings}
    end = np.full(2, np.inf)
    one, zeros = np.ones(1), np.zeros(2)
    yield (rng.normal(size=2), -end, end, one, one, zeros, np.zeros(1), zeros), params
