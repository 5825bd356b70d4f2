"""Gradient descent, as GradBench's particle and saddle use it: their results depend on its rules.

    least       where a function is least
    forward     a function's value and gradient by forward mode, one direction after the other
    backward    the same by reverse mode

A step of eta that lowers the function is taken; ten such in a row double eta, and one that does
not lower it halves it.  It ends where the gradient or the step is shorter than 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg

SHORT = 1e-5
Function = Callable[[Any], Any]


def forward(f: Function) -> Function:
    """Value and gradient by forward mode: a number, or all unit vectors at once."""

    def both(x: Any) -> Any:
        if np.ndim(x) == 0:
            return wg.jvp(f, (x,), (np.ones_like(x),))
        along = lambda direction: wg.jvp(f, (x,), (direction,))  # noqa: E731
        return wg.vmap(along, out_axes=(None, 0))(np.eye(len(x)))

    return both


backward = wg.value_and_grad


def length(v: Any) -> Any:
    """Of a number or a vector."""
    return np.sqrt(np.sum(v * v))


def least(both: Function, x: Any) -> Any:
    """Where a function is least, from x on; ``both`` gives its value and its gradient."""

    def tried(state: Any) -> Any:
        x, value, slope, eta, lowered, _ = state
        new = x - eta * slope
        there, slope_there = both(new)
        return wg.cond(
            there < value,
            lambda: (new, there, slope_there, eta, lowered + 1, True),
            lambda: (x, value, slope, 0.5 * eta, 0, True),
        )

    def step(state: Any) -> Any:
        x, value, slope, eta, lowered, _ = state
        ended = (x, value, slope, eta, lowered, False)
        doubled = (x, value, slope, 2.0 * eta, 0, True)
        near = length(slope) <= SHORT
        short = length(eta * slope) <= SHORT
        return wg.cond(
            near | (short & (lowered < 10)),
            lambda: ended,
            lambda: wg.cond(lowered == 10, lambda: doubled, lambda: tried(state)),
        )

    first = (x, *both(x), SHORT, 0, True)
    return wg.while_loop(lambda state: state[-1], step, first)[0]
