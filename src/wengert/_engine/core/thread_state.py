"""State of threads and processes: locks, values of `with` blocks, floating-point errors.

Locks that a forked child can take.

A child process of `os.fork` has only the thread that called it: a lock that another thread held
would never be released.  Locks made here are free in the child.

A `with` statement cannot leave them taken if a keyboard interrupt comes as it begins.  In Python
3.14 it does so with other locks: signals are handled between ``__enter__`` and the block
(python/cpython#148874, repaired in 3.15).

Dynamically scoped values that tolerate out-of-order exit (generators, coroutines, threads).

A block in a generator or coroutine may end after blocks that were opened later, or in another
context or thread than it began in.  So ending one does not restore an earlier value, as
`Token.reset` does, which then fails or restores the value of an ended block.  It marks the block as
ended, and a read returns the value of the innermost open block.

    ScopedValue  one block: its value, the block around it, whether it has ended
    Blocks       the nested blocks of one context variable: each thread and task has its own
    Openings     the number of open blocks in all threads, which hot paths read instead

Functions that run with NumPy's floating-point errors ignored, also if they are interrupted.

A keyboard interrupt inside ``np.errstate.__enter__`` or ``__exit__``, which are Python functions,
leaves the errors ignored for the rest of the program.  A function that runs in a copy of the
context (`contextvars.Context.run`, implemented in C) cannot change the state of its caller.

    errors_ignored         the decorator
    call_ignoring_errors   one such call
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

_locks: weakref.WeakSet[Any] = weakref.WeakSet()

interrupt_safe_lock: Callable[[], Any] = threading.RLock  # as by `lock`, but as it is in a child
if sys.version_info >= (3, 14):

    class _Lock(_thread.RLock):
        """A lock that is released again if an interrupt comes after it was taken."""

        __slots__ = ()

        def __enter__(self) -> bool:
            before = self._recursion_count()
            try:
                return self.acquire()
            except BaseException:
                if self._recursion_count() > before:
                    self.release()
                raise

    interrupt_safe_lock = _Lock


def lock() -> Any:
    """A reentrant lock, as a signal handler or finalizer may interrupt its holder."""
    new = interrupt_safe_lock()
    _locks.add(new)
    return new


def _free_all() -> None:
    for each in list(_locks):
        each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)


T = TypeVar("T")


class ScopedValue(Generic[T]):
    """A block that has a value until it is ended.

    ``block.end(True)`` ends it. This is `list.append`, implemented in C: a keyboard interrupt
    cannot come in its middle, and it can be the callback of a weak reference. `Blocks.forget` then
    releases the value.
    """

    __slots__ = ("_owner", "end", "ends", "outer", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.outer: ScopedValue[T] | None = None
        self.ends: list[Any] = []
        self.end: Callable[[Any], None] = self.ends.append
        self._owner: weakref.ref[Any] | None = None

    def end_with(self, owner: object) -> None:
        """Tie the lifetime of the block to `owner`.

        An interrupt before ``__exit__`` then does not leave it open.
        """
        # Stored here, not in the owner: if both were freed in one cycle, no callback would run.
        self._owner = weakref.ref(owner, self.end)

    def end_together_with(self, other: ScopedValue[Any]) -> None:
        """Make ``other.end(True)`` end this block too, in one call: none can come between."""
        self.ends, self.end = other.ends, other.end


class Blocks(Generic[T]):
    """Nested blocks of one kind.

    Parameters
    ----------
    name : str
        The name of the context variable.
    default : object
        The value outside of all blocks.

    Examples
    --------
    >>> from wengert._engine.core.thread_state import Blocks, ScopedValue
    >>> colors = Blocks("colors", "none")
    >>> red, blue = ScopedValue("red"), ScopedValue("blue")
    >>> colors.open(red)
    >>> colors.open(blue)
    >>> red.end(True)
    >>> colors.get()
    'blue'
    >>> blue.end(True)
    >>> colors.get()
    'none'
    """

    __slots__ = ("_default", "_get", "_innermost")

    def __init__(self, name: str, default: T) -> None:
        self._innermost: ContextVar[ScopedValue[T] | None] = ContextVar(name, default=None)
        self._get = self._innermost.get
        self._default = default

    def get(self) -> T:
        """The value in this context."""
        block = self._get()
        if block is None:
            return self._default
        if not block.ends:
            return block.value
        block = self.innermost()
        return self._default if block is None else block.value

    def innermost(self) -> ScopedValue[T] | None:
        """The innermost open block, if any."""
        block = self._get()
        while block is not None and block.ends:
            block = block.outer
        return block

    def open(self, block: ScopedValue[T]) -> None:
        """Begin a block in this context."""
        block.outer = self.innermost()
        self._innermost.set(block)

    def forget(self) -> None:
        """Release blocks that have ended."""
        self._innermost.set(self.innermost())


class Opening:
    """A token of an open block, held by its owner; see `Openings`."""

    __slots__ = ("__weakref__", "reference")

    reference: weakref.ref[Opening]


class Openings:
    """The number of blocks open in any thread.

    An interrupt may come before the end of a block is counted.  So the `Opening` objects that exist
    are counted, which are released with the frame of the block; until the next `recount`, `count`
    may be too large, but it is never too small.

    Parameters
    ----------
    cell : numpy.ndarray, optional
        One int64 that also holds the number, for native code.

    Examples
    --------
    >>> from wengert._engine.core.thread_state import Openings
    >>> blocks = Openings()
    >>> opening = blocks.begin()
    >>> blocks.count
    1
    >>> blocks.end(opening)
    >>> blocks.count
    0
    """

    __slots__ = ("_lock", "_open", "cell", "count")

    def __init__(self, cell: Any = None) -> None:
        self.count = 0
        self.cell = cell
        self._open: set[weakref.ref[Opening]] = set()
        self._lock = lock()

    def begin(self) -> Opening:
        """Count one more block."""
        opening = Opening()
        opening.reference = weakref.ref(opening, self._open.discard)
        self._open.add(opening.reference)
        self.recount()
        return opening

    def end(self, opening: Opening) -> None:
        """Stop counting the block."""
        self._open.discard(opening.reference)
        self.recount()

    def recount(self) -> None:
        """Update the count."""
        with self._lock:
            self.count = len(self._open)
            if self.cell is not None:
                self.cell[0] = self.count


P = ParamSpec("P")


def call_ignoring_errors(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a copy of the context in which ``np.errstate(all="ignore")`` is active."""
    context = copy_context()
    context.run(np.errstate(all="ignore").__enter__)  # ends with the context
    return context.run(function, *args, **kwargs)


def errors_ignored(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that it is called by `call_ignoring_errors`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert._engine.core.thread_state import errors_ignored
    >>> @errors_ignored
    ... def reciprocal(x):
    ...     return 1 / x
    >>> reciprocal(np.zeros(2)).tolist()
    [inf, inf]
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return call_ignoring_errors(function, *args, **kwargs)

    return run
