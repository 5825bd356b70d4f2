"""Memory pool of large results and workspaces of native functions.

    info     memory in use and in the pool, number of reuses
    limit    limit of the pool in bytes
    trim     return the pooled memory to the system
    device_info    the memory of the graphics card in use

The memory of a freed large array is not returned to the system, but reused by the next array of its
size: fresh pages cost several times the computation that fills them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wengert._engine.backends.llvm.runtime.settings import AllocatorInfo, info, limit, trim
from wengert._engine.core.device_arrays import MemoryInfo
from wengert._engine.core.lazy_import import lazy_names, public_dir

if TYPE_CHECKING:
    from wengert._engine.backends.cuda.device_memory import device_info

__all__ = ["AllocatorInfo", "MemoryInfo", "device_info", "info", "limit", "trim"]

# The module of the function loads LLVM.
__getattr__ = lazy_names(__name__, {"device_info": "wengert._engine.backends.cuda.device_memory"})
__dir__ = public_dir(__name__)
