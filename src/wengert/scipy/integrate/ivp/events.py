"""Events: roots of functions g(t, y) along the solution.

A change of sign in a step is found at its end; the root is that of the interpolant, by Brent's
method, as in SciPy.  The derivative of the time of an event is that of the equation g(t, y(t)) = 0
with y' = f(t, y), which does not differentiate the interpolant with respect to time: the root is
corrected by steps of Newton's method along the flow, which are differentiated as written.

    Event       a function, its direction, when it ends the integration, and a change of the state
    Events      the events of a problem, while the loop runs
    StepEnd       the end of a step after events
    flow        the solution near a point, to order 4

References
----------
.. [1] L. F. Shampine, S. Thompson, "Event location for ordinary differential equations", Computers
   and Mathematics with Applications 39, 43-54 (2000).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.control_flow import cond, custom_jvp

from ...optimize.bracketing import RootLimits, root_unchecked
from .method import Evaluations, IvpProblem, Method, fixed

_XTOL = 4 * np.finfo(float).eps  # as in SciPy
_MAX_ITERATIONS = 100
_NEWTON_STEPS = 2  # derivatives are exact to order 3
_RELATIVE_ZERO = 1e-10  # of g after a change of the state: it is still at the event
_SMALLEST_POSITIVE = np.finfo(float).tiny


@dataclass(frozen=True)
class Event:
    """An event: a root of ``g(t, y)`` along the solution.

    function : ``g(t, y, *args)``, one number, of a vector y.
    direction : positive: only roots where g increases; negative: where it decreases; 0: both.
    count : the integration ends at this occurrence; 0: it does not.
    reset : ``reset(t, y, *args)``, the state after the event, or None.
    """

    function: Callable[..., Any]
    direction: float = 0.0
    count: int = 0
    reset: Callable[..., Any] | None = None


class StepEnd(NamedTuple):
    """The end of an accepted step after events.

    t, y : the end.
    stops : whether the integration ends there.
    jumps : whether the state has changed: the next step begins anew.
    """

    t: Any
    y: Any
    stops: Any
    jumps: Any


class EventState(NamedTuple):
    """The values at the end of the last step, and the events so far."""

    values: tuple[Any, ...]
    counts: tuple[Any, ...]
    ts: tuple[Any, ...]
    ys: tuple[Any, ...]


class Events:
    """The events of a problem.

    capacity : the largest number of occurrences of each that are kept.
    keeps_all : whether the integration ends if there are more.
    """

    def __init__(
        self,
        problem: IvpProblem,
        method: Method,
        events: Sequence[Event],
        capacity: int,
        keeps_all: bool = False,
    ) -> None:
        self.problem, self.method, self.capacity = problem, method, capacity
        self.keeps_all = keeps_all
        self.events = tuple(events)
        self.has_resets = any([event.reset is not None for event in events])

    def start(self, t: Any, y: Any) -> EventState:
        """The values at the start."""
        many = range(len(self.events))
        return EventState(
            tuple([self._value(k, t, y) for k in many]),
            tuple([np.int64(0) for _ in many]),
            tuple([np.full(self.capacity, np.nan) + 0 * t for _ in many]),
            tuple([np.full((self.capacity, *y.shape), np.nan) + 0 * y for _ in many]),
        )

    def _value(self, k: int, t: Any, y: Any) -> Any:
        return fixed(self.events[k].function(fixed(t), fixed(y))) * 1.0

    def is_full(self, state: EventState) -> Any:
        """Whether there is no memory for further occurrences."""
        full: Any = np.bool_(False)
        for count in state.counts if self.keeps_all else ():
            full = full | (count > self.capacity)
        return full

    def after(
        self,
        state: EventState,
        accepted: Any,
        t: Any,
        h: Any,
        y: Any,
        t_new: Any,
        y_new: Any,
        dense: Any,
    ) -> tuple[EventState, StepEnd, Evaluations]:
        """The state after an attempt, and where the step ends."""
        many = range(len(self.events))
        values = [self._value(k, t_new, y_new) for k in many]
        active = []
        for event, old, new in zip(self.events, state.values, values, strict=True):
            up, down = (old <= 0) & (new >= 0), (old >= 0) & (new <= 0)
            sides = up if event.direction > 0 else down if event.direction < 0 else up | down
            active.append(accepted & sides)
        some = active[0]
        for one in active[1:]:
            some = some | one
        kept = [np.where(accepted, a, b) for a, b in zip(values, state.values, strict=True)]

        def occurred(state: Any) -> Any:
            seen = EventState(*state)
            return self._occurred(seen, before, active, t, h, y, t_new, y_new, dense)

        def nothing(state: Any) -> Any:
            no = np.bool_(False)
            return tuple(EventState(*state)), (t_new, y_new, no, no)

        before = state.values
        with_new = tuple(state._replace(values=tuple(kept)))
        after, found = cond(some, occurred, nothing, with_new)
        return (
            EventState(*after),
            StepEnd(*found),
            Evaluations(*[np.where(some, n, 0) for n in self.method.dense_counts]),
        )

    def _occurred(
        self,
        state: EventState,
        before: Sequence[Any],
        active: Sequence[Any],
        t: Any,
        h: Any,
        y: Any,
        t_new: Any,
        y_new: Any,
        dense: Any,
    ) -> Any:
        """The state after events in a step, and where it ends."""
        prepared = self.method.prepared(self.problem, t, h, y, y_new, dense)
        sign = np.where(h > 0, 1.0, -1.0)
        late = sign * np.inf
        roots, counts, stop = [], [], late
        for k, event in enumerate(self.events):
            count = state.counts[k] + active[k]
            root = cond(
                active[k],
                lambda k=k: self._root(k, before[k], t, h, y, t_new, y_new, prepared),
                lambda: late + 0.0 * t,
            )
            ends: Any = event.reset is not None
            if event.count:
                ends = ends | (count >= event.count)
            here = np.where(active[k] & ends, root, late)
            stop = np.where(sign * here < sign * stop, here, stop)
            roots.append(root)
            counts.append(count)
        values, ts, ys, kept = list(state.values), list(state.ts), list(state.ys), []
        ends_here = sign * stop < np.inf
        no = np.bool_(False)
        end = StepEnd(np.where(ends_here, stop, t_new), y_new, no, no)
        for k in range(len(self.events)):
            occurs = active[k] & (sign * roots[k] <= sign * fixed(end.t))
            time, at = cond(
                occurs,
                lambda k=k: self._precise(k, t, h, y, y_new, prepared, roots[k]),
                lambda: (0.0 * t, 0.0 * y_new),
            )
            ts[k], ys[k] = self._written(ts[k], ys[k], occurs, state.counts[k], time, at)
            kept.append(np.where(occurs, counts[k], state.counts[k]))
            is_end = occurs & ends_here & (roots[k] == stop)
            end, values[k] = self._ended(k, end, is_end, counts[k], time, at, values[k], sign)
        if self.has_resets:
            for k, event in enumerate(self.events):
                if event.reset is None:
                    values[k] = np.where(end.jumps, self._value(k, end.t, end.y), values[k])
        return (tuple(values), tuple(kept), tuple(ts), tuple(ys)), tuple(end)

    def _ended(
        self,
        k: int,
        end: StepEnd,
        is_end: Any,
        count: Any,
        time: Any,
        at: Any,
        value: Any,
        sign: Any,
    ) -> tuple[StepEnd, Any]:
        """The end of the step if event k ends it, and the value of its function there."""
        event = self.events[k]
        if not event.count and event.reset is None:
            return end, value
        end = end._replace(t=np.where(is_end, time, end.t), y=np.where(is_end, at, end.y))
        if event.count:
            end = end._replace(stops=end.stops | (is_end & (count >= event.count)))
        if event.reset is not None:
            y, value = cond(
                is_end,
                lambda y: self._changed(k, time, y, sign),
                lambda y: (y, value),
                end.y,
            )
            end = end._replace(y=y, jumps=end.jumps | is_end)
        return end, value

    def _written(
        self, ts: Any, ys: Any, occurs: Any, count: Any, time: Any, y: Any
    ) -> tuple[Any, Any]:
        """The buffers with one occurrence more, if they are long enough."""
        index = np.minimum(count, self.capacity - 1)
        writes = occurs & (count < self.capacity)
        ts, ys = ts.copy(), ys.copy()
        ts[index] = np.where(writes, time, ts[index])
        ys[index] = np.where(writes, y, ys[index])
        return ts, ys

    def _root(
        self, k: int, before: Any, t: Any, h: Any, y: Any, t_new: Any, y_new: Any, prepared: Any
    ) -> Any:
        """The time at which the event occurs on the interpolant; it has no derivative.

        before : the value at t. After a change of the state it is a number with the sign that the
            function has next, which is zero there.
        """
        y, y_new, prepared = fixed(y), fixed(y_new), [fixed(x) for x in prepared]

        def g(time: Any) -> Any:
            at = self.method.interpolate((time - t) / h, h, y, y_new, prepared)
            value = fixed(self.events[k].function(time, at)) * 1.0
            return np.where(time == t, before, value)

        limits = RootLimits(_XTOL, _XTOL, _MAX_ITERATIONS)
        return fixed(root_unchecked("brentq", g, t, t_new, limits))

    def _precise(
        self, k: int, t: Any, h: Any, y: Any, y_new: Any, prepared: Any, root: Any
    ) -> tuple[Any, Any]:
        """The time and the state of an event, whose derivatives are those of its equation."""
        at = self.method.interpolate((root - t) / h, h, y, y_new, prepared)
        problem = self.problem
        shift = 0.0 * root

        def value(d: Any) -> Any:
            return self.events[k].function(root + d, flow(problem, root, at, d)) * 1.0

        for _ in range(_NEWTON_STEPS):
            g, slope = jvp(value, (shift,), (np.float64(1.0),))
            is_flat = slope == 0
            change = np.where(is_flat, g, g / np.where(is_flat, 1.0, slope))
            shift = shift - _undefined_if(fixed(is_flat), change)
        shift = shift - fixed(shift)  # the value is that of SciPy
        return root + shift, flow(problem, root, at, shift)

    def _changed(self, k: int, t: Any, y: Any, sign: Any) -> tuple[Any, Any]:
        """The state after the event, and the value of g there, with the sign after it."""
        reset = self.events[k].reset
        assert reset is not None
        new = reset(t, y)
        size = np.abs(self._value(k, t, y))
        g, slope = jvp(
            lambda d: self.events[k].function(t + d, flow(self.problem, t, new, d)) * 1.0,
            (0.0 * t,),
            (np.float64(1.0),),
        )
        g, slope = fixed(g), fixed(slope)
        still_there = np.abs(g) <= np.maximum(_RELATIVE_ZERO * np.abs(slope), size)
        return new, np.where(still_there, sign * np.sign(slope) * _SMALLEST_POSITIVE, g)


@custom_jvp
def _undefined_if(condition: Any, x: Any) -> Any:
    """x, whose derivative is NaN where the condition holds: the function touches zero there."""
    return x


@_undefined_if.defjvp
def _undefined_tangent(primals: Any, tangents: Any) -> Any:
    condition, x = primals
    return x, tangents[1] * np.where(condition, np.nan, 1.0)


def flow(problem: IvpProblem, t: Any, y: Any, d: Any) -> Any:
    """The solution at ``t + d`` from y at t, by one step of the method of Runge and Kutta."""
    f = problem.slope
    k1 = f(t, y)
    k2 = f(t + d / 2, y + d / 2 * k1)
    k3 = f(t + d / 2, y + d / 2 * k2)
    k4 = f(t + d, y + d * k3)
    return y + d / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
