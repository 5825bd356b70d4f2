"""The processors and memory that this process may use.

    cores     the number of processors, limited by affinity and by the quota of a container
    memory    bytes of memory of the machine, or of the container

In a container with two of sixty-four cores the system reports sixty-four; sixty-two threads too
many would wait for each other.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")
_UNKNOWN = 4 << 30  # bytes assumed if the system does not tell


def cores() -> int:
    """The number of processors that this process may run on; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    quota = _group_file("cpu.max").split()
    if len(quota) == 2 and all(word.isdecimal() for word in quota) and int(quota[1]) > 0:
        count = min(count, math.ceil(int(quota[0]) / int(quota[1])))
    return max(count, 1)


def memory() -> int:
    """The bytes of memory that this process may use."""
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on Windows
        size = _UNKNOWN
    bound = _group_file("memory.max").strip()
    return min(size, int(bound)) if bound.isdecimal() else size


def _group_file(name: str) -> str:
    try:
        return (_GROUP / name).read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
