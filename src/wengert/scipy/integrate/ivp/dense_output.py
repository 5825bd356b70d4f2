"""States at given times, after all steps, and the solution between the steps.

AtTimes        the observer of the loop that keeps states at given times, by interpolants
StepBuffers    the state after each step, and what the interpolant takes
with_end       the last state with the derivatives of the end of the interval
Interpolant    the solution as a function of time
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.control_flow import cond, while_loop
from wengert._engine.tensor.numpy_dispatch import as_tensor

from .loop import Attempt, Observer
from .method import Evaluations, IvpProblem, Method


class StepBuffers(Observer):
    """Times and states at the start and after each step, in buffers of a given capacity.

    capacity : the largest number of steps.
    dense : whether what the interpolant takes is kept, too.
    """

    def __init__(self, problem: IvpProblem, method: Method, capacity: int, dense: bool) -> None:
        self.problem, self.method, self.capacity, self.dense = problem, method, capacity, dense

    def start(self, t: Any, y: Any) -> Any:
        """Buffers that contain the start."""
        zero = 0 * t
        ts, ys = self._buffer(self.capacity + 1, t), self._buffer(self.capacity + 1, y)
        ts[0], ys[0] = t, y
        rest: tuple[Any, ...] = ()
        if self.dense:
            prepared = self._prepared_like(t, y)
            rest = tuple([self._buffer(self.capacity, x) for x in (zero, y, *prepared)])
        return (np.int64(1), ts, ys, *rest)

    def _buffer(self, count: int, like: Any) -> Any:
        return (np.zeros((count, *np.shape(like))) + 0 * like).copy()

    def _prepared_like(self, t: Any, y: Any) -> list[Any]:
        """Arrays with the shapes of what the interpolant takes."""
        return [0 * x for x in self.method.dense_like(self.problem, t, y)]

    def after(self, state: Any, attempt: Attempt) -> tuple[Any, Evaluations]:
        """Write the end of the step; the next step overwrites that of a rejected one."""
        index, ts, ys, *rest = state
        a = attempt
        ts, ys = ts.copy(), ys.copy()
        ts[index], ys[index] = a.end, a.y_end
        counts = Evaluations()
        if self.dense:
            prepared = self.method.prepared(self.problem, a.t, a.h, a.y, a.y_new, a.dense)
            written = []
            for buffer, x in zip(rest, (a.h, a.y_new, *prepared), strict=True):
                buffer = buffer.copy()
                buffer[index - 1] = x
                written.append(buffer)
            rest = written
            extra = self.method.dense_counts
            counts = Evaluations(*[np.where(a.accepted, n, 0) if n else 0 for n in extra])
        return (index + a.accepted, ts, ys, *rest), counts

    def is_full(self, state: Any) -> Any:
        """Whether the buffers are full."""
        return state[0] > self.capacity


def with_end(state: Any, t: Any, y: Any) -> Any:
    """Buffers whose last rows have the derivatives of the results of the loop.

    They are the same numbers, but depend on the end of the interval.
    """
    index, ts, ys, *rest = state
    ts, ys = ts.copy(), ys.copy()
    ts[index - 1], ys[index - 1] = t, y
    return (index, ts, ys, *rest)


class Interpolant:
    """The solution as a function of time, of the interpolants of the steps.

    Parameters
    ----------
    method : Method
    ts : array, shape (m + 1,)
        The ends of the steps, increasing or decreasing.
    ys : array, shape (m + 1, n)
        The states there.
    parts : sequence of arrays
        For each step its size, the state at the end of the whole step, and what the method's
        interpolant takes; the first axis counts steps.

    Notes
    -----
    Before the first and after the last time the polynomial of the nearest step is evaluated, as in
    SciPy.
    """

    def __init__(self, method: Method, ts: Any, ys: Any, parts: Any) -> None:
        self.method, self.ts, self.ys, self.parts = method, ts, ys, list(parts)

    @property
    def t_min(self) -> Any:
        """The first time, in the order of numbers."""
        return np.minimum(self.ts[0], self.ts[-1])

    @property
    def t_max(self) -> Any:
        """The last time, in the order of numbers."""
        return np.maximum(self.ts[0], self.ts[-1])

    @property
    def n_segments(self) -> int:
        """The number of steps."""
        return int(self.ts.shape[0]) - 1

    def at(self, t: Any) -> Any:
        """The state at one time."""
        return self._polynomial(*self._located(t)) if self.n_segments else self.ys[0] + 0 * t

    def states(self, t: Any) -> Any:
        """The states at a vector of times, along the first axis."""
        if not t.shape[0] or not self.n_segments:
            return self.ys[:1] + 0 * t[:, None]
        return vmap(self._polynomial)(*self._located(t))

    def _located(self, t: Any) -> tuple[Any, ...]:
        """Of one time or of each: the position in its step, and what the polynomial takes."""
        ts = self.ts
        sign = np.where(ts[-1] < ts[0], -1.0, 1.0)
        index = np.searchsorted(sign * ts, sign * t, side="left") - 1
        index = np.minimum(np.maximum(index, 0), self.n_segments - 1)
        size, y_new, *prepared = [x[index] for x in self.parts]
        theta = (t - ts[index]) / np.where(size == 0, 1.0, size)
        return theta, size, self.ys[index], y_new, *prepared

    def _polynomial(self, theta: Any, size: Any, y: Any, y_new: Any, *prepared: Any) -> Any:
        return self.method.interpolate(theta, size, y, y_new, prepared)

    def __repr__(self) -> str:
        return f"<Interpolant from {self.ts[0]} to {self.ts[-1]} with {self.n_segments} steps>"


class AtTimes(Observer):
    """The states at times in the order of the integration.

    times : a vector; its derivative is that of the interpolant.
    keeps_steps : whether sizes, ends and numbers of the steps that reach the times are kept, too.
    """

    def __init__(
        self, problem: IvpProblem, method: Method, times: Any, keeps_steps: bool = False
    ) -> None:
        # A plain array cannot be read at an index that is known only when the loop runs.
        self.problem, self.method, self.times = problem, method, as_tensor(times)
        self.keeps_steps = keeps_steps

    def start(self, t: Any, y: Any) -> Any:
        """No time is reached; the states are NaN, and numbers of steps and evaluations zero."""
        count = self.times.shape[0]
        state = np.int64(0), np.full((count, *y.shape), np.nan) + 0 * y
        if not self.keeps_steps:
            return state
        return *state, np.full((count, 2), np.nan), np.zeros((count, 3), np.int64)

    def after(self, state: Any, attempt: Attempt) -> tuple[Any, Evaluations]:
        """Interpolate at the times up to the end of the step."""
        count = self.times.shape[0]
        backward = attempt.h < 0
        problem, method, times = self.problem, self.method, self.times
        a = attempt

        def is_reached(index: Any) -> Any:
            time = times[np.minimum(index, count - 1)]
            reached = np.where(backward, time >= a.end, time <= a.end)
            return a.accepted & (index < count) & reached

        def saved(state: Any) -> Any:
            prepared = method.prepared(problem, a.t, a.h, a.y, a.y_new, a.dense)

            def next_time(state: Any) -> Any:
                index, ys, *steps = state
                theta = (times[index] - a.t) / a.h
                ys, written = ys.copy(), []
                ys[index] = method.interpolate(theta, a.h, a.y, a.y_new, prepared)
                for rows, row in zip(steps, _of_step(a), strict=False):
                    rows = rows.copy()
                    rows[index] = row
                    written.append(rows)
                return index + 1, ys, *written

            return while_loop(lambda s: is_reached(s[0]), next_time, state)

        if not count:
            return state, Evaluations()
        extra = method.dense_counts
        if not any(extra):
            return saved(state), Evaluations()
        some = is_reached(state[0])
        found = cond(some, saved, lambda state: state, state)
        return found, Evaluations(*[np.where(some, n, 0) for n in extra])


def _of_step(attempt: Attempt) -> tuple[Any, Any]:
    """The size and the end of a step; its number, and evaluations so far."""
    a = attempt
    numbers = [a.index + 1, a.counts.rhs, a.counts.jac]
    return np.stack([a.h, a.end]), np.stack([np.int64(1) * n for n in numbers])
