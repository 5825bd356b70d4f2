"""Agreement first, then time: the measurement of one case.

Every contestant computes once, and its numbers are compared with those of the others: the middle
one of all results is taken as right, element by element, so that no contestant is the judge (or the
reference, where a case has one: then the deviation is kept as the error).  One that deviates is
reported as wrong and is not timed.  Then all run in turn, in a rotating order
(_harness.interleave); a sample is so many calls that it lasts a millisecond, timed by timeit's
loop ``r = f(x)``, which adds nothing of ours to a call.  Contestants that take a large part of the
budget at each call take turns among themselves, so that they do not cost the others their
repetitions.  Beside the elapsed time each sample has
the processor time (how many cores were busy) and the page faults.
"""

from __future__ import annotations

import resource
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter, process_time
from timeit import Timer
from typing import Any

import numpy as np

from _harness import interleave, settle, spread

from .case import Call, Cannot, Case
from .compiled import NoCompiler

SAMPLE = 1e-3  # seconds
SLOW = 50  # calls that fit into the budget of a case; who does fewer is slow
LARGEST = 2_000_000  # elements compared of one array, evenly chosen
FLOOR = 0.1  # of the root mean square: below it, deviations are absolute


def arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    """Return the numbers in a nest of any library's containers and arrays, in order."""
    if isinstance(value, Mapping):
        return [a for key in sorted(value) for a in arrays(value[key])]
    if isinstance(value, list | tuple):
        return [a for item in value for a in arrays(item)]
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    elif hasattr(value, "full"):
        value = value.full()
    flat = np.asarray(value).ravel()
    return [flat[:: 1 + flat.size // LARGEST].astype(np.float64)]


def deviation(got: list[Any], right: list[Any]) -> float:
    """The largest relative deviation; infinite where shapes differ or numbers are not finite."""
    if [a.size for a in got] != [b.size for b in right]:
        return float("inf")
    worst = 0.0
    for a, b in zip(got, right, strict=True):
        if not b.size:
            continue
        scale = np.abs(b) + FLOOR * np.sqrt(np.mean(b * b)) + np.finfo(np.float32).tiny
        off = float(np.max(np.abs(a - b) / scale))
        worst = max(worst, off if off == off else float("inf"))
    return worst


def middle(results: list[list[Any]]) -> list[Any]:
    """The middle of all results that have the most frequent shape."""
    sizes = [tuple(a.size for a in r) for r in results]
    usual = statistics.mode(sizes)
    chosen = [r for r, s in zip(results, sizes, strict=True) if s == usual]
    return [np.median(np.stack(columns), axis=0) for columns in zip(*chosen, strict=True)]


def statement(call: Call) -> tuple[Callable[[int], Any], str]:
    """A function that calls so many times, and the line it repeats."""
    names = [f"x{i}" for i in range(len(call.arguments))]
    line = f"f({', '.join(names)})"
    line = f"r = ready({line})" if call.ready else f"r = {line}"
    known = {"f": call.function, "ready": call.ready} | dict(
        zip(names, call.arguments, strict=True)
    )
    return Timer(line, globals=known).timeit, line


def once(call: Call) -> Any:
    """The result of one call."""
    result = call.function(*call.arguments)
    return call.ready(result) if call.ready else result


def waiting(call: Call, result: Any) -> Call:
    """The call, waiting for results like this one at least cost (`libraries.Ready`)."""
    cheapest = getattr(call.ready, "of", None)
    return replace(call, ready=cheapest(result)) if cheapest else call


def sampling(call: Call) -> Callable[[int], tuple[float, float, float]]:
    """Of so many calls: seconds, seconds of processors, and page faults, of one."""
    if call.sample is not None:
        return call.sample
    repeat, _ = statement(call)

    def sample(number: int) -> tuple[float, float, float]:
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        cpu, begin = process_time(), perf_counter()
        repeat(number)
        elapsed, busy = perf_counter() - begin, process_time() - cpu
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        return elapsed / number, busy / number, faults / number

    return sample


def prepare(case: Case) -> tuple[dict[str, Call], dict[str, Any], dict[str, float]]:
    """Make every call and run it once; those that agree, notes on the others, and deviations."""
    calls: dict[str, Call] = {}
    numbers: dict[str, Any] = {}
    notes: dict[str, Any] = {}
    for name, make in case.contestants.items():
        try:
            call = make()
            result = once(call)
            numbers[name] = arrays(call.numbers(result))
            calls[name] = waiting(call, result)
        except Cannot as reason:
            notes[name] = {"cannot": str(reason)}
        except (ModuleNotFoundError, NoCompiler) as error:
            notes[name] = {"skipped": f"not installed: {getattr(error, 'name', None) or error}"}
        except Exception as error:  # of whatever kind a library raises: a result, and shown
            notes[name] = {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
    right = middle(list(numbers.values())) if numbers else []
    if case.reference is not None:
        right = arrays(case.reference)
    off = {name: deviation(got, right) for name, got in numbers.items()}
    for name in numbers:
        if off[name] > case.tolerance:
            notes[name] = {"wrong": off[name]}
            del calls[name]
    notes |= {name: {"published": seconds} for name, seconds in case.published.items()}
    return calls, notes, off


def measure(case: Case, budget: float) -> dict[str, Any]:
    """Time a case for about ``budget`` seconds."""
    calls, notes, off = prepare(case)
    groups: dict[bool, dict[str, Any]] = {False: {}, True: {}}
    each = {False: 0.0, True: 0.0}
    for name, call in calls.items():
        sample = sampling(call)
        sample(1)
        took, *_ = sample(1)
        took, *_ = sample(max(1, round(SAMPLE / max(took, 1e-8))))
        number = max(1, round(SAMPLE / took))
        slow = took > budget / SLOW
        groups[slow][name] = partial(sample, number)
        each[slow] += max(took * number, 1e-6)
    settle()
    repetitions = {k: int(min(200, max(5, budget / each[k]))) for k in groups if groups[k]}
    timed: dict[str, Any] = {}
    for k, number in repetitions.items():
        for name, samples in interleave(groups[k], number, warmup=1).items():
            elapsed, busy, faults = zip(*samples, strict=True)
            timed[name] = spread(elapsed) | {
                "processor": statistics.median(busy),
                "cores": sum(busy) / sum(elapsed),
                "faults": statistics.median(faults),
            }
            if case.reference is not None:
                timed[name]["error"] = off[name]
    return {
        "case": case.name,
        "dtype": case.dtype,
        "bytes": case.bytes,
        "repetitions": max(repetitions.values(), default=0),
        "contestants": {
            name: timed.get(name) or notes.get(name, {"failed": "nothing"})
            for name in (*case.contestants, *case.published)
        },
    }
