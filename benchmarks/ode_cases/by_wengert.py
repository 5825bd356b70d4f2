"""wengert.integrate: compiled value, discrete adjoint, forward sensitivities.

call            value, gradient or jacobian of a problem
trajectories    final states for many parameters, by `vmap`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from native.case import Call

from .problem import Problem

STIFF, EXPLICIT, PRECISE = "rodas5p", "tsit5", "DOP853"


def states(problem: Problem, kind: str, method: str) -> Callable[[Any], tuple[Any, Any]]:
    """The last state, and all states of the loss, as a function of the parameters."""
    import wengert as wg
    from wengert import integrate

    f, start = problem.rhs(np), problem.start
    options: dict[str, Any] = {"method": method, "rtol": problem.rtol, "atol": problem.atol}
    is_loss = kind == "gradient"
    if problem.period is None:
        if is_loss:

            def run(p: Any) -> Any:
                found = integrate.solve(f, problem.times, start, (p,), **options).y
                return found[-1], found

        else:

            def run(p: Any) -> Any:
                last = integrate.solve(f, (0.0, problem.end), start, (p,), **options).y
                return last, last

        return run
    days, dose = round(problem.end / problem.period), np.zeros(len(start))
    dose[0] = problem.dose

    def one_day(y: Any, p: Any) -> Any:
        if is_loss:
            found = integrate.solve(f, problem.times, y, (p,), **options).y
            return found[-1] + dose, found[:-1]
        last = integrate.solve(f, (0.0, problem.period), y, (p,), **options).y + dose
        return last, last[:0]

    def repeated(p: Any) -> Any:
        last, kept = wg.scan(lambda y, _: one_day(y, p), start, None, length=days)
        return last, np.concatenate((kept.reshape(-1, len(start)), last[None]))

    return repeated


def chosen(problem: Problem) -> str:
    """The method."""
    if problem.stiff:
        return STIFF
    return PRECISE if problem.precise else EXPLICIT


def function(problem: Problem, kind: str, method: str | None = None) -> Any:
    """Of the parameters; not compiled."""
    import wengert as wg

    run = states(problem, kind, method or chosen(problem))
    if kind == "value":
        return lambda p: run(p)[0]
    if kind == "gradient":
        return wg.value_and_grad(lambda p: np.sum((1.0 - run(p)[1]) ** 2) / 2.0)

    def jacobian(p: Any) -> Any:
        def moved(direction: Any) -> Any:
            return wg.jvp(lambda p: run(p)[0], (p,), (direction,))

        values, slopes = wg.vmap(moved)(np.eye(len(p)))
        return values[0], slopes.T

    return jacobian


def call(problem: Problem, kind: str, method: str | None = None) -> Call:
    """The contestant."""
    import wengert as wg

    return Call(wg.jit(function(problem, kind, method)), (problem.parameters,))


def trajectories(problem: Problem, parameters: Any) -> Call:
    """The contestant."""
    import wengert as wg

    return Call(wg.jit(wg.vmap(function(problem, "value"))), (parameters,))
