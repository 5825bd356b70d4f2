"""The first call of a gradient of 10, 1000 and a million steps: compiling may not depend on them.

The program is the gradient of Lorenz's equations (lorenz.py).  Each sample is a fresh process in
which nothing was compiled before and nothing is kept; shown is the time of the first call without
that of a second one, so without the steps themselves.  The import of the library is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from _harness import spread
from native import fresh

from . import lorenz, peers

TITLE = "Compiling: the first call less the second, in a fresh process"
TEXT = (
    "Lorenz's equations, gradient by three parameters, the state as three numbers; tracing, "
    "derivative, compilation. Nothing is kept on disk."
)
PEERS = ("JAX",)
TARGET = "the same for all three lengths, and at most a third of JAX's (column JAX at least 3)"
LIBRARIES = ("wengert", "JAX, reverse", "JAX, forward")
LENGTHS = (10, 1000, 1_000_000)
TIME = 1.0  # in all, so that numbers can be compared: later ones forget where they began


def once(steps: str, library: str) -> dict[str, Any]:
    """In the fresh process: time the first call, and a second one."""
    f = lorenz.of_numbers(int(steps), TIME / int(steps))
    found = peers.differentiated(f, lorenz.PARAMETERS, slow=())
    return fresh.timed(found[library], library)


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """All lengths and libraries."""
    cases = []
    for n in LENGTHS[:2] if quick else LENGTHS:
        repetitions = 1 if quick else 5
        samples = fresh.repeated("loops.py", "lengths", str(n), LIBRARIES, threads, repetitions)
        contestants = fresh.agreed(samples, 1e-10, compiling)
        cases.append({"case": f"{n:,} steps", "contestants": contestants})
    return cases


def compiling(samples: Sequence[Any]) -> dict[str, float]:
    """The first call less the second."""
    times = [s["first"] - s["again"] for s in samples]
    busy = median(s["processor"] for s in samples) - median(s["again"] for s in samples)
    return spread(times * 2 if len(times) == 1 else times) | {"processor": busy}
