"""Locks that a forked child can take.

A child process of `os.fork` has only the thread that called it: a lock that another thread held
would never be released.  Locks made here are free in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> Any:
    """A reentrant lock, as a signal handler or finalizer may interrupt its holder."""
    new = threading.RLock()
    _locks.add(new)
    return new


def _free_all() -> None:
    for each in list(_locks):
        each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
