"""Instructions of Python's own machine that a path executes: the same count on any machine.

A trace function is called before each instruction.  What happens inside NumPy and native code is
not seen; the other two measures see it.  A count belongs to a minor version of Python.

The import of wengert is counted in a process that has imported NumPy only, so nothing of wengert
is imported here.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

WARM = 3  # calls before the one that is counted
HERE = Path(__file__).resolve().parent.parent
IMPORT = "import numpy, guard.bytecodes as b; print(b.counted(lambda: __import__('wengert')))"


def counted(path: Callable[[], Any]) -> float:
    """Instructions of one call."""
    count = 0

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "opcode"
        return inside

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return inside

    before = sys.gettrace()
    gc.disable()  # a collection calls weak references back
    sys.settrace(entered)
    try:
        path()
    finally:
        sys.settrace(before)
        gc.enable()
    return float(count)


def measure(paths: Mapping[str, Callable[[], Any]], imported: bool = True) -> dict[str, float]:
    """The count of every path, and that of the import if asked for."""
    found = {}
    for name, path in paths.items():
        for _ in range(WARM):
            path()
        found[name] = counted(path)
    if not imported:
        return found
    child = subprocess.run(
        [sys.executable, "-c", IMPORT], cwd=HERE, capture_output=True, text=True, check=True
    )
    return found | {"import": float(child.stdout)}
