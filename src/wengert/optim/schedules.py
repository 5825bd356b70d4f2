"""Learning-rate schedules: functions of the number of steps.

Linear        linear interpolation, then constant
Cosine        half a cosine; repeated with `restarts`
Exponential   multiplied by a factor every step, or every n steps
Steps         multiplied by factors at given steps
InverseRoot   proportional to 1/sqrt(step)
OneCycle      up to a peak and down again
Warmup        a linear increase up to another schedule
Joined        schedules in sequence

An optimizer accepts one instead of a number: ``optim.Adam(parameters, lr=Cosine(1e-3, 1000))``.  It
counts its steps; in compiled steps the schedule is compiled too.  Any function of an integer that
is written in NumPy can be a schedule; branches have to be `np.where`, because in a compiled step
the number is unknown.
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
            raise ArgumentError(f"{schedule}: {name} must be above 0. Change it{at(user_line())}.")


@dataclass(frozen=True)
class Linear:
    """Linear interpolation from one rate to another.

    Parameters
    ----------
    start, end : float
        The rate of the first step, and after `steps` steps.
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
    """Decay along half a cosine.

    Parameters
    ----------
    rate : float
        Rate of the first step.
    steps : int
        Length of the decay.
    end : float, default 0
        Final rate.
    restarts : bool, default False
        Start again every `steps` steps; otherwise the rate stays at `end`.

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
    """Multiply the rate by a factor every step, or every n steps.

    Parameters
    ----------
    rate : float
        Rate of the first step.
    factor : float
    every : int, default 1
        Number of steps between changes.

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
    """Multiply the rate by factors at given steps.

    Parameters
    ----------
    rate : float
        Rate of the first step.
    factors : dict of int to float
        From the number of steps taken to the factor applied then.

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
    """Constant at first, then proportional to 1/sqrt(step).

    Parameters
    ----------
    rate : float
        Initial rate.
    steps : int
        Number of steps at the initial rate.

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
    """Increase to a peak and decrease again, each along half a cosine.

    Parameters
    ----------
    peak : float
        The largest rate.
    steps : int
        Length of the cycle.
    rising : float, default 0.3
        Fraction of the steps with increasing rate.
    start, end : float
        First and last rate as fractions of the peak; 1/25 and 1/250,000 by default.

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
                f"{self}: rising, a fraction of the steps, must be above 0 and below 1. Change it"
                f"{at(user_line())}."
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
    """Increase linearly to the initial rate of another schedule, which follows.

    Parameters
    ----------
    steps : int
        Length of the increase; the first step has 1/`steps` of the rate.
    then : float or callable
        The rate or schedule that follows; the schedule counts its steps from there.

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
    """Schedules in sequence, each counting its own steps.

    Parameters
    ----------
    schedules : sequence of callable
    begins : sequence of int
        Number of steps after which each schedule except the first begins, sorted.

    Raises
    ------
    ArgumentError
        `begins` does not have one element less than `schedules`, or is not sorted.

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
                f"Joined: {len(self.schedules)} schedules with begins={list(self.begins)}. Pass "
                "the step at which each schedule except the first begins, in increasing order"
                f"{at(user_line())}."
            )

    def __call__(self, k: Any) -> Any:
        """The rate of the step after `k` others."""
        rate = self.schedules[0](k)
        for schedule, begin in zip(self.schedules[1:], self.begins, strict=True):
            rate = np.where(k >= begin, schedule(np.maximum(k - begin, 0)), rate)
        return rate
