"""Backends: what makes a list run.

base.py          Backend, the registry by name, entry points of third parties
executable.py    Executable: a graph with its inputs checked and its sizes solved, ready to call
feeding.py, owned.py, updates.py    what goes in, what comes out, what stays
interpret.py     "interpret": NumPy, line by line; the meaning of a graph
reuse.py         memory that has become free during a run
null.py          "null": runs nothing
llvm/            "llvm": native code; imported at first use, as LLVM is large
checked.py           the interpreter looking for NaN, while `wengert.debug(nan=True)` holds
liveness.py          when each value is needed for the last time, and what that saves
profiling.py         how long each line takes, seen by a clock
timing.py            where time and memory went, as plain data; linewise.py: of the interpreter
reporting.py         operations, bytes and peak memory, counted without running
memory.py, cache.py  wengert.memory and wengert.cache: what native code keeps
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import late_names, public_dir

from .base import Backend, backend, backends, register_backend
from .executable import Executable
from .interpret import Interpreter
from .null import Null

if TYPE_CHECKING:
    from .profiling import Profile, profile
    from .reporting import Report, report

__all__ = [
    "Backend",
    "Executable",
    "Interpreter",
    "Null",
    "Profile",
    "Report",
    "backend",
    "backends",
    "profile",
    "register_backend",
    "report",
]

__getattr__ = late_names(
    __name__,
    {
        **dict.fromkeys(("Profile", "profile"), ".profiling"),
        **dict.fromkeys(("Report", "report"), ".reporting"),
    },
)

__dir__ = public_dir(__name__)
