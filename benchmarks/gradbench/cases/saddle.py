"""saddle: the one input that GradBench sends, for the four pairs of modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradbench import byhand, peers
from gradbench.task import Task
from loop_cases import nested
from loop_cases import peers as loop_cases

TITLE = "saddle: gradient descent within gradient descent"
TEXT = (
    "The saddle point of |p|^2 - |q|^2: descent along p differentiates the descent along q; *rf* "
    "differentiates the outer function in reverse, the inner one forwards. *C* is forward mode by "
    "hand, whatever the modes. JAX's outer derivative is forward in all rows."
)
DERIVATIVES = ("rr", "ff", "fr", "rf")
EXPECTED = [8.246324826140356e-06] * 4  # GradBench's answer


def inputs(quick: bool) -> Iterator[tuple[str, Any]]:
    """Where all descents begin."""
    yield "start = (1, 1)", {"start": [1.0, 1.0]}


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C and JAX."""
    start = np.array(given["start"])

    def jax(j: Any) -> Any:
        ahead = nested.pushed(j.jvp, nested.each(j.numpy), j.numpy)
        inner = j.value_and_grad if function[1] == "r" else ahead
        return nested.saddle(loop_cases.jax(), ahead, inner)

    c = byhand.both("descent", "saddle_point", (), [start], [4], lambda out: out[0].tolist())
    return c | {"JAX": peers.jax(jax, start)}
