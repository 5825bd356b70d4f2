"""particle: a parameter with which a charged particle crosses the origin (Pearlmutter, Siskind).

A while loop flies the particle, by Euler's method, through the gradient of a potential; a while
loop descends along the derivative of the flight.  So a derivative is taken of a loop in whose
body a derivative is taken.  The first letter of a function's name is the mode of the outer
derivative, the second that of the inner one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from gradbench.descent import backward, forward, least
from gradbench.task import Task, number

STEP = 0.1  # of time
CHARGE = 10.0  # where both charges are on the first axis, and one, less w, on the second


def by_jvp(f: Any) -> Any:
    """The gradient of a function of two numbers by forward mode."""

    def slopes(x: Any, y: Any) -> Any:
        _, by_x = wg.jvp(lambda x: f(x, y), (x,), (1.0,))
        _, by_y = wg.jvp(lambda y: f(x, y), (y,), (1.0,))
        return by_x, by_y

    return slopes


def flight(gradient: Any) -> Any:
    """The square of where the particle crosses the axis, as a function of w."""

    def crossed(w: Any) -> Any:
        def potential(x: Any, y: Any) -> Any:
            across, up = x - CHARGE, y - (CHARGE - w)
            square = across * across
            return 1.0 / np.sqrt(square + up * up) + 1.0 / np.sqrt(square + y * y)

        def stays_above(state: Any) -> Any:
            _, y, _, v = state
            return y + STEP * v > 0.0

        def step(state: Any) -> Any:
            x, y, u, v = state
            by_x, by_y = gradient(potential)(x, y)
            return x + STEP * u, y + STEP * v, u - STEP * by_x, v - STEP * by_y

        x, y, u, v = wg.while_loop(stays_above, step, (0.0, 8.0, 0.75, 0.0))
        return (x - y / v * u) ** 2

    return crossed


def program(outer: Any, inner: Any) -> Any:
    """Make a task of an input."""
    compiled = wg.jit(lambda w: least(outer(flight(inner)), w))
    return lambda given: Task(compiled, (float(given["w"]),), number)


def by_grad(f: Any) -> Any:
    """The gradient of a function of two numbers by reverse mode."""
    return wg.grad(f, argnums=(0, 1))


FUNCTIONS = {
    "rr": program(backward, by_grad),
    "ff": program(forward, by_jvp),
    "fr": program(forward, by_grad),
    "rf": program(backward, by_jvp),
}
