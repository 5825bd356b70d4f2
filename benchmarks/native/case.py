"""What a workload is made of.

    Call     what is timed: ``r = function(*arguments)``
    Case     one row of a table: a name, and for each contestant how its Call is made
    Cannot   raised by a contestant that has no way to do the task; the table says why

A module of a workload has TITLE, TEXT and TARGET, and a generator ``cases(quick)``; a case is made
when its turn comes, so that the arrays of the one before are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class Cannot(Exception):
    """A library has no way to do a task; the reason is shown."""


@dataclass(frozen=True)
class Call:
    """A function, its arguments, and how to wait for its result and to read it.

    ``ready`` waits for a library that returns before it has computed.  ``numbers`` makes of the
    result what is compared: arrays in the order of the other contestants; it is not timed.
    ``sample`` stands for a call that another process times (elsewhere.py): seconds, seconds of
    processors and page faults of one of so many calls.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    ready: Callable[[Any], Any] | None = None
    numbers: Callable[[Any], Any] = lambda result: result
    sample: Callable[[int], tuple[float, float, float]] | None = None


@dataclass(frozen=True)
class Case:
    """Contestants that compute the same numbers.

    ``bytes`` are those that a perfect program would move; given, they are reported as a rate.
    ``within`` is the relative deviation beyond which a result is wrong, if not the usual one.
    ``reference`` are the right arrays, where contestants approximate: the error of each is shown.
    ``published`` are seconds that others have published, by who: they are shown, and no more.
    """

    name: str
    contestants: Mapping[str, Callable[[], Call]]
    dtype: str = "float64"
    bytes: float | None = None
    within: float | None = None
    reference: Any = None
    published: Mapping[str, float] = field(default_factory=dict)

    @property
    def tolerance(self) -> float:
        """Relative deviation beyond which a result is wrong."""
        if self.within is not None:
            return self.within
        return 1e-6 if self.dtype == "float64" else 1e-3


def generator(*seed: int) -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng([2026, *seed])
