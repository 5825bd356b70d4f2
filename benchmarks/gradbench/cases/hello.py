"""hello: a number squared, four times in turn with its derivative.

No benchmark, says GradBench: what is measured is a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradbench import byhand, peers
from gradbench.task import Task, number

TITLE = "hello: a square"
TEXT = (
    "The square of a number and its derivative; GradBench says itself that its time means "
    "nothing. It shows what a call costs."
)
DERIVATIVES = ("double",)
IN_C = {"square": "square", "double": "twice"}


def inputs(quick: bool) -> Iterator[tuple[str, Any]]:
    """One number."""
    yield "x = 1", 1.0


def square(x: Any) -> Any:
    """Return x**2."""
    return x * x


def contestants(function: str, x: Any) -> dict[str, Callable[[], Task]]:
    """C, JAX, PyTorch, autograd."""
    plain = function == "square"
    return byhand.both("hello", IN_C[function], (), [[x]], [()], lambda out: number(out[0])) | {
        "JAX": peers.jax(lambda j: square if plain else j.grad(square), x, answer=number),
        "torch": peers.torch(lambda t: square if plain else peers.gradient(t, square), x,
                             answer=number),
        "autograd": peers.autograd(lambda a: square if plain else a.grad(square), x,
                                   answer=number),
    }  # fmt: skip
