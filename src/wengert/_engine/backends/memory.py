"""Memory of large results and workspaces of native functions: recycled, bounded.

    info     how much is used and kept, how often it was recycled
    limit    how many bytes may be kept for later arrays
    trim     give what is kept back to the system

A large array's memory is not given back to the system when it dies, but to the next array of its
size: fresh pages cost several times the computation that fills them.
"""

from __future__ import annotations

from wengert._engine.backends.llvm.runtime.allocator_stats import AllocatorInfo, info, limit, trim
from wengert._engine.core.lazy_import import public_dir

__all__ = ["AllocatorInfo", "info", "limit", "trim"]

__dir__ = public_dir(__name__)
