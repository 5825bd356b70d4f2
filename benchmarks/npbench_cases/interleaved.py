"""Calls of several contestants in turn, each with new arguments, which are not part of the time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LEAST, MOST = 5, 200  # calls of a contestant


@dataclass(frozen=True)
class Contestant:
    """A function, how its arguments are made, and what waits for its result."""

    call: Callable[..., Any]
    arguments: Callable[[], list[Any]]
    wait: Callable[[Any], Any] = lambda out: out


def timed(contestant: Contestant) -> float:
    """Seconds of one call."""
    arguments = contestant.arguments()
    start = time.perf_counter()
    contestant.wait(contestant.call(*arguments))
    return time.perf_counter() - start


def medians(contestants: Mapping[str, Contestant], seconds: float = 2.0) -> dict[str, float]:
    """The median time of each, all called in turn in a rotating order.

    A contestant takes part in as many rounds as its share of `seconds` allows, at least LEAST
    (three, if a call takes longer than `seconds`).
    """
    first = {name: timed(c) for name, c in contestants.items()}  # also the warm-up
    rounds = {
        name: max(3 if t > seconds else LEAST, min(MOST, int(seconds / max(t, 1e-6))))
        for name, t in first.items()
    }
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    for i in range(max(rounds.values())):
        start = i % len(names)
        for name in names[start:] + names[:start]:
            if i < rounds[name]:
                samples[name].append(timed(contestants[name]))
    return {name: statistics.median(found) for name, found in samples.items()}
