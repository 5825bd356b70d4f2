"""Cache of native code on disk: what was compiled once is loaded the next time, in any process.

    info                 where it is, how many files there are, how often they were found
    clear                delete them
    limit                how many bytes they may take
    directory, enabled   where they are; whether they are used

The environment variable WENGERT_CACHE=0 switches it off; WENGERT_CACHE=<path> moves it.
"""

from __future__ import annotations

from wengert._engine.backends.llvm.cache.disk_cache import (
    DiskCacheInfo,
    clear,
    directory,
    enabled,
    info,
    limit,
)
from wengert._engine.core.lazy_import import public_dir

__all__ = ["DiskCacheInfo", "clear", "directory", "enabled", "info", "limit"]

__dir__ = public_dir(__name__)
