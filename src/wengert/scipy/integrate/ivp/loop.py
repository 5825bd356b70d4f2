"""The loop of an initial value problem: steps until the end, an event or a failure.

The loop is one `while_loop` whose steps are attempts.  Step sizes, error norms and the decisions to
accept are fixed in derivatives, so that the derivative of the loop is that of the steps taken.

    Ends         the interval, and the derivatives with respect to its ends
    Settings     tolerances and limits of the steps
    Attempt      what savers and events get after each attempt
    Observer     the interface of savers (observers.py) and events (events.py)
    Status       codes of the result
    integrate    the loop
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow import cond, while_loop

from .events import Events, EventState, StepEnd, flow
from .method import Evaluations, IvpProblem, Method, MethodStep, Tolerance, fixed
from .step_control import EVALUATIONS, JumpTimes, StepControl, initial_step

_SMALLEST_LAST_ERROR = 1e-4  # for the PI controller
_NEARLY_ONE = 1.00001  # steps of less than this many smallest steps are smallest ones
_MIN_ULPS = 10  # the smallest step, in distances of adjacent numbers at t


class Status:
    """Codes of results; negative numbers are failures."""

    RUNNING = 2
    EVENT = 1
    FINISHED = 0
    TOO_SMALL = -1
    TOO_MANY = -2
    NOT_FINITE = -3
    INCONSISTENT = -4  # of SUNDIALS' IDA


@dataclass(frozen=True)
class Settings:
    """Tolerances and limits of the steps.

    first_step : its absolute size, or None.
    max_step : the largest absolute size.
    max_steps : the largest number of attempts.
    min_step : the smallest absolute size, except for steps to the end or to a jump; or None.
    memory : the memory limit of the backward pass, as in `while_loop`.
    moving : whether the ends of the interval, and the times of jumps, have derivatives.
    jumps : the times at which the right-hand side jumps, a vector, or None.
    """

    tolerance: Tolerance
    control: StepControl
    first_step: Any = None
    max_step: Any = np.inf
    max_steps: Any = 100_000
    memory: Any = None
    moving: tuple[bool, bool, bool] = (False, False, False)
    jumps: Any = None
    min_step: Any = None


class Attempt(NamedTuple):
    """An attempted step.

    accepted : whether it is accepted.
    index : the number of accepted steps before it.
    t, h, y : where it starts, and its size, which is negative in backward time.
    y_new : the state at t + h.
    dense : as `MethodStep.dense`.
    end, y_end : where it ends: before t + h at an event that ends the integration or changes the
        state, and then `y_end` is the state after the change.
    counts : evaluations so far, without those of observers.
    """

    accepted: Any
    index: Any
    t: Any
    h: Any
    y: Any
    y_new: Any
    dense: Any
    end: Any
    y_end: Any
    counts: Evaluations


class Observer:
    """What happens after each attempt."""

    def start(self, t: Any, y: Any) -> Any:
        """The state of the observer before the first step, a container of arrays."""
        raise NotImplementedError

    def after(self, state: Any, attempt: Attempt) -> tuple[Any, Evaluations]:
        """The state after an attempt, and the evaluations."""
        raise NotImplementedError

    def is_full(self, state: Any) -> Any:
        """Whether there is no memory for another step."""
        return False


class LoopState(NamedTuple):
    """The state of the loop."""

    t: Any
    y: Any
    size: Any
    carry: Any
    last_error: Any
    was_rejected: Any
    was_nan: Any
    status: Any
    accepted: Any
    attempts: Any
    counts: Evaluations
    observers: tuple[Any, ...]
    events: Any


def integrate(
    problem: IvpProblem,
    method: Method,
    settings: Settings,
    t0: Any,
    t1: Any,
    y0: Any,
    observers: Sequence[Observer] = (),
    events: Events | None = None,
) -> LoopState:
    """Integrate from t0 to t1; backward if t1 is below t0.

    Returns
    -------
    LoopState
        After the last step. The derivatives with respect to `t0` and `t1` are those of the exact
        solution, up to order 4: the ends move along the flow.
    """
    start, end = fixed(t0), fixed(t1)
    if settings.moving[0]:
        y0 = flow(problem, t0, y0, start - t0)
    direction = np.where(end >= start, 1.0, -1.0)
    jumps = None
    if settings.jumps is not None:
        jumps = JumpTimes(problem, method, settings.jumps, settings.moving[2], direction, end)
        start = jumps.from_start(start)
    first = _first(problem, method, settings, start, end, direction, y0)
    first = first._replace(
        observers=tuple([o.start(start, y0) for o in observers]),
        events=None if events is None else events.start(start, y0),
    )

    def body(state: LoopState) -> LoopState:
        return _attempt(
            problem, method, settings, direction, end, observers, events, jumps, LoopState(*state)
        )

    last = while_loop(
        lambda s: LoopState(*s).status == Status.RUNNING,
        lambda s: tuple(body(LoopState(*s))),
        tuple(first),
        memory=settings.memory,
    )
    last = LoopState(*last)
    y, t = last.y, last.t
    if settings.moving[1]:
        finished = last.status == Status.FINISHED
        y = np.where(finished, flow(problem, end, y, t1 - end), y)
        t = np.where(finished, t + (t1 - end), t)
    return last._replace(t=t, y=y, counts=Evaluations(*last.counts))


def _first(
    problem: IvpProblem,
    method: Method,
    settings: Settings,
    start: Any,
    end: Any,
    direction: Any,
    y0: Any,
) -> LoopState:
    """The state before the first step, without observers and events."""
    carry = method.start(problem, start, y0)
    counts, size = method.start_counts, settings.first_step
    if size is None:
        counts = counts.plus(Evaluations(EVALUATIONS))
        size = initial_step(
            problem,
            start,
            fixed(y0),
            fixed(_slope(problem, method, start, y0, carry)),
            direction,
            np.abs(end - start),
            method.error_order,
            settings.tolerance,
            settings.max_step,
        )
    no, zero = np.bool_(False), np.int64(0)
    return LoopState(
        start,
        y0,
        fixed(size) * 1.0,
        carry,
        np.float64(1.0),
        no,
        no,
        _first_status(start, end, y0, method.derivative(carry)),
        zero,
        zero,
        Evaluations(*[np.int64(n) for n in counts]),
        (),
        None,
    )


def _slope(problem: IvpProblem, method: Method, t: Any, y: Any, carry: Any) -> Any:
    """The derivative of the state at the start."""
    return method.derivative(carry) if problem.mass is None else problem.slope(t, y)


def _first_status(start: Any, end: Any, y: Any, f: Any) -> Any:
    finite = np.all(np.isfinite(fixed(y))) & np.all(np.isfinite(fixed(f)))
    status = np.where(finite, Status.RUNNING, Status.NOT_FINITE)
    return np.where(end == start, Status.FINISHED, status)


def _attempt(
    problem: IvpProblem,
    method: Method,
    settings: Settings,
    direction: Any,
    end: Any,
    observers: Sequence[Observer],
    events: Events | None,
    jumps: JumpTimes | None,
    s: LoopState,
) -> LoopState:
    """The state after another attempt."""
    jump = None if jumps is None else jumps.next(s.t)
    limit = end if jump is None else jump.time
    h, t_new, is_too_small, is_limited = _limited(s, settings, direction, limit)
    given = method.limited(s.carry, is_limited)
    step = method.step(problem, s.t, h, s.y, given, settings.tolerance)
    error, converged = _relative_error(method, settings.tolerance, step, h, s.y)
    accepted = (error < 1) & converged & ~is_too_small
    counts, extra = Evaluations(*s.counts).plus(step.counts), Evaluations()
    stops, carry, seen_events, t_end, y_end = np.bool_(False), step.carry, None, t_new, step.y
    is_full = s.attempts + 1 >= settings.max_steps
    if events is not None:
        seen_events, found, extra = events.after(
            EventState(*s.events), accepted, s.t, h, s.y, t_new, step.y, step.dense
        )
        t_end, y_end, stops = found.t, found.y, found.stops
        is_full = is_full | events.is_full(seen_events)
        if events.has_resets:
            carry, more = _restarted(problem, method, found, carry)
            counts = counts.plus(more)
    size = _next_size(method, settings, step, error, accepted, s, np.abs(h))
    carry = _chosen(accepted, carry, step.rejected)
    if jumps is not None and jump is not None:
        is_reached = accepted & (fixed(t_end) == jump.time) & (jump.time != end) & ~stops
        t_end, y_end, (carry, size), more = jumps.passed(
            jump, is_reached, t_end, y_end, (carry, size), settings.tolerance, settings.max_step
        )
        counts = counts.plus(more)
    ends = h, s.y, step.y, step.dense, fixed(t_end), y_end, counts
    attempt = Attempt(accepted, s.accepted, s.t, *ends)
    seen, extra, some_full = _observed(observers, s.observers, attempt, extra)
    is_full, counts = is_full | some_full, counts.plus(extra)
    status = _status(is_full, accepted & (t_end == end), stops)
    was_nan = ~accepted & (s.was_nan | np.isnan(error))
    failure = np.where(was_nan, Status.NOT_FINITE, Status.TOO_SMALL)
    return LoopState(
        np.where(accepted, t_end, s.t),
        np.where(accepted, y_end, s.y),
        size,
        carry,
        np.where(accepted, np.maximum(error, _SMALLEST_LAST_ERROR), s.last_error),
        ~accepted,
        was_nan,
        np.where(is_too_small, failure, status),
        s.accepted + accepted,
        s.attempts + 1,
        counts,
        seen,
        seen_events,
    )


def _status(is_full: Any, is_at_end: Any, stops: Any) -> Any:
    """The status after an attempt that has not failed."""
    status = np.where(is_full, Status.TOO_MANY, Status.RUNNING)
    status = np.where(is_at_end, Status.FINISHED, status)
    return np.where(stops, Status.EVENT, status)


def _observed(
    observers: Sequence[Observer],
    states: tuple[Any, ...],
    attempt: Attempt,
    counts: Evaluations,
) -> tuple[tuple[Any, ...], Evaluations, Any]:
    """The states of the observers after an attempt, evaluations, and whether one is full."""
    seen, is_full = [], np.bool_(False)
    for observer, state in zip(observers, states, strict=True):
        state, more = observer.after(state, attempt)
        seen.append(state)
        counts = counts.shared(more)
        is_full = is_full | observer.is_full(state)
    return tuple(seen), counts, is_full


def _next_size(
    method: Method,
    settings: Settings,
    step: MethodStep,
    error: Any,
    accepted: Any,
    s: LoopState,
    size: Any,
) -> Any:
    """The size of the next attempt after one of a given size."""
    found = size * _factor(method, settings.control, step, error, accepted, s)
    if settings.min_step is None:
        return found
    # Only an attempt of the smallest size that is rejected is a failure.
    is_larger = size > _NEARLY_ONE * settings.min_step
    return np.where(is_larger, np.maximum(found, settings.min_step), found)


def _factor(
    method: Method,
    control: StepControl,
    step: MethodStep,
    error: Any,
    accepted: Any,
    s: LoopState,
) -> Any:
    """The factor of the step size."""
    factor = control.factor(error, s.last_error, accepted, s.was_rejected, method.error_order)
    if step.converged is not True:
        factor = np.where(fixed(step.converged), factor, control.after_failure())
    if step.factor is None:
        return factor
    own = fixed(step.factor)
    return np.where(np.isnan(own), factor, own)


def _limited(s: LoopState, settings: Settings, direction: Any, end: Any) -> tuple[Any, ...]:
    """The step and where it ends, and whether it is too small, as in SciPy, or not as planned.

    The first attempt takes at least the smallest step; repeated ones fail below it.
    """
    spacing = _MIN_ULPS * np.abs(np.nextafter(s.t, direction * np.inf) - s.t)
    if settings.min_step is not None:
        spacing = np.maximum(spacing, settings.min_step)
    size = np.minimum(s.size, settings.max_step)
    size = np.where(s.was_rejected, s.size, np.maximum(size, spacing))
    is_too_small = s.was_rejected & (size < spacing)
    t_new = s.t + size * direction
    t_new = np.where(direction * (t_new - end) > 0, end, t_new)
    is_limited = ~s.was_rejected & (size != s.size)
    return t_new - s.t, t_new, is_too_small, is_limited


def _restarted(
    problem: IvpProblem, method: Method, found: StepEnd, carry: Any
) -> tuple[Any, Evaluations]:
    """What the next step takes if an event has changed the state."""
    carry = cond(
        found.jumps,
        lambda t, y, carry: method.start(problem, t, y),
        lambda t, y, carry: carry,
        found.t,
        found.y,
        carry,
    )
    return carry, Evaluations(*[np.where(found.jumps, n, 0) for n in method.start_counts])


def _relative_error(
    method: Method, tolerance: Tolerance, step: MethodStep, h: Any, y: Any
) -> tuple[Any, Any]:
    """The error relative to the tolerance, and whether the stages are solved; no derivatives."""
    error = step.error
    error = tuple(map(fixed, error)) if isinstance(error, tuple) else fixed(error)
    scale = tolerance.scale(fixed(y), fixed(step.y))
    relative = method.error_norm(step._replace(error=error), h, scale)
    return fixed(relative), fixed(step.converged)


def _chosen(accepted: Any, new: Any, old: Any) -> Any:
    """What the next attempt takes: containers of arrays."""
    if isinstance(new, tuple | list):
        return tuple([_chosen(accepted, a, b) for a, b in zip(new, old, strict=True)])
    return new if new is old else np.where(accepted, new, old)
