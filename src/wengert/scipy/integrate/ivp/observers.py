"""Observers of the loop: states at given times, after all steps and between them; progress bars.

AtTimes        the observer of the loop that keeps states at given times, by interpolants
StepBuffers    the state after each step, and what the interpolant takes
with_end       the last state with the derivatives of the end of the interval
Interpolant    the solution as a function of time
LoopProgress   a bar, opened, advanced and closed by calls in the order of a program
IvpProgress    the observer that reports how much of an interval is integrated
loop_progress  the bar that an argument `progress` asks for
bar_of_loop    opens the bar before a loop, and closes it afterwards
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wengert._engine.autodiff.vmap import vmap
from wengert._engine.control_flow import cond, while_loop
from wengert._engine.core import pytree
from wengert._engine.core.handle import is_traced
from wengert._engine.ops.debug_callbacks import PendingCall, call_in_order
from wengert._engine.tensor.numpy_dispatch import as_tensor
from wengert._engine.visualization.progress import Progress, TqdmBar, given_bar

from .loop import Attempt, Observer
from .method import Evaluations, IvpProblem, Method, fixed


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


_PARTS = 100  # the bar advances when another part of the whole is done


class _OpenBars(threading.local):
    """The bars of a thread, by the `LoopProgress` that has opened them."""

    def __init__(self) -> None:
        self.bars: dict[LoopProgress, Progress] = {}


_open = _OpenBars()


class LoopProgress:
    """A progress bar of a loop of a program, static in it.

    Two are equal if they show the same, so that programs are compiled once. Each run, and each
    thread, has a bar of its own.

    Parameters
    ----------
    description : str
    bar : callable, optional
        Makes the bar; see `Progress`.
    """

    def __init__(self, description: str, bar: Callable[..., TqdmBar] | None = None) -> None:
        self.description, self.bar = description, bar

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopProgress) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.description, self.bar

    def open(self, values: Any) -> None:
        """Open the bar when the program comes to this place.

        values : what the loop depends on. Without a traced value the bar would be opened while a
            program is traced.
        """
        traced = [x for x in pytree.flatten(values)[0] if is_traced(x)][:1]
        call_in_order(PendingCall(self._opened, tuple(traced), {}, True))

    def advance_step(self, done: Any, total: Any, t: Any) -> None:
        """Advance the bar by a step, after a number of them that are done.

        t : the time that is reached, which is shown.
        """
        self.advance(done / total, (done + 1) / total, t)

    def advance(self, before: Any, after: Any, t: Any) -> None:
        """Advance the bar, from a fraction that is done to a larger one."""
        count = _count(after)
        cond(
            count > _count(before),
            lambda count, t: call_in_order(PendingCall(self._advanced, (count, t), {}, True)),
            lambda count, t: None,
            count,
            t,
        )

    def close(self) -> None:
        """Close the bar when the program comes to this place."""
        call_in_order(PendingCall(self.close_now, (), {}))

    def _opened(self, *values: Any) -> None:
        self.close_now()  # an interrupted run may have left one
        bar = Progress(_PARTS, self.description, bar=self.bar)
        _open.bars[self] = bar.__enter__()

    def _advanced(self, count: Any, t: Any) -> None:
        bar = _open.bars.get(self)
        counts, times = np.broadcast_arrays(count, t)
        last = np.argmin(counts)  # of a batch; elements that have not advanced are called, too
        done = int(counts.flat[last])
        if bar is not None and done > bar.done:
            try:
                bar.update(done - bar.done, t=float(times.flat[last]))
            except BaseException:
                self.close_now()
                raise

    def close_now(self) -> None:
        """Close the bar that this thread has open, if it has one."""
        bar = _open.bars.pop(self, None)
        if bar is not None:
            bar.__exit__(None, None, None)


def _count(fraction: Any) -> Any:
    return np.floor(_PARTS * fraction + 1e-9)  # sums of steps may be a little below


class IvpProgress(Observer):
    """Reports how much of an interval is integrated.

    progress : the bar.
    start, end : the ends of the interval.
    """

    def __init__(self, progress: LoopProgress, start: Any, end: Any) -> None:
        self.progress, self.begin, self.end = progress, fixed(start), fixed(end)

    def start(self, t: Any, y: Any) -> Any:
        """There is no state."""
        return ()

    def after(self, state: Any, attempt: Attempt) -> tuple[Any, Evaluations]:
        """Advance the bar if the step is accepted."""
        begin, length = self.begin, self.end - self.begin
        t = np.where(attempt.accepted, fixed(attempt.end), attempt.t)
        self.progress.advance((attempt.t - begin) / length, (t - begin) / length, t)
        return (), Evaluations()


def loop_progress(progress: bool | Callable[..., TqdmBar], description: str) -> LoopProgress | None:
    """The bar that an argument `progress` asks for, or None.

    Raises
    ------
    ArgumentError
        It is neither True, False nor callable.
    """
    bar = given_bar(progress)
    return LoopProgress(description, bar) if progress else None


@contextlib.contextmanager
def bar_of_loop(progress: LoopProgress | None, values: Any) -> Iterator[None]:
    """Open the bar before a loop of values, and close it afterwards; without one do nothing."""
    if progress is None:
        yield
        return
    progress.open(values)
    try:
        yield
    except BaseException:
        progress.close_now()
        raise
    progress.close()


@atexit.register
def _close_all() -> None:
    for progress in list(_open.bars):
        progress.close_now()
