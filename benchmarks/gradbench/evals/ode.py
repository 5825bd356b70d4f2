"""ode: steps of the classical Runge-Kutta method for y_0' = x_0, y_i' = x_i y_(i-1), from 0 to 2.

The derivative is the gradient of the last element at the end by all x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from gradbench.task import Task, listed

END = 2.0


def solve(x: Any, steps: int) -> Any:
    """Return y at the end, from y = 0."""
    h = END / steps

    def rate(y: Any) -> Any:
        return x * np.concatenate([np.ones(1), y[:-1]])

    def step(y: Any, _: Any) -> Any:
        a = rate(y)
        b = rate(y + h / 2 * a)
        c = rate(y + h / 2 * b)
        d = rate(y + h * c)
        return y + h / 6 * (a + 2 * b + 2 * c + d), None

    return wg.scan(step, np.zeros_like(x), None, length=steps)[0]


def primal(given: dict[str, Any]) -> Task:
    """All of y at the end."""
    steps = given["s"]
    return Task(wg.jit(lambda x: solve(x, steps)), (np.array(given["x"]),), listed)


def gradient(given: dict[str, Any]) -> Task:
    """The gradient of the last element."""
    steps = given["s"]
    return Task(wg.jit(wg.grad(lambda x: solve(x, steps)[-1])), (np.array(given["x"]),), listed)


FUNCTIONS = {"primal": primal, "gradient": gradient}
