"""particle: the one input that GradBench sends, for the four pairs of modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from gradbench import byhand, peers
from gradbench.task import Task, number
from loop_cases import nested
from loop_cases import peers as loop_cases

TITLE = "particle: a derivative of a loop of derivatives"
TEXT = (
    "The parameter with which a charged particle crosses the origin; *rf* differentiates the loop "
    "in reverse, and the potential in it forwards. *C* is forward mode by hand, whatever the "
    "modes. JAX cannot differentiate a while loop in reverse, so its outer derivative is forward "
    "in all rows; the inner one is as asked for."
)
DERIVATIVES = ("rr", "ff", "fr", "rf")
EXPECTED = 0.2071918746486116  # GradBench's answer


def inputs(quick: bool) -> Iterator[tuple[str, Any]]:
    """Where the descent begins."""
    yield "w = 0", {"w": 0.0}


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C and JAX."""

    def jax(j: Any) -> Any:
        loops = loop_cases.jax()
        if function[1] == "f":
            loops = replace(loops, grad=partial(forward, j))
        both = nested.pushed(j.jvp, nested.each(j.numpy), j.numpy)
        return nested.particle(loops, both)

    c = byhand.both("descent", "crossing", (), [[given["w"]]], [()], lambda out: number(out[0]))
    return c | {"JAX": peers.jax(jax, given["w"], answer=number)}


def forward(j: Any, f: Any, argnums: Any) -> Any:
    """The gradient of a function of two numbers by forward mode."""

    def slopes(x: Any, y: Any) -> Any:
        one = j.numpy.ones_like(y)
        _, by_x = j.jvp(lambda x: f(x, y), (x,), (one,))
        _, by_y = j.jvp(lambda y: f(x, y), (y,), (one,))
        return by_x, by_y

    return slopes
