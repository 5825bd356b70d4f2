"""Progress of solutions: bars that compiled loops advance.

LoopProgress    a bar, opened, advanced and closed by calls in the order of a program
IvpProgress     the observer that reports how much of an interval is integrated
loop_progress   the bar that an argument `progress` asks for
bar_of_loop     opens the bar before a loop, and closes it afterwards
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wengert._engine.control_flow import cond
from wengert._engine.core import pytree
from wengert._engine.core.handle import is_traced
from wengert._engine.ops.debug_callbacks import PendingCall, call_in_order
from wengert._engine.visualization.progress import Progress, TqdmBar, given_bar

from .loop import Attempt, Observer
from .method import Evaluations, fixed

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
