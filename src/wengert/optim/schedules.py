"""Schedules: learning rates as functions of the number of steps.

Linear        along a line, and constant from then on
Cosine        down half a cosine; again and again with `restarts`
Exponential   times a factor at each step, or each so many steps
Steps         times a factor at each of some steps
InverseRoot   as one over the root of the step
OneCycle      up to a peak and down again
Warmup        a line up to where another schedule begins
Joined        one after the other

An optimizer takes one in the place of a number: ``optim.Adam(parameters, lr=Cosine(1e-3, 1000))``.
It counts its own steps, also in compiled functions, where the schedule is a few lines of the
program.  A schedule of your own is any function of an integer, written in NumPy; choices are
`np.where`, as in a compiled step the number is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ArgumentError, at, user_line

Rate = Callable[[Any], Any]

__all__ = [
    "Cosine",
    "Exponential",
    "InverseRoot",
    "Joined",
    "Linear",
    "OneCycle",
    "Steps",
    "Warmup",
]


def _positive(schedule: Any, *names: str) -> None:
    for name in names:
        if not getattr(schedule, name) > 0:
            raise ArgumentError(
                f"{schedule}: {name} has to be above 0. Change it{at(user_line())}."
            )


@dataclass(frozen=True)
class Linear:
    """From one rate to another along a line.

    Parameters
    ----------
    start, end : float
        The rates of the first step, and after `steps` of them.
    steps : int

    Examples
    --------
    >>> rate = Linear(1.0, 0.0, steps=4)
    >>> [float(rate(k)) for k in range(6)]
    [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        _positive(self, "steps")

    def __call__(self, k: Any) -> Any:
        """The rate of the step after `k` others."""
        return self.start + (self.end - self.start) * np.minimum(k / self.steps, 1.0)


@dataclass(frozen=True)
class Cosine:
    """Down half a cosine, DLMF 4.14: slowly, fast, slowly.

    Parameters
    ----------
    rate : float
        Of the first step.
    steps : int
        How many until the end.
    end : float, default 0
        What it comes down to.
    restarts : bool, default False
        Begin again after `steps`, in place of staying at the end.

    References
    ----------
    .. [1] I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts",
       ICLR 2017, arXiv:1608.03983, equation 5.

    Examples
    --------
    >>> rate = Cosine(1.0, steps=4)
    >>> [round(float(rate(k)), 3) for k in range(6)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    rate: float
    steps: int
    end: float = 0.0
    restarts: bool = False

    def __post_init__(self) -> None:
        _positive(self, "steps")

    def __call__(self, k: Any) -> Any:
        """The rate of the step after `k` others."""
        done = k % self.steps / self.steps if self.restarts else np.minimum(k / self.steps, 1.0)
        return self.end + (self.rate - self.end) * (0.5 + 0.5 * np.cos(np.pi * done))


@dataclass(frozen=True)
class Exponential:
    """Times a factor at each step, or at each so many.

    Parameters
    ----------
    rate : float
        Of the first step.
    factor : float
    every : int, default 1
        How many steps a rate lasts.

    Examples
    --------
    >>> [Exponential(1.0, 0.5, every=2)(k).item() for k in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    rate: float
    factor: float
    every: int = 1

    def __post_init__(self) -> None:
        _positive(self, "factor", "every")

    def __call__(self, k: Any) -> Any:
        """The rate of the step after `k` others."""
        return self.rate * np.power(float(self.factor), k // self.every)


@dataclass(frozen=True)
class Steps:
    """Times a factor at each of some steps.

    Parameters
    ----------
    rate : float
        Of the first step.
    factors : dict of int to float
        By how much it changes after so many steps.

    Examples
    --------
    >>> rate = Steps(1.0, {2: 0.1, 4: 0.5})
    >>> [round(float(rate(k)), 3) for k in range(6)]
    [1.0, 1.0, 0.1, 0.1, 0.05, 0.05]
    """

    rate: float
    factors: Mapping[int, float] = field(hash=False)

    def __call__(self, k: Any) -> Any:
        """The rate of the step after `k` others."""
        rate: Any = self.rate
        for step, factor in self.factors.items():
            rate = rate * np.where(k >= step, factor, 1.0)
        return rate


@dataclass(frozen=True)
class InverseRoot:
    """As one over the root of the step; constant before.

    Parameters
    ----------
    rate : float
        Of the first steps.
    steps : int
        How many are taken at that rate.

    References
    ----------
    .. [1] A. Vaswani et al., "Attention is all you need", NeurIPS 2017, equation 3.

    Examples
    --------
    >>> [round(float(InverseRoot(1.0, steps=4)(k)), 3) for k in (0, 4, 16, 64)]
    [1.0, 1.0, 0.5, 0.25]
    """

    rate: float
    steps: int

    def __post_init__(self) -> None:
        _positive(self, "steps")

    def __call__(self, k: Any) -> Any:
        """The rate of the step after `k` others."""
        return self.rate * np.sqrt(self.steps / np.maximum(k, self.steps))


@dataclass(frozen=True)
class OneCycle:
    """Up to a peak by half a cosine, and down again by another.

    Parameters
    ----------
    peak : float
        The largest rate.
    steps : int
        Of the whole cycle.
    rising : float, default 0.3
        The share of steps on the way up.
    start, end : float
        The first and the last rate, as shares of the peak; 1/25 and 1/250,000 by default.

    References
    ----------
    .. [1] L. N. Smith and N. Topin, "Super-convergence: very fast training of neural networks using
       large learning rates", arXiv:1708.07120.

    Examples
    --------
    >>> rate = OneCycle(1.0, steps=10, rising=0.5, start=0.0, end=0.0)
    >>> [round(float(rate(k)), 3) for k in (0, 2, 5, 8, 10)]
    [0.0, 0.345, 1.0, 0.345, 0.0]
    """

    peak: float
    steps: int
    rising: float = 0.3
    start: float = 1 / 25
    end: float = 1 / 250_000

    def __post_init__(self) -> None:
        _positive(self, "steps")
        if not 0 < self.rising < 1:
            raise ArgumentError(
                f"{self}: rising is a share of the steps, above 0 and below 1{at(user_line())}."
            )

    def __call__(self, k: Any) -> Any:
        """The rate of the step after `k` others."""
        turn = self.rising * self.steps
        up = np.minimum(k / turn, 1.0)
        down = np.clip((k - turn) / (self.steps - turn), 0.0, 1.0)
        low = np.where(k < turn, self.start, self.end)
        wave = 0.5 - 0.5 * np.cos(np.pi * np.where(k < turn, up, 1.0 - down))
        return self.peak * (low + (1.0 - low) * wave)


@dataclass(frozen=True)
class Warmup:
    """A line from almost nothing up to where another schedule begins.

    Parameters
    ----------
    steps : int
        How many steps it takes; the first has a rate of one over `steps`.
    then : float or callable
        What follows: a rate, or a schedule, whose own count begins then.

    Examples
    --------
    >>> rate = Warmup(2, then=Linear(1.0, 0.0, steps=2))
    >>> [float(rate(k)) for k in range(5)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """

    steps: int
    then: float | Rate

    def __post_init__(self) -> None:
        _positive(self, "steps")

    def __call__(self, k: Any) -> Any:
        """The rate of the step after `k` others."""
        after = np.maximum(k - self.steps, 0)
        rate = self.then(after) if callable(self.then) else self.then
        return rate * np.minimum((k + 1) / self.steps, 1.0)


@dataclass(frozen=True)
class Joined:
    """One schedule after the other, each with a count of its own.

    Parameters
    ----------
    schedules : sequence of callable
    begins : sequence of int
        After how many steps each but the first begins, in order.

    Raises
    ------
    ArgumentError
        Not one number less than schedules, or not in order.

    Examples
    --------
    >>> rate = Joined([Linear(0.0, 1.0, 2), Linear(1.0, 0.0, 2)], begins=[2])
    >>> [float(rate(k)) for k in range(5)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    schedules: Sequence[Rate]
    begins: Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedules", tuple(self.schedules))
        object.__setattr__(self, "begins", tuple(self.begins))
        if len(self.begins) != len(self.schedules) - 1 or list(self.begins) != sorted(self.begins):
            raise ArgumentError(
                f"Joined: {len(self.schedules)} schedules that begin at 0 and {list(self.begins)}. "
                f"Say for each but the first when it begins, in order{at(user_line())}."
            )

    def __call__(self, k: Any) -> Any:
        """The rate of the step after `k` others."""
        rate = self.schedules[0](k)
        for schedule, begin in zip(self.schedules[1:], self.begins, strict=True):
            rate = np.where(k >= begin, schedule(np.maximum(k - begin, 0)), rate)
        return rate
