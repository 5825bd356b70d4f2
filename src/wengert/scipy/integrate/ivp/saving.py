"""States at given times, by the interpolants of the steps.

AtTimes    the observer of the loop that keeps them; StepBuffers (dense_output.py) keeps the
           states after all steps
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.control_flow import cond, while_loop
from wengert._engine.tensor.numpy_dispatch import as_tensor

from .loop import Attempt, Observer
from .method import Evaluations, Method
from .problem import IvpProblem


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
