"""The gradient of a million steps in bounded memory: ``scan(..., memory=1000)`` keeps 1000 states.

Lorenz' equations, whose steps are arithmetic, and a damped pendulum, whose steps are a sine and a
cosine, as dear forwards as all else together; the gradient is by their parameters and by nothing
that is long, so what the backward loop needs of the steps is what fills memory.  Each
sample is a fresh process, which reports the median time of a call after the first, and by how much
the peak of its resident memory rose over what it had when all was compiled (for a short loop) and
the inputs were there.
"""

from __future__ import annotations

import inspect
import resource
from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from _harness import spread
from native import fresh
from native.measure import arrays

from . import peers

TITLE = "Memory: the gradient of a million steps"
TEXT = (
    "1,000,000 steps, value and gradient by three parameters; *memory=1000* lets the scan keep "
    "1000 of its steps and compute the others again, three times at most. Lorenz' equations by "
    "Runge-Kutta are arithmetic; of the driven pendulum (Euler) a step is a sine and a cosine, "
    "which the loop without a bound computes once and keeps. *JAX, forward* keeps nothing: three "
    "tangents. Each in a fresh process; megabytes "
    "are what a call added to the peak of resident memory."
)
TARGET = "memory as promised; at most 2.5 times the time without a bound"
LIBRARIES = ("wengert, memory=1000", "wengert", "JAX, reverse", "JAX, forward")
BOUND = 1000


def lorenz(loops: peers.Loops, count: int, memory: int | None) -> Any:
    """The sum of the last state."""
    h = 5e-4
    more = {} if memory is None else {"memory": memory}

    def run(p: Any) -> Any:
        def rate(s: Any) -> Any:
            x, y, z = s
            return p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z

        def along(s: Any, k: Any, step: float) -> Any:
            return tuple(a + step * b for a, b in zip(s, k, strict=True))

        def step(s: Any, _: Any) -> Any:
            a = rate(s)
            b = rate(along(s, a, 0.5 * h))
            c = rate(along(s, b, 0.5 * h))
            d = rate(along(s, c, h))
            total = tuple(k + 2.0 * m + 2.0 * n + q for k, m, n, q in zip(a, b, c, d, strict=True))
            return along(s, total, h / 6.0), None

        state, _ = loops.scan(step, (1.0, 1.0, 1.0), None, length=count, **more)
        return state[0] + state[1] + state[2]

    return run


def pendulum(loops: peers.Loops, count: int, memory: int | None) -> Any:
    """The sum of the last angle and speed."""
    xp, h = loops.xp, 1e-3
    more = {} if memory is None else {"memory": memory}

    def run(p: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            angle, speed, time = state
            force = p[2] * xp.cos(time) - p[0] * speed - p[1] * xp.sin(angle)
            speed = speed + h * force
            return (angle + h * speed, speed, time + h), None

        state, _ = loops.scan(step, (1.0, 0.0, 0.0), None, length=count, **more)
        return state[0] + state[1]

    return run


# Both forget roundings: these equations come to rest, and the pendulum is damped.
PROGRAMS = {
    "lorenz": ("Lorenz' equations", lorenz, np.array([10.0, 10.0, 8.0 / 3.0])),
    "pendulum": ("pendulum", pendulum, np.array([0.5, 1.3, 0.4])),
}


def peak() -> float:
    """Megabytes, the most that were resident so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def once(what: str, library: str) -> dict[str, Any]:
    """In the fresh process: compile for few steps, then for many; time and memory."""
    name, steps = what.split()
    _, program, parameters = PROGRAMS[name]
    fresh.started(library)
    loops = peers.jax() if library.startswith("JAX") else peers.wengert()
    bound = BOUND if "memory" in library else None
    if bound and "memory" not in inspect.signature(loops.scan).parameters:
        return {"skipped": "this version's scan has no memory="}

    def made(count: int) -> Any:
        kind = library if library.startswith("JAX") else "wengert"
        f = lambda loops: program(loops, count, bound)  # noqa: E731
        call = peers.differentiated(f, parameters, slow=())[kind]()
        ready = call.ready or (lambda x: x)
        return lambda: ready(call.function(*call.arguments))

    made(2000)()
    before, run = peak(), made(int(steps))
    result = run()
    times = []
    for _ in range(3):
        begin = perf_counter()
        run()
        times.append(perf_counter() - begin)
    numbers = [a.tolist() for a in arrays(result)]
    return {"time": float(np.median(times)), "memory": peak() - before, "numbers": numbers}


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """A row for each program, of times and megabytes."""
    count, repetitions = (10_000, 1) if quick else (1_000_000, 3)
    cases = []
    for name, (title, _, _) in PROGRAMS.items():
        what = f"{name} {count}"
        samples = fresh.repeated("loops.py", "memory", what, LIBRARIES, threads, repetitions)
        contestants = fresh.agreed(samples, 1e-10, took)
        cases.append({"case": f"{title}, {count:,} steps", "contestants": contestants})
    return cases


def took(samples: Sequence[Any]) -> dict[str, float]:
    """Time, and what memory rose by."""
    times = [s["time"] for s in samples]
    more = {"megabytes": median(s["memory"] for s in samples)}
    return spread(times * 2 if len(times) == 1 else times) | more
