"""A point of a growth curve: time of the first call, of later ones, and memory.

Each contestant is measured at each point in a process of its own, in which nothing was compiled
before and nothing is kept (`growth.py --once MODULE POINT LIBRARY`).  Of the first call, made from
the plain function, is shown what it takes beyond a later one.  Memory is the most that was resident
in the whole process, and how much of it came after the library's import.  A process that needs
longer than LIMIT is ended, and its row says so.

    gradients    value and gradient of one function in every library, wengert's eagerly, too
    once         in the fresh process
    measure      a row for each point
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from native import fresh, libraries
from native.case import Call
from native.environment import environment
from native.measure import arrays, waiting

LIBRARIES = ("wengert", "wengert, eager", "JAX", "torch", "autograd")
LIMIT = 60.0  # seconds for one process
AGAIN = 0.25  # seconds for later calls
Function = Callable[..., Any]


def gradients(f: Function, x: Any) -> dict[str, Callable[[], Call]]:
    """Value and gradient of ``f(xp)(x)``."""

    def eager() -> Call:
        import wengert as wg

        return Call(wg.value_and_grad(f(np)), (x,))

    def autograd() -> Call:
        import autograd.numpy as anp

        return libraries.autograd_gradient(f(anp), x)

    return {
        "wengert": lambda: libraries.wengert(f(np), x),
        "wengert, eager": eager,
        "JAX": lambda: libraries.jax_gradient(f(libraries.jax().numpy), x),
        "torch": lambda: libraries.torch_gradient(f(libraries.torch()), x),
        "autograd": autograd,
    }


def peak() -> float:
    """Megabytes, the most that were resident so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def once(calls: Mapping[str, Callable[[], Call]], library: str) -> dict[str, Any]:
    """In the fresh process: the first call, later ones, memory."""
    fresh.started(library)
    before = peak()

    def run(call: Call) -> Any:
        result = call.function(*call.arguments)
        return call.ready(result) if call.ready else result

    cpu, begin = process_time(), perf_counter()
    call = calls[library]()
    result = run(call)
    first, busy = perf_counter() - begin, process_time() - cpu
    call = waiting(call, result)
    found = np.concatenate([a.ravel() for a in arrays(call.numbers(result))])
    numbers = [[float(found.sum()), float(np.linalg.norm(found)), *found[:5].tolist()]]
    again: list[float] = []
    end = perf_counter() + AGAIN
    while perf_counter() < end or not again:
        begin = perf_counter()
        run(call)
        again.append(perf_counter() - begin)
    return {
        "first": first,
        "processor": busy,
        "again": median(again),
        "least": min(again),
        "whole": peak(),
        "added": peak() - before,
        "numbers": numbers,
    }


def measure(
    module: str, points: Mapping[str, str], threads: int, within: float = 1e-8,
    names: Sequence[str] = LIBRARIES,
) -> list[dict[str, Any]]:  # fmt: skip
    """A row for each point: ``points`` has its text, and the title of the row."""
    cases = []
    ended: set[str] = set()
    for point, title in points.items():
        samples: dict[str, list[Any]] = {}
        for name in names:
            if name in ended:
                samples[name] = [{"failed": "left out: the point before took too long"}]
                continue
            variables = environment(threads, keep=False)
            found = fresh.process("growth.py", [module, point, name], variables, LIMIT)
            if str(found.get("failed", "")).startswith("more than"):
                ended.add(name)
            samples[name] = [found]
        contestants = fresh.agreed(samples, within, figures)
        cases.append({"case": title, "point": point, "contestants": contestants})
        print(f"  {title}", flush=True)
    return cases


def figures(samples: Sequence[Any]) -> dict[str, float]:
    """Of the one sample."""
    (s,) = samples
    return {
        "compile": max(s["first"] - s["again"], 0.0),
        "first": s["first"],
        "processor": s["processor"],
        "median": s["again"],
        "least": s["least"],
        "whole": s["whole"],
        "added": s["added"],
    }
