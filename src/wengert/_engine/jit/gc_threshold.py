"""Garbage collection: a higher threshold while a function is traced and compiled.

Tens of thousands of small objects are made then, and nearly all of them stay or are let go by
counting.  The collector looks through the young ones after every 700, and through older ones after
some more of that: a tenth of what a first call takes.  So for that time it looks less often.

    relaxed_gc    a context in which it does
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from wengert._engine.core.fork_safe_locks import lock

_YOUNG = 50_000  # objects after which it looks; some megabytes
_LOCK = lock()


class _CompileCount:
    """How many are compiling, and what is usual when nobody is."""

    users = 0
    usual = (0, 0, 0)


@contextmanager
def relaxed_gc() -> Iterator[None]:
    """Look through young objects less often; where the user has it so, or not at all, nothing."""
    with _LOCK:
        if not _CompileCount.users:
            _CompileCount.usual = gc.get_threshold()
            if 0 < _CompileCount.usual[0] < _YOUNG:
                gc.set_threshold(_YOUNG, *_CompileCount.usual[1:])
        _CompileCount.users += 1
    try:
        yield
    finally:
        with _LOCK:
            _CompileCount.users -= 1
            if not _CompileCount.users and gc.get_threshold() == (_YOUNG, *_CompileCount.usual[1:]):
                gc.set_threshold(*_CompileCount.usual)
