"""Processor time of a path over that of a yardstick: the median of pairs measured side by side.

On a machine with neighbors a processor is slow for a while, by 1.7 times and more, and fast again.
So the yardstick is timed right before and right after each sample of a path, a fraction of a
millisecond each: what is slow is slow for both, and the median of some thirty such ratios moves by
a few percent where least times move by half.  What looks slow is measured again, in new
processes too, and the middle of all attempts counts: a slowdown stays, noise does not.

Processor time and not elapsed time, as a busy machine lets a process wait.  The import of wengert
is not timed: its count of instructions is exact, and needs no five processes.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import gc
import inspect
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np

Calls = Callable[[], Any]
SAMPLE, LARGE = 3e-4, 1.5e-3  # seconds; the large yardstick fills caches, and a path finds them so
ROUNDS, FEW = 31, 7
LONG = 0.04  # seconds for all samples of a path, unless that would be too few rounds
ATTEMPTS = 4  # in one process, of what looks slow; all of them when figures are stored


class Entry:
    """What the yardstick of plain Python makes."""

    __slots__ = ("inputs", "name", "value")

    def __init__(self, name: int, inputs: tuple[Any, ...], value: Any) -> None:
        self.name = name
        self.inputs = inputs
        self.value = value


def entered(table: dict[int, Entry], name: int, *inputs: Any, value: Any = None) -> Entry:
    """Make one and enter it."""
    made = table[name] = Entry(name, inputs, value)
    return made


def python() -> None:
    """Objects, tuples, dictionaries, calls, and a small array for each."""
    table: dict[int, Entry] = {}
    x = np.ones(3)
    last = entered(table, 0, value=x)
    for name in range(1, 20):
        last = entered(table, name, last, value=np.add(last.value, x))
    for entry in reversed(table.values()):
        if isinstance(entry.value, np.ndarray) and entry.inputs:
            table[entry.name - 1].value = entry.value * 0.5


PATTERN = (
    r"(?P<name>[a-z_]\w*)\s*(?:\((?P<given>[^()]*)\))?|(\d+(?:\.\d*)?(?:e[+-]?\d+)?)|[-+/=]{2}"
)
NEST = {"rows": [{"b": (1, 2.5, "x"), "c": [i] * 3} for i in range(30)]}


def program() -> None:
    """What much code does for long: parts of the standard library that are written in Python."""
    re._compiler.compile(PATTERN, 0)  # type: ignore[attr-defined]
    copy.deepcopy(NEST)
    dataclasses.make_dataclass("Made", [("a", int), ("b", float)])
    parser = argparse.ArgumentParser(prog="x")
    parser.add_argument("--number", type=int)
    parser.parse_args(["--number", "3"])
    inspect.signature(program)
    sum(Fraction(1, n) for n in range(1, 12))


NUMBERS = np.linspace(-2.0, 2.0, 10_000)
YARDSTICKS: dict[str, Calls] = {
    "python": python,
    "program": program,
    "array": lambda: np.tanh(NUMBERS),
    "steps": lambda: np.cumsum(NUMBERS),
}


def once(path: Calls, calls: int) -> float:
    """Seconds of the processor for one call, from so many."""
    loop = range(calls)
    begin = process_time()
    for _ in loop:
        path()
    return (process_time() - begin) / calls


def calls_of(path: Calls, sample: float) -> int:
    """So many calls that they last as long as a sample."""
    calls = 1
    while (seconds := once(path, calls) * calls) < sample / 2:
        calls = max(2 * calls, round(calls * sample / max(seconds, sample / 100)))
    return calls


def ratio(path: Calls, yardstick: str) -> float:
    """The median over rounds: a sample of the path over the two of the yardstick around it."""
    standard = YARDSTICKS[yardstick]
    path()
    standard()
    cold = yardstick == "program"
    sample = LARGE if cold else SAMPLE
    calls, times = calls_of(path, sample), calls_of(standard, sample)
    rounds = min(ROUNDS, max(FEW, int(LONG / (calls * once(path, calls)))))
    found = []
    before = once(standard, times)
    for _ in range(rounds):
        if cold:
            path()
        middle = once(path, calls)
        after = once(standard, times)
        found.append(2.0 * middle / (before + after))
        before = after
    return statistics.median(found)


def measure(paths: Mapping[str, Calls], yardsticks: Mapping[str, str]) -> dict[str, float]:
    """The ratio of every path to its yardstick, by name."""
    gc.collect()
    gc.freeze()
    gc.disable()
    found = {}
    try:
        for name, path in paths.items():
            found[name] = ratio(path, yardsticks[name])
            gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
    return found


def again(
    found: Mapping[str, Sequence[float]],
    suspects: Callable[[Mapping[str, Sequence[float]]], Iterable[str]],
    paths: Mapping[str, Calls],
    yardsticks: Mapping[str, str],
) -> dict[str, list[float]]:
    """Measure what looks slow again, until it does not or attempts end; all that was found."""
    kept = {name: list(values) for name, values in found.items()}
    for _ in range(ATTEMPTS - 1):
        slow = {name: paths[name] for name in suspects(kept)}
        if not slow:
            break
        for name, value in measure(slow, yardsticks).items():
            kept[name].append(value)
    return kept
