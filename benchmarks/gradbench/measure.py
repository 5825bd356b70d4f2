"""Agreement with C first, then time by GradBench's rules: the measurement of one eval.

C by hand gives the golden values.  Whoever deviates from them is reported as wrong and is not
timed.  A function is evaluated at least once and until ``seconds`` have been spent in it
(GradBench: min_runs = 1, min_seconds = 1), each evaluation timed by itself; the time is shared out
over rounds, in which the contestants take turns, so that a slow moment of the machine falls on all
of them.  The result is the median.  The first evaluation, in which libraries compile, is not
counted.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from _harness import interleave, settle, spread
from native.compiled import NoCompiler

from .task import Task

WITHIN = 1e-8  # relative deviation from C
FLOOR = 0.1  # of the root mean square: below it, deviations are absolute,
LEAST = 1e-5  # and so they are below this
ROUNDS = 4
SLOW = 1.0  # seconds: what takes longer is evaluated once
SIZES = "GRADBENCH_SIZES"  # the variable that says how many of the published sizes are measured


def numbers(answer: Any) -> np.ndarray[Any, Any]:
    """All numbers of an answer in JSON, in order."""
    found: list[Any] = []

    def visit(part: Any) -> None:
        if isinstance(part, Mapping):
            for key in sorted(part):
                visit(part[key])
        elif isinstance(part, list | tuple) and part and isinstance(part[0], list | dict):
            for item in part:
                visit(item)
        else:
            found.append(np.asarray(part, np.float64).ravel())

    visit(answer)
    return np.concatenate(found)


def deviation(got: Any, right: Any) -> float:
    """The largest relative deviation of two answers; infinite where they do not match."""
    a, b = numbers(got), numbers(right)
    if a.shape != b.shape:
        return float("inf")
    scale = np.abs(b) + FLOOR * np.sqrt(np.mean(b * b)) + LEAST
    worst = float(np.max(np.abs(a - b) / scale, initial=0.0))
    return worst if worst == worst else float("inf")


def contestants(name: str, function: str, given: Any) -> dict[str, Callable[[], Task]]:
    """C first, then wengert, then the others."""
    case = importlib.import_module(f"gradbench.cases.{name}")
    program = importlib.import_module(f"gradbench.evals.{name}").FUNCTIONS[function]
    others = case.contestants(function, given)
    return {"C": others.pop("C"), "wengert": lambda: program(given)} | others


def prepared(
    makes: Mapping[str, Callable[[], Task]], within: float
) -> tuple[dict[str, Task], dict[str, Any]]:
    """Tasks that agree with C, and notes on the others."""
    tasks: dict[str, Task] = {}
    notes: dict[str, Any] = {}
    golden = None
    for name, make in makes.items():
        try:
            task = make()
            answer = task.answer(task.once())
        except (ModuleNotFoundError, NoCompiler) as error:
            notes[name] = {"skipped": f"not installed: {getattr(error, 'name', None) or error}"}
            continue
        except Exception as error:  # of whatever kind a library raises: a result, and shown
            notes[name] = {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
            continue
        golden = answer if name == "C" else golden
        off = 0.0 if golden is None else deviation(answer, golden)
        if off > within:
            notes[name] = {"wrong": off}
        else:
            tasks[name] = task
    return tasks, notes


def timed(tasks: Mapping[str, Task], seconds: float) -> dict[str, Any]:
    """Times of tasks that take turns."""
    once = {name: task.times(1, 0.0)[1] for name, task in tasks.items()}
    fast = {name: task for name, task in tasks.items() if once[name][0] < SLOW * 1e9}
    samples = {name: times for name, times in once.items() if name not in fast}
    turns = {
        name: lambda task=task: task.times(1, seconds / ROUNDS)[1]  # type: ignore[misc]
        for name, task in fast.items()
    }
    settle()
    if turns:
        for name, rounds in interleave(turns, ROUNDS, warmup=0).items():
            samples[name] = [t for times in rounds for t in times]
    return {name: spread(samples[name] * 2, 1e-9) | {"runs": len(samples[name])} for name in tasks}


def chosen(inputs: Iterable[tuple[str, Any]], most: int) -> list[tuple[str, Any]]:
    """The first, the last, and some evenly between."""
    found = list(inputs)
    if len(found) <= most:
        return found
    places = [round(i * (len(found) - 1) / (most - 1)) for i in range(most)]
    return [found[i] for i in places]


def measure(name: str, quick: bool, seconds: float) -> list[dict[str, Any]]:
    """Every function of an eval, at the published sizes."""
    case = importlib.import_module(f"gradbench.cases.{name}")
    functions = importlib.import_module(f"gradbench.evals.{name}").FUNCTIONS
    results = []
    for description, given in chosen(case.inputs(quick), int(os.environ.get(SIZES, "4"))):
        for function in functions:
            makes = contestants(name, function, given)
            tasks, notes = prepared(makes, getattr(case, "WITHIN", WITHIN))
            times = timed(tasks, seconds)
            results.append(
                {
                    "case": f"{function}, {description}",
                    "derivative": function in case.DERIVATIVES,
                    "contestants": {who: times.get(who) or notes[who] for who in makes},
                }
            )
            print(f"  {name}: {function}, {description}", flush=True)
    return results
