"""Values by numbalsoda (LSODA and DOP853 in C and Fortran) and by SciPy, with compiled functions.

numbalsoda      a problem by LSODA if it is stiff, otherwise by DOP853
scipy           the same methods of `solve_ivp`, whose loop is Python; Radau if LSODA fails
trajectories    final states for many parameters by numbalsoda, in a compiled loop
"""

from __future__ import annotations

from typing import Any

import numpy as np

from native.case import Call, Cannot

from .problem import Problem

METHODS = {True: "LSODA", False: "DOP853"}  # by stiffness


def c_function(problem: Problem) -> Any:
    """The right-hand side as numbalsoda calls it."""
    from numba import carray, cfunc, njit
    from numbalsoda import lsoda_sig

    inner = problem.loops(njit)
    n, count = len(problem.start), len(problem.parameters)

    @cfunc(lsoda_sig)
    def call(t: Any, y: Any, out: Any, p: Any) -> Any:
        inner(t, carray(y, (n,)), carray(p, (count,)), carray(out, (n,)))

    return call


def compiled(problem: Problem) -> Any:
    """The last state as a compiled function of the parameters."""
    from numba import njit
    from numbalsoda import dop853, lsoda

    address, method = c_function(problem).address, lsoda if problem.stiff else dop853
    rtol, atol, start = problem.rtol, problem.atol, problem.start
    dose = 0.0 if problem.period is None else problem.dose
    period = problem.end if problem.period is None else problem.period
    days, times = round(problem.end / period), np.array([0.0, period])

    @njit
    def run(p: Any) -> Any:
        y = start.copy()
        for _ in range(days):
            found, _ok = method(address, y, times, p, rtol, atol)
            y = found[-1].copy()
            y[0] += dose
        return y

    return run


def numbalsoda(problem: Problem, kind: str) -> Call:
    """The contestant."""
    if kind != "value":
        raise Cannot("numbalsoda has no derivatives")
    return Call(compiled(problem), (problem.parameters,))


def scipy(problem: Problem, kind: str) -> Call:
    """The contestant."""
    if kind != "value":
        raise Cannot("solve_ivp has no derivatives")
    from numba import njit
    from scipy.integrate import solve_ivp

    inner, n = problem.loops(njit), len(problem.start)

    @njit
    def f(t: Any, y: Any, p: Any) -> Any:
        out = np.empty(n)
        inner(t, y, p, out)
        return out

    period = problem.end if problem.period is None else problem.period
    method = METHODS[problem.stiff]

    def solved(y: Any, p: Any) -> Any:
        span, tolerances = (0.0, period), {"rtol": problem.rtol, "atol": problem.atol}
        return solve_ivp(f, span, y, method, [period], args=(p,), **tolerances)

    if not solved(problem.start, problem.parameters).success:
        method = "Radau"

    def run(p: Any) -> Any:
        y = problem.start
        for _ in range(round(problem.end / period)):
            y = solved(y, p).y[:, -1]
            if problem.period is not None:
                y = y.copy()
                y[0] += problem.dose
        return y

    return Call(run, (problem.parameters,))


def trajectories(problem: Problem, parameters: Any) -> Call:
    """The contestant."""
    from numba import njit

    one, n = compiled(problem), len(problem.start)

    @njit
    def run(ps: Any) -> Any:
        out = np.empty((ps.shape[0], n))
        for i in range(ps.shape[0]):
            out[i] = one(ps[i])
        return out

    return Call(run, (parameters,))
