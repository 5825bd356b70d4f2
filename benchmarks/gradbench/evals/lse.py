"""lse: the logarithm of a sum of exponentials, written with maximum, exponential, sum, logarithm.

GradBench asks for these primitives, and not for a library's function that has a rule of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from gradbench.task import Task, listed, number


def logsumexp(x: Any) -> Any:
    """Return log(sum(exp(x))), without overflow."""
    largest = np.max(x)
    return largest + np.log(np.sum(np.exp(x - largest)))


def primal(given: dict[str, Any]) -> Task:
    """The value."""
    return Task(wg.jit(logsumexp), (np.array(given["x"]),), number)


def gradient(given: dict[str, Any]) -> Task:
    """The gradient."""
    return Task(wg.jit(wg.grad(logsumexp)), (np.array(given["x"]),), listed)


FUNCTIONS = {"primal": primal, "gradient": gradient}
