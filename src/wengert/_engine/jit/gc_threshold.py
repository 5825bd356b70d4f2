"""Garbage collection: a higher threshold while a function is traced and compiled.

Compiling allocates tens of thousands of small objects, nearly all of which survive or are freed by
reference counting.  Collections of the young generation after every 700 objects, and of older
generations, would take a tenth of the time of the first call.

    relaxed_gc    a context manager that raises the threshold
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from wengert._engine.core.fork_safe_locks import lock

_RAISED_THRESHOLD = 50_000  # objects between collections: some megabytes
_LOCK = lock()


class _CompileCount:
    """The number of compiling threads, and the threshold to restore."""

    users = 0
    usual = (0, 0, 0)


@contextmanager
def relaxed_gc() -> Iterator[None]:
    """Raise the threshold of the young generation, unless it is higher, or zero (no collection)."""
    with _LOCK:
        if not _CompileCount.users:
            _CompileCount.usual = gc.get_threshold()
            if 0 < _CompileCount.usual[0] < _RAISED_THRESHOLD:
                gc.set_threshold(_RAISED_THRESHOLD, *_CompileCount.usual[1:])
        _CompileCount.users += 1
    try:
        yield
    finally:
        with _LOCK:
            _CompileCount.users -= 1
            if not _CompileCount.users and gc.get_threshold() == (
                _RAISED_THRESHOLD,
                *_CompileCount.usual[1:],
            ):
                gc.set_threshold(*_CompileCount.usual)
