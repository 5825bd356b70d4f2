"""Locks that a forked child can take.

A child process of `os.fork` has only the thread that called it: a lock that another thread held
would never be released.  Locks made here are free in the child.

A `with` statement cannot leave them taken if a keyboard interrupt comes as it begins.  In Python
3.14 it does so with other locks: signals are handled between ``__enter__`` and the block
(python/cpython#148874, repaired in 3.15).
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

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
