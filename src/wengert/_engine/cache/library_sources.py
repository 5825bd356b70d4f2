"""The state of wengert's sources: what a cached file depends on beside its own inputs.

library_sources    a checksum of paths, sizes and times of all source files, and of the versions of
                   Python, NumPy and SciPy
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from typing import Any

import numpy as np
import scipy

from wengert._engine.core.lazy_import import STARTED
from wengert.errors import FOLDER

_EARLIER = 1_000_000_000  # nanoseconds by which sources must be older than the process


@functools.cache
def library_sources() -> bytes | None:
    """The state of wengert's sources and of its dependencies; None if it is not known.

    A checksum, which each key contains: the names and times themselves are 190 KB, and to hash them
    takes longer than to hash a program.
    """
    versions = sys.version, sys.implementation.cache_tag, np.__version__, scipy.__version__
    found: list[Any] = [repr(versions)]
    pending = [FOLDER]
    try:
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.name.endswith((".py", ".ll", ".npy")):
                        state = entry.stat()
                        if max(state.st_ctime_ns, state.st_mtime_ns) > STARTED - _EARLIER:
                            return None  # it may have changed after this process read it
                        times = state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino
                        found.append(f"{entry.path} {times}")
                    elif entry.name != "__pycache__" and entry.is_dir():
                        pending.append(entry.path)
    except OSError:  # not installed as files
        return None
    if len(found) == 1:
        return None
    return hashlib.sha256("\n".join(sorted(found)).encode()).digest()
