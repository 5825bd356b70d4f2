"""Step sizes, and times at which steps end because the right-hand side jumps.

    StepControl    a controller; `I_CONTROL` that of SciPy, `PI_CONTROL`
    initial_step   from the sizes of the state and its derivatives
    JumpTimes      the times of a problem
    JumpEnd        where the next step has to end
    checked_jumps  the argument of a user

SciPy's names of methods have SciPy's controller, so that they take SciPy's steps; the other methods
have a PI controller, which varies less for stiff problems.

A step ends a few units in the last place before such a time, and the next one begins behind it, so
that all stages of a step are on one side.  With respect to these times the derivative is that of
the exact solution: the state moves along the flow before the jump, and back along the one after it.

References
----------
.. [1] E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, II.4.
.. [2] E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, IV.2 and IV.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow import cond
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from .events import flow
from .method import Evaluations, IvpProblem, Method, Tolerance, fixed, rms

_SMALLEST_ERROR = 1e-10  # below it the step grows by the largest factor anyway
_FAILED_FACTOR = 0.25  # if the equations of the stages have not been solved


@dataclass(frozen=True)
class StepControl:
    """A PI controller; with ``proportional=0`` an I controller.

    The factor of the step size is ``safety * (1 / e)**(integral / k) * (e0 / e)**(proportional /
    k)`` with the error e of this step and e0 of the last accepted one, for k the order of the
    error estimate plus 1.
    """

    integral: float = 1.0
    proportional: float = 0.0
    safety: float = 0.9
    smallest: float = 0.2
    largest: float = 10.0

    def factor(
        self, error: Any, last_error: Any, accepted: Any, was_rejected: Any, order: int
    ) -> Any:
        """The factor of the step size.

        error : relative to the tolerance; it may be NaN.
        last_error : of the last accepted step; 1 before the first.
        accepted : whether this step is accepted.
        was_rejected : whether the last attempt was rejected: then the step does not grow.
        order : of the error estimate.
        """
        k = 1.0 / (order + 1)
        e = np.maximum(error, _SMALLEST_ERROR)
        factor = self.safety * e ** (-self.integral * k)
        if self.proportional:
            factor = factor * (last_error / e) ** (self.proportional * k)
        largest = np.where(was_rejected | ~accepted, 1.0, self.largest)
        factor = np.minimum(np.maximum(factor, self.smallest), largest)
        return np.where(np.isnan(error), self.smallest, factor)

    def after_failure(self) -> float:
        """The factor if the equations of the stages have not been solved."""
        return _FAILED_FACTOR


I_CONTROL = StepControl()
PI_CONTROL = StepControl(0.7, 0.4)


EVALUATIONS = 1  # of the right-hand side


def initial_step(
    problem: IvpProblem,
    t: Any,
    y: Any,
    f: Any,
    direction: Any,
    length: Any,
    order: int,
    tolerance: Tolerance,
    max_step: Any,
) -> Any:
    """The absolute size of the first step, as SciPy chooses it; nothing is differentiated.

    f : the derivative at `t`.
    length : of the interval.
    order : of the error estimate.
    """
    scale = tolerance.scale(y)
    d0, d1 = rms(y / scale), rms(f / scale)
    is_tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.where(is_tiny, 1e-6, 0.01 * d0 / np.where(is_tiny, 1.0, d1))
    h0 = np.minimum(h0, length)
    safe = np.where(h0 > 0, h0, 1.0)  # an empty interval
    d2 = rms((problem.slope(t + h0 * direction, y + h0 * direction * f) - f) / scale) / safe
    largest = np.maximum(d1, d2)
    is_flat = largest <= 1e-15
    h1 = np.where(
        is_flat,
        np.maximum(1e-6, h0 * 1e-3),
        (0.01 / np.where(is_flat, 1.0, largest)) ** (1.0 / (order + 1)),
    )
    return np.minimum(np.minimum(100 * h0, h1), np.minimum(length, max_step))


_GAP_ULPS = 4.0  # on each side of a jump, more than the rounding errors of the times of stages


class JumpEnd(NamedTuple):
    """Where the next step has to end.

    index : of the jump, in the order of the integration; the number of jumps if none is left.
    time : before it; the end of the interval if none is left.
    """

    index: Any
    time: Any


class JumpTimes:
    """The times of a problem.

    times : a vector in any order.
    moving : whether they have derivatives.
    direction : 1.0, or -1.0 in backward time.
    end : of the interval. A jump there has no part in the last step.
    """

    def __init__(
        self,
        problem: IvpProblem,
        method: Method,
        times: Any,
        moving: bool,
        direction: Any,
        end: Any,
    ) -> None:
        self.problem, self.method, self.moving = problem, method, moving
        self.direction, self.end = direction, end
        self.times = as_tensor(np.sort(direction * times))  # increasing in forward time

    def from_start(self, t: Any) -> Any:
        """The start of the interval: behind a jump that is there."""
        is_there = np.any(np.abs(fixed(self.times) - self.direction * t) <= self._gap(t))
        return np.where(is_there, t + 2 * self.direction * self._gap(t), t)

    def next(self, t: Any) -> JumpEnd:
        """Where a step that starts at t has to end."""
        times, count = fixed(self.times), self.times.shape[0]
        passed = self.direction * t + 2 * self._gap(t)
        index = np.searchsorted(times, passed, side="right")
        time = times[np.minimum(index, count - 1)]
        # The sum of t and a step is rounded to the larger of both, also near the time zero.
        before = time - self._gap(np.maximum(np.abs(time), np.abs(t)))
        is_left = (index < count) & (before < self.direction * self.end)
        return JumpEnd(
            np.where(is_left, index, count), np.where(is_left, self.direction * before, self.end)
        )

    def passed(
        self,
        jump: JumpEnd,
        is_reached: Any,
        t: Any,
        y: Any,
        state: tuple[Any, ...],
        tolerance: Tolerance,
        max_step: Any,
    ) -> tuple[Any, Any, tuple[Any, ...], Evaluations]:
        """Where the next step begins: the time, the state, its carry and size; and evaluations.

        is_reached : whether the step ended at `jump.time`.
        t, y, state : the end of the step, and carry and size of the next one, without a jump.
        """

        def begin(t: Any, y: Any, state: Any) -> Any:
            time = self.direction * self.times[np.minimum(jump.index, self.times.shape[0] - 1)]
            after = fixed(time) + self.direction * self._gap(time)
            after = np.where(self.direction * (after - self.end) > 0, self.end, after)
            if self.moving:
                shift = time - fixed(time)
                y = flow(self.problem, jump.time, y, shift)
                y = flow(self.problem, after + shift, y, -shift)
            carry = self.method.start(self.problem, after, y)
            size = initial_step(
                self.problem,
                after,
                fixed(y),
                fixed(self.problem.slope(after, y)),
                self.direction,
                np.abs(self.end - after),
                self.method.error_order,
                tolerance,
                max_step,
            )
            return after, y, (carry, fixed(size) * 1.0)

        def same(t: Any, y: Any, state: Any) -> Any:
            return t, y, state

        t, y, state = cond(is_reached, begin, same, t, y, state)
        counts = self.method.start_counts.plus(Evaluations(2 * EVALUATIONS))
        return t, y, state, Evaluations(*[np.where(is_reached, n, 0) for n in counts])

    @staticmethod
    def _gap(t: Any) -> Any:
        t = fixed(t)
        return _GAP_ULPS * np.abs(np.nextafter(np.abs(t), np.inf) - np.abs(t))


def checked_jumps(times: Any, what: str) -> Any:
    """The times as a vector of floating-point numbers; None if there are none.

    Raises
    ------
    ShapeError, DtypeError, ArgumentError
        They are not a vector of finite real numbers.
    """
    if times is None:
        return None
    times = as_array(times)
    if len(times.shape) > 1:
        raise ShapeError(
            f"{what}: jump_ts has shape {tuple(times.shape)}, and must be a vector of times"
            f"{at(user_line())}."
        )
    if times.dtype.kind not in "biuf" and times.size:
        raise DtypeError(
            f"{what}: jump_ts is an array of {times.dtype}, and must be one of real numbers"
            f"{at(user_line())}."
        )
    times = casts.astype(times.reshape(-1), float)
    if not is_traced(times) and not np.all(np.isfinite(value_of(times))):
        raise ArgumentError(f"{what}: jump_ts must be finite{at(user_line())}.")
    return times if times.shape[0] else None
