"""What this process may use of the machine.

    cores     the number of processors: by affinity, and by the quota of a container
    memory    bytes of memory: of the machine, or of the container

A container with two of sixty-four cores reports sixty-four; sixty-two threads too many would wait
for each other.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")
_UNKNOWN = 4 << 30  # bytes taken for the memory of a machine that does not say


def cores() -> int:
    """How many processors this process may run on; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    quota = _group_file("cpu.max").split()
    if len(quota) == 2 and all(word.isdecimal() for word in quota) and int(quota[1]) > 0:
        count = min(count, math.ceil(int(quota[0]) / int(quota[1])))
    return max(count, 1)


def memory() -> int:
    """How many bytes of memory this process may use at most."""
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
