"""Locks that a forked child can take.

A child made by `os.fork` has the forking thread alone: a lock that another thread held would stay
taken for ever.  Locks made here are free in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> Any:
    """A lock that its holder may take again: a signal handler or finaliser may come between."""
    made = threading.RLock()
    _made.add(made)
    return made


def _free_all() -> None:
    for made in list(_made):
        made._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
