"""Cache of native code on disk: compiled code is reused by later processes.

    info                 folder, number of files, hits
    clear                delete them
    limit                limit of their size in bytes
    directory, enabled   their folder; whether the cache is used

The environment variable WENGERT_CACHE=0 switches it off; WENGERT_CACHE=<path> moves it.
"""

from __future__ import annotations

from wengert._engine.cache.disk_cache import (
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
