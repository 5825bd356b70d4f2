"""llsq: how far a polynomial with coefficients x is from the sign function, in squares.

    y(x) = sum_i (sign(t_i) - x_0 - x_1 t_i - x_2 t_i**2 - ...)**2 / 2,    t_i = -1 + 2 i / (n - 1)

The polynomial is evaluated at all points at once by Horner's rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from gradbench.task import Task, listed, number


def objective(n: int) -> Callable[[Any], Any]:
    """Return y for n points."""

    def y(x: Any) -> Any:
        t = -1.0 + np.arange(n, like=x) * 2.0 / (n - 1)

        def horner(p: Any, coefficient: Any) -> Any:
            return p * t + coefficient, None

        p, _ = wg.scan(horner, np.zeros(n), x, reverse=True)
        return 0.5 * np.sum((np.sign(t) - p) ** 2)

    return y


def primal(given: dict[str, Any]) -> Task:
    """The value."""
    return Task(wg.jit(objective(given["n"])), (np.array(given["x"]),), number)


def gradient(given: dict[str, Any]) -> Task:
    """The gradient with respect to the coefficients."""
    return Task(wg.jit(wg.grad(objective(given["n"]))), (np.array(given["x"]),), listed)


FUNCTIONS = {"primal": primal, "gradient": gradient}
