"""What the tool and the driver run: a function, its arguments, and what its result is in JSON.

    Task     times itself by the rules that GradBench publishes: the function is evaluated at least
             ``min_runs`` times and until the time spent in it exceeds ``min_seconds``; every
             evaluation is timed by itself
    number, listed    answers that many evals share

The modules of evals need this file, NumPy and wengert only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np


def number(result: Any) -> float:
    """A result of one number."""
    return float(result)


def listed(result: Any) -> list[Any]:
    """A result of one array, as nested lists."""
    answer: list[Any] = np.asarray(result).tolist()
    return answer


@dataclass
class Task:
    """``function(*arguments)`` is timed, ``answer`` makes JSON of what it returns.

    ``ready`` waits for the result of a library that returns before it has computed; it is timed.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    answer: Callable[[Any], Any] = listed
    ready: Callable[[Any], Any] | None = None

    def once(self) -> Any:
        """The result of one evaluation; later ones are waited for at least cost."""
        result = self.function(*self.arguments)
        if self.ready is None:
            return result
        result = self.ready(result)
        cheapest = getattr(self.ready, "of", None)
        self.ready = cheapest(result) if cheapest else self.ready
        return result

    def times(self, min_runs: int, min_seconds: float) -> tuple[Any, list[int]]:
        """The last result, and the nanoseconds of every evaluation."""
        function, arguments, ready = self.function, self.arguments, self.ready
        if ready is not None:
            plain = function

            def function(*arguments: Any) -> Any:
                return ready(plain(*arguments))

        result, spent, elapsed, least = None, [], 0, min_seconds * 1e9
        while len(spent) < min_runs or elapsed < least:
            begin = perf_counter_ns()
            result = function(*arguments)
            end = perf_counter_ns()
            spent.append(end - begin)
            elapsed += end - begin
        return result, spent
