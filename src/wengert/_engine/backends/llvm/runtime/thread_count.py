"""The number of threads of native functions that do not set one.

    get_threads    the number
    set_threads    sets it, for the duration of a `with` statement if used as one
    attach         registers the thread pool, once native code is loaded

Only the number is stored here, so setting it does not load LLVM.  thread_pool.py uses it.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from types import TracebackType
from typing import SupportsIndex

from wengert.errors import ArgumentError, at, user_line

from .machine import cores

_VARIABLES = ("WENGERT_THREADS", "OMP_NUM_THREADS")


class _Setting:
    """The number, and the functions to be called when it changes."""

    def __init__(self) -> None:
        self.number = 0  # not determined yet
        self.listeners: list[Callable[[int], object]] = []

    def change(self, number: int) -> None:
        self.number = number
        for listener in self.listeners:
            listener(number)


_SETTING = _Setting()


class set_threads:
    """Set how many threads native functions use; in a `with` statement, until its end.

    Large loops are split over so many threads, and BLAS and LAPACK calls from native code use as
    many.  Small work stays on the calling thread.

    Parameters
    ----------
    threads : int
        At least 1.  The default is the environment variable WENGERT_THREADS or OMP_NUM_THREADS if
        one of them is a number, or else the number of processors that this process may use.

    Raises
    ------
    ArgumentError
        It is not an integer, or less than 1.

    Notes
    -----
    The setting is global for all Python threads.  Results are reproducible bit by bit for the same
    number of threads; for another number sums may round differently.

    Examples
    --------
    >>> before = wg.get_threads()
    >>> with wg.set_threads(1):
    ...     wg.get_threads()
    1
    >>> wg.get_threads() == before
    True
    """

    __module__ = "wengert"

    def __init__(self, threads: SupportsIndex) -> None:
        self._before = get_threads()
        _SETTING.change(checked(threads))

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _SETTING.change(self._before)

    def __repr__(self) -> str:
        return f"set_threads({get_threads()})"


def get_threads() -> int:
    """The number of threads that native functions use.

    Returns
    -------
    int
        The value of `set_threads`, or the default described there.

    Examples
    --------
    >>> wg.get_threads() >= 1
    True
    """
    if _SETTING.number == 0:
        _SETTING.number = _default()
    return _SETTING.number


def checked(threads: SupportsIndex) -> int:
    """Check and return a number of threads."""
    try:
        number = 0 if isinstance(threads, bool) else operator.index(threads)
    except TypeError:
        number = 0
    if not 1 <= number < 1 << 31:
        raise ArgumentError(
            f"threads={threads!r} is not a number of threads: give an integer that is at least 1; "
            f"1 computes everything on the calling thread{at(user_line())}."
        )
    return number


def attach(listener: Callable[[int], object]) -> None:
    """Call a function with the number, now and whenever it changes."""
    _SETTING.listeners.append(listener)
    listener(get_threads())


def _default() -> int:
    for variable in _VARIABLES:
        first = os.environ.get(variable, "").split(",")[0].strip()
        if first.isdecimal() and 1 <= int(first) < 1 << 31:
            return int(first)
    return cores()
