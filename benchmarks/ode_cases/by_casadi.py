"""CasADi's integrators CVODES and IDAS, with their forward sensitivities and adjoints.

function    value, gradient or jacobian of a problem as a CasADi function of the parameters
call        the same, to be timed
"""

from __future__ import annotations

from typing import Any

import numpy as np

from native.case import Call

from .problem import Problem


def rhs(problem: Problem, t: Any, y: Any, p: Any) -> Any:
    """The right-hand side as a scalar graph."""
    import casadi as c

    if problem.by_loops is not None:
        out = [c.SX(0)] * len(problem.start)
        problem.by_loops(t, y, p, out)
    else:
        assert problem.f is not None
        out = list(problem.f(t, y, p))
    return c.vertcat(*out)


def integrator(problem: Problem, times: Any, tolerances: tuple[float, float], solver: str) -> Any:
    """States at the given times, the first of which is the start."""
    import casadi as c

    t, y = c.SX.sym("t"), c.SX.sym("y", len(problem.start))
    p = c.SX.sym("p", len(problem.parameters))
    rtol, atol = tolerances
    options: dict[str, Any] = {"reltol": rtol, "abstol": atol, "max_num_steps": 200_000}
    if solver == "cvodes" and not problem.stiff:
        options |= {"linear_multistep_method": "adams"}
        options |= {"nonlinear_solver_iteration": "functional"}
    dae = {"t": t, "x": y, "p": p, "ode": rhs(problem, t, y, p)}
    return c.integrator(
        "solved", solver, dae, float(times[0]), list(map(float, times[1:])), options
    )


def states(problem: Problem, p: Any, kind: str, tolerances: Any, solver: str) -> tuple[Any, Any]:
    """Of symbols p: the last state, and all states of the loss."""
    import casadi as c

    y: Any = c.DM(problem.start)
    if problem.period is None:
        times = problem.times if kind == "gradient" else np.array([0.0, problem.end])
        found = integrator(problem, times, tolerances, solver)(x0=y, p=p)["xf"]
        return found[:, -1], c.horzcat(y, found)
    day = problem.times if kind == "gradient" else np.array([0.0, problem.period])
    step = integrator(problem, day, tolerances, solver)
    dose = np.zeros(len(problem.start))
    dose[0] = problem.dose
    kept = []
    for _ in range(round(problem.end / problem.period)):
        found = step(x0=y, p=p)["xf"]
        kept.append(c.horzcat(y, found[:, :-1]))
        y = found[:, -1] + c.DM(dose)
    return y, c.horzcat(*kept, y)


def function(problem: Problem, kind: str, tolerances: Any = None, solver: str = "cvodes") -> Any:
    """``kind`` is value, gradient (with the loss) or jacobian (with the last state).

    "gradient, forward" is the gradient by forward sensitivities.
    """
    import casadi as c

    p = c.MX.sym("p", len(problem.parameters))
    tolerances = tolerances or (problem.rtol, problem.atol)
    kind, _, mode = kind.partition(", ")
    last, all_states = states(problem, p, kind, tolerances, solver)
    if kind == "value":
        return c.Function("f", [p], [last])
    if kind == "jacobian":
        return c.Function("f", [p], [last, c.jacobian(last, p)])
    loss = c.sumsqr(1.0 - all_states) / 2.0
    if mode == "forward":
        slopes = c.mtimes(c.vec(all_states - 1.0).T, c.jacobian(c.vec(all_states), p))
        return c.Function("f", [p], [loss, slopes.T])
    return c.Function("f", [p], [loss, c.gradient(loss, p)])


def call(problem: Problem, kind: str) -> Call:
    """The contestant; matrices are columns after columns, others rows after rows."""
    import casadi as c

    def numbers(result: Any) -> Any:
        found = result if isinstance(result, tuple) else (result,)
        return [np.array(matrix) for matrix in found]

    return Call(function(problem, kind), (c.DM(problem.parameters),), numbers=numbers)
