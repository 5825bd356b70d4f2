"""Recording state: whether operations on tensors are written down.

The state is a context variable, so threads and asyncio tasks do not see each other's `no_grad`.
Reading it costs time in every operation, hence the module also counts how many `no_grad` blocks
are open anywhere: while there are none, `apply` looks at one integer and nothing else.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Generator, Iterator
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from .node import next_serial

_enabled: ContextVar[bool] = ContextVar("wengert_recording", default=True)
_lock = Lock()


class _Pauses:
    """How many recording switches are open in any thread."""

    count = 0


def is_recording() -> bool:
    """Whether operations on tensors are recorded here and now."""
    return _Pauses.count == 0 or _enabled.get()


class Session:
    """What happens while a function is traced, beside the values that it returns.

    Attributes
    ----------
    effects : list of Node
        Lines that are to run although nothing needs their value: prints, guards.
    written : dict
        Handles that were there before and have been written to, with the node they had.
    reads : list of (Node, str, str)
        Values that became plain numbers: the line, by what (``"item()"``), and the user's line.
    since : int
        The serial number at which it began; older lines are from outside.
    watching : bool
        Nothing is traced; somebody only wants to know more of what is recorded (`note_lines`).
    isolated : bool
        Writing to traced values from outside is noted in `written`, too.
    where, level
        While a derivative is recorded: the user's line that is being differentiated, the order.
    """

    def __init__(self, watching: bool = False) -> None:
        self.since = next_serial()
        self.watching = watching
        self.isolated = False
        self.where: str | None = None
        self.level = 0
        self.effects: list[Any] = []
        self.written: dict[Any, Any] = {}
        self.reads: list[tuple[Any, str, str]] = []

    def enter(self, node: Any) -> None:
        """The lines to come stem from this one."""
        self.where = node.where


_session: ContextVar[Session | None] = ContextVar("wengert_session", default=None)


def session() -> Session | None:
    """The trace that is going on here, or None."""
    opened = _session.get() if _Pauses.count else None
    return None if opened is None or opened.watching else opened


def noting() -> Session | None:
    """The session that notes the user's lines here, while tracing or not; or None."""
    return _session.get() if _Pauses.count else None


@contextmanager
def tracing(watching: bool = False) -> Iterator[Session]:
    """A block that is traced; what it writes to is put back at its end."""
    opened = Session(watching)
    token = _session.set(opened)
    with _lock:
        _Pauses.count += 1
    try:
        yield opened
    finally:
        _session.reset(token)
        with _lock:
            _Pauses.count -= 1
        for handle, node in opened.written.items():
            handle.node = node


@contextmanager
def note_lines() -> Iterator[Session]:
    """A block, or a decorated function, whose operations remember the user's file and line.

    For debugging: each operation takes about twice as long. What `no_grad`, `detach` and the like
    cut off also stays visible to `wengert.why` and to whoever looks at the graph; no derivative
    passes there, as ever.

    Yields
    ------
    Session
        What was noted beside the lines.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> with wg.note_lines():
    ...     y = np.sum(x * x)
    >>> y.node.where is not None
    True
    """
    already = noting()
    if already is not None:
        yield already
        return
    with tracing(watching=True) as opened:
        yield opened


class _Switch(ContextDecorator):
    """A block, or a decorated function or generator, with recording switched on or off."""

    enabled: bool

    def __init__(self) -> None:
        self._previous: list[bool] = []

    def __enter__(self) -> _Switch:
        self._previous.append(_enabled.get())
        with _lock:
            _Pauses.count += 1
        _enabled.set(self.enabled)
        return self

    def __exit__(self, *_: object) -> None:
        # Not Token.reset: a generator may be closed in another context than it was started in.
        _enabled.set(self._previous.pop())
        with _lock:
            _Pauses.count -= 1

    def _recreate_cm(self) -> _Switch:
        return type(self)()

    def __call__(self, func: Any) -> Any:
        if not inspect.isgeneratorfunction(func):
            return super().__call__(func)

        # The state holds while the generator's own code runs, and not between its items.
        @functools.wraps(func)
        def stepping(*args: Any, **kwargs: Any) -> Generator[Any, None, Any]:
            items = func(*args, **kwargs)
            while True:
                with type(self)():
                    try:
                        item = next(items)
                    except StopIteration as stop:
                        return stop.value
                yield item

        return stepping


class no_grad(_Switch):
    """Operations inside are not recorded; their results are constants.

    Usable as ``with no_grad():`` and as a decorator, also of generators.

    Examples
    --------
    >>> import wengert as wg
    >>> w = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> with wg.no_grad():
    ...     y = w * 2.0
    >>> y.requires_grad
    False
    """

    enabled = False


class enable_grad(_Switch):
    """Operations inside are recorded again, within a `no_grad` block.

    Examples
    --------
    >>> import wengert as wg
    >>> w = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> with wg.no_grad(), wg.enable_grad():
    ...     y = w * 2.0
    >>> y.requires_grad
    True
    """

    enabled = True
