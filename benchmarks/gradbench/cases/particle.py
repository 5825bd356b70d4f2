"""particle: the one input that GradBench sends, for the four pairs of modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradbench import byhand
from gradbench.task import Task, number

TITLE = "particle: a derivative of a loop of derivatives"
TEXT = (
    "The parameter with which a charged particle crosses the origin; *rf* differentiates the loop "
    "in reverse, and the potential in it forwards. *C* is forward mode by hand, whatever the "
    "modes. JAX cannot differentiate a while loop in reverse."
)
DERIVATIVES = ("rr", "ff", "fr", "rf")
EXPECTED = 0.2071918746486116  # GradBench's answer


def inputs(quick: bool) -> Iterator[tuple[str, Any]]:
    """Where the descent begins."""
    yield "w = 0", {"w": 0.0}


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C."""
    return byhand.both("descent", "crossing", (), [[given["w"]]], [()],
                       lambda out: number(out[0]))  # fmt: skip
