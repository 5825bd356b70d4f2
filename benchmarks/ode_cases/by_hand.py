"""What experts write by hand for numba.

    explicit        Tsit5 with adaptive steps, which only the first components control, so that
                    further ones can be sensitivities; states at given times by its interpolant
    lotka_volterra  value, loss and derivatives with the sensitivity equations of the problem
    rosenbrock23    the method of Shampine and Reichelt (1997, ode23s) for three components
    robertson       its Jacobian, and the value

The functions are plain Python until they are compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.scipy.integrate.ivp.explicit_methods import TSIT5

from .problem import Problem

STAGES = 7
WEIGHTS = np.zeros((STAGES, STAGES))
for _row, _given in enumerate((*TSIT5.a, TSIT5.b)):
    WEIGHTS[_row + 1, : len(_given)] = _given
TIMES = np.array([*TSIT5.c, 1.0])
ERRORS = np.array(TSIT5.error)
INTERPOLANT = np.array(TSIT5.interpolant)


def explicit(f: Any, compiled: Callable[..., Any], controlled: int) -> Any:
    """``solve(y, p, times, rtol, atol)``: states at the times, of which the first is the start.

    f : writes the derivative, ``f(t, y, p, out)``.
    controlled : components whose error controls the steps.
    """

    def attempt(t: float, h: float, y: Any, p: Any, k: Any, stage: Any) -> None:
        for s in range(1, STAGES):
            for i in range(y.size):
                total = 0.0
                for j in range(s):
                    total += WEIGHTS[s, j] * k[j, i]
                stage[i] = y[i] + h * total
            f(t + TIMES[s] * h, stage, p, k[s])

    attempt = compiled(attempt)

    def norm(h: float, y: Any, new: Any, k: Any, rtol: float, atol: float) -> float:
        total = 0.0
        for i in range(controlled):
            error = 0.0
            for j in range(STAGES):
                error += ERRORS[j] * k[j, i]
            error *= h / (atol + rtol * max(abs(y[i]), abs(new[i])))
            total += error * error
        return (total / controlled) ** 0.5

    norm = compiled(norm)

    def solve(y: Any, p: Any, times: Any, rtol: float, atol: float) -> Any:
        y = y.copy()
        k, new = np.empty((STAGES, y.size)), np.empty(y.size)
        kept = np.empty((times.size, y.size))
        kept[0], at = y, 1
        t, end, h = times[0], times[-1], 1e-3 * (times[-1] - times[0])
        f(t, y, p, k[0])
        while t < end:
            h = min(h, end - t)
            attempt(t, h, y, p, k, new)
            error = norm(h, y, new, k, rtol, atol)
            if error < 1.0:
                last = t + h if t + h < end else end
                while at < times.size and times[at] <= last:
                    x = (times[at] - t) / h
                    for i in range(y.size):
                        total = 0.0
                        for j in range(STAGES):
                            power, value = x, 0.0
                            for coefficient in INTERPOLANT[j]:
                                value += coefficient * power
                                power *= x
                            total += value * k[j, i]
                        kept[at, i] = y[i] + h * total
                    at += 1
                t = last
                y[:] = new
                k[0] = k[STAGES - 1]
            h *= min(10.0, max(0.2, 0.9 * max(error, 1e-10) ** -0.2))
        return kept

    return compiled(solve)


def lotka_volterra_sensitivities(t: float, y: Any, p: Any, out: Any) -> None:
    """The derivative of two states and of their derivatives with respect to p."""
    prey, predators = y[0], y[1]
    met = prey * predators
    out[0] = p[0] * prey - p[1] * met
    out[1] = met - p[2] * predators
    for k in range(3):
        by_prey, by_predators = y[2 + 2 * k], y[3 + 2 * k]
        by_met = by_prey * predators + prey * by_predators
        out[2 + 2 * k] = p[0] * by_prey - p[1] * by_met
        out[3 + 2 * k] = by_met - p[2] * by_predators
    out[2] += prey
    out[4] -= met
    out[7] -= predators


def lotka_volterra(problem: Problem, kind: str, compiled: Callable[..., Any]) -> Any:
    """A function of the parameters."""
    if kind == "value":
        return value(problem, compiled)
    solve = explicit(compiled(lotka_volterra_sensitivities), compiled, 2)
    start = np.concatenate([problem.start, np.zeros(6)])
    rtol, atol = problem.rtol, problem.atol
    times = problem.times if kind == "gradient" else np.array([0.0, problem.end])

    def jacobian(p: Any) -> Any:
        last = solve(start, p, times, rtol, atol)[-1]
        return last[:2].copy(), last[2:].copy().reshape(3, 2).T.copy()

    def gradient(p: Any) -> Any:
        states = solve(start, p, times, rtol, atol)
        total, by = 0.0, np.zeros(3)
        for m in range(times.size):
            for i in range(2):
                off = states[m, i] - 1.0
                total += 0.5 * off * off
                for k in range(3):
                    by[k] += off * states[m, 2 + 2 * k + i]
        return total, by

    return compiled(jacobian if kind == "jacobian" else gradient)


def value(problem: Problem, compiled: Callable[..., Any]) -> Any:
    """The last state of a problem that is not stiff."""
    n = len(problem.start)
    solve = explicit(problem.loops(compiled), compiled, n)
    start, rtol, atol = problem.start, problem.rtol, problem.atol
    period = problem.end if problem.period is None else problem.period
    dose = 0.0 if problem.period is None else problem.dose
    days, times = round(problem.end / period), np.array([0.0, period])

    def run(p: Any) -> Any:
        y = start.copy()
        for _ in range(days):
            y = solve(y, p, times, rtol, atol)[-1].copy()
            y[0] += dose
        return y

    return compiled(run)


GAMMA, THIRD = 1.0 / (2.0 + np.sqrt(2.0)), 6.0 + np.sqrt(2.0)


def rosenbrock23(f: Any, jacobian: Any, compiled: Callable[..., Any]) -> Any:
    """``solve(y, p, end, rtol, atol)`` for three components: the last state.

    f, jacobian : write into arrays: ``f(t, y, p, out)``.
    """

    def solved(w: Any, b: Any, x: Any) -> None:
        c0 = w[1, 1] * w[2, 2] - w[1, 2] * w[2, 1]
        c1 = w[1, 2] * w[2, 0] - w[1, 0] * w[2, 2]
        c2 = w[1, 0] * w[2, 1] - w[1, 1] * w[2, 0]
        scale = 1.0 / (w[0, 0] * c0 + w[0, 1] * c1 + w[0, 2] * c2)
        d1, d2 = w[0, 2] * w[2, 1] - w[0, 1] * w[2, 2], w[0, 0] * w[2, 2] - w[0, 2] * w[2, 0]
        d3, e1 = w[0, 1] * w[2, 0] - w[0, 0] * w[2, 1], w[0, 1] * w[1, 2] - w[0, 2] * w[1, 1]
        e2, e3 = w[0, 2] * w[1, 0] - w[0, 0] * w[1, 2], w[0, 0] * w[1, 1] - w[0, 1] * w[1, 0]
        b0, b1, b2 = b[0], b[1], b[2]
        x[0] = (c0 * b0 + d1 * b1 + e1 * b2) * scale
        x[1] = (c1 * b0 + d2 * b1 + e2 * b2) * scale
        x[2] = (c2 * b0 + d3 * b1 + e3 * b2) * scale

    solved = compiled(solved)

    def solve(y: Any, p: Any, end: float, rtol: float, atol: float) -> Any:
        y = y.copy()
        w, new, b = np.empty((3, 3)), np.empty(3), np.empty(3)
        f0, f1, f2 = np.empty(3), np.empty(3), np.empty(3)
        k1, k2, k3 = np.empty(3), np.empty(3), np.empty(3)
        t, h, is_new = 0.0, 1e-6, True
        j = np.empty((3, 3))
        f(t, y, p, f0)
        while t < end:
            h = min(h, end - t)
            if is_new:
                jacobian(t, y, p, j)
            for i in range(3):
                for m in range(3):
                    w[i, m] = (1.0 if i == m else 0.0) - h * GAMMA * j[i, m]
            solved(w, f0, k1)
            for i in range(3):
                new[i] = y[i] + 0.5 * h * k1[i]
            f(t + 0.5 * h, new, p, f1)
            for i in range(3):
                b[i] = f1[i] - k1[i]
            solved(w, b, k2)
            for i in range(3):
                k2[i] += k1[i]
                new[i] = y[i] + h * k2[i]
            f(t + h, new, p, f2)
            for i in range(3):
                b[i] = f2[i] - THIRD * (k2[i] - f1[i]) - 2.0 * (k1[i] - f0[i])
            solved(w, b, k3)
            total = 0.0
            for i in range(3):
                error = h / 6.0 * (k1[i] - 2.0 * k2[i] + k3[i])
                error /= atol + rtol * max(abs(y[i]), abs(new[i]))
                total += error * error
            norm = (total / 3.0) ** 0.5
            is_new = norm < 1.0
            if is_new:
                t += h
                y[:] = new
                f0[:] = f2
            h *= min(10.0, max(0.2, 0.9 * max(norm, 1e-10) ** (-1.0 / 3.0)))
        return y

    return compiled(solve)


def robertson_jacobian(t: float, y: Any, p: Any, out: Any) -> None:
    """The derivative of the right-hand side with respect to the state."""
    second, by_y1, by_y2 = 2.0 * p[1] * y[1], p[2] * y[2], p[2] * y[1]
    out[0, 0], out[0, 1], out[0, 2] = -p[0], by_y1, by_y2
    out[1, 0], out[1, 1], out[1, 2] = p[0], -second - by_y1, -by_y2
    out[2, 0], out[2, 1], out[2, 2] = 0.0, second, 0.0


def robertson(problem: Problem, compiled: Callable[..., Any]) -> Any:
    """The last state as a function of the parameters."""
    solve = rosenbrock23(problem.loops(compiled), compiled(robertson_jacobian), compiled)
    start, end, rtol, atol = problem.start, problem.end, problem.rtol, problem.atol
    return compiled(lambda p: solve(start, p, end, rtol, atol))
