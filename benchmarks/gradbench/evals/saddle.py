"""saddle: the minimum of a maximum, by gradient descent within gradient descent (2 + 2 unknowns).

The outer descent differentiates a function that runs the inner one, a while loop of whose steps
each takes a gradient.  The first letter of a function's name is the mode of the outer derivative,
the second that of the inner one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from gradbench.descent import backward, forward, least
from gradbench.task import Task, listed


def f(p: Any, q: Any) -> Any:
    """Least in p and greatest in q at 0."""
    return np.sum(p * p) - np.sum(q * q)


def program(outer: Any, inner: Any) -> Any:
    """Make a task of an input."""

    def run(start: Any) -> Any:
        def greatest(p: Any) -> Any:
            return least(inner(lambda q: -f(p, q)), start)

        p = least(outer(lambda p: f(p, greatest(p))), start)
        return np.concatenate([p, greatest(p)])

    compiled = wg.jit(run)
    return lambda given: Task(compiled, (np.array(given["start"], float),), listed)


FUNCTIONS = {
    "rr": program(backward, backward),
    "ff": program(forward, forward),
    "fr": program(forward, backward),
    "rf": program(backward, forward),
}
