"""diffrax: Tsit5, Dopri8 and Kvaerno5 with a PI controller, in both modes of differentiation.

call            value, gradient or jacobian of a problem
trajectories    final states for many parameters, by `vmap`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from native import libraries
from native.case import Call

from .problem import Problem


def solver(problem: Problem, times: Any, forward: bool) -> Callable[[Any, Any], Any]:
    """States at the times after the first, as a function of start and parameters."""
    import diffrax

    jax = libraries.jax()
    f = problem.rhs(jax.numpy)
    coefficients = (0.3, 0.3) if problem.stiff else (0.0, 1.0)  # as its documentation advises
    control = diffrax.PIDController(
        rtol=problem.rtol, atol=problem.atol, pcoeff=coefficients[0], icoeff=coefficients[1]
    )
    explicit = diffrax.Dopri8() if problem.precise else diffrax.Tsit5()
    method = diffrax.Kvaerno5() if problem.stiff else explicit
    adjoint = diffrax.ForwardMode() if forward else diffrax.RecursiveCheckpointAdjoint()
    begin, end = float(times[0]), float(times[-1])
    only_last = len(times) == 2
    save = diffrax.SaveAt(t1=True) if only_last else diffrax.SaveAt(ts=jax.numpy.asarray(times[1:]))

    def solve(y: Any, p: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(f), method, begin, end, None, y, p, saveat=save,
            stepsize_controller=control, adjoint=adjoint, max_steps=problem.steps,
        ).ys  # fmt: skip

    return solve


def states(problem: Problem, kind: str) -> Callable[[Any], tuple[Any, Any]]:
    """The last state, and all states of the loss, as a function of the parameters."""
    jax = libraries.jax()
    np_ = jax.numpy
    start = np_.asarray(problem.start)
    forward = kind == "jacobian"
    if problem.period is None:
        times = problem.times if kind == "gradient" else np.array([0.0, problem.end])
        solve = solver(problem, times, forward)

        def run(p: Any) -> Any:
            found = solve(start, p)
            return found[-1], np_.vstack([start, found])

        return run
    day = problem.times if kind == "gradient" else np.array([0.0, problem.period])
    solve, days = solver(problem, day, forward), round(problem.end / problem.period)
    dose = np_.zeros(len(problem.start)).at[0].set(problem.dose)

    def repeated(p: Any) -> Any:
        def one_day(y: Any, _: Any) -> Any:
            found = solve(y, p)
            return found[-1] + dose, np_.vstack([y, found[:-1]])

        last, kept = jax.lax.scan(one_day, start, None, length=days)
        return last, np_.vstack([*kept, last])

    return repeated


def call(problem: Problem, kind: str) -> Call:
    """The contestant."""
    jax = libraries.jax()
    run = states(problem, kind)
    if kind == "value":
        return libraries.jax_call(lambda p: run(p)[0], problem.parameters)
    if kind == "gradient":
        return libraries.jax_gradient(
            lambda p: ((1.0 - run(p)[1]) ** 2).sum() / 2.0, problem.parameters
        )

    def jacobian(p: Any) -> Any:
        def twice(p: Any) -> Any:
            last = run(p)[0]
            return last, last

        slopes, last = jax.jacfwd(twice, has_aux=True)(p)
        return last, slopes

    return libraries.jax_call(jacobian, problem.parameters)


def trajectories(problem: Problem, parameters: Any) -> Call:
    """The contestant."""
    run = states(problem, "value")
    return libraries.jax_call(libraries.jax().vmap(lambda p: run(p)[0]), parameters)
