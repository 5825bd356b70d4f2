"""Locks that a forked child can take.

A child process of `os.fork` has only the forking thread: a lock that another thread held would
never be released.  Locks made here are free in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> Any:
    """A reentrant lock, as a signal handler or finalizer may interrupt its holder."""
    made = threading.RLock()
    _made.add(made)
    return made


def _free_all() -> None:
    for made in list(_made):
        made._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
