"""Memory pool of large results and workspaces of native functions.

    info     memory in use and in the pool, number of reuses
    limit    limit of the pool in bytes
    trim     return the pooled memory to the system
    device_info    the memory of the graphics card in use

The memory of a freed large array is not returned to the system, but reused by the next array of its
size: fresh pages cost several times the computation that fills them.
"""

from __future__ import annotations

from wengert._engine.backends.cuda.device_memory import MemoryInfo, device_info
from wengert._engine.backends.llvm.runtime.allocator_stats import AllocatorInfo, info, limit, trim
from wengert._engine.core.lazy_import import public_dir

__all__ = ["AllocatorInfo", "MemoryInfo", "device_info", "info", "limit", "trim"]

__dir__ = public_dir(__name__)
