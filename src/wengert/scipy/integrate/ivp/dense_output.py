"""The solution between the steps.

StepBuffers   the state after each step, and what the interpolant takes
with_end      the last state with the derivatives of the end of the interval
Interpolant   the solution as a function of time
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.autodiff.vmap import vmap

from .loop import Attempt, Observer
from .method import Evaluations, Method
from .problem import IvpProblem


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
