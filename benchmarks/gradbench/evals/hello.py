"""hello: the square of a number and its derivative.

GradBench's first eval, which shows that the protocol works: its messages have a bare number as
input, and neither min_runs nor min_seconds.
"""

from __future__ import annotations

from typing import Any

import wengert as wg
from gradbench.task import Task, number


def square(x: Any) -> Any:
    """Return x**2."""
    return x * x


def task(function: Any) -> Any:
    """Make a task of a number."""
    compiled = wg.jit(function)
    return lambda x: Task(compiled, (float(x),), number)


FUNCTIONS = {"square": task(square), "double": task(wg.grad(square))}
