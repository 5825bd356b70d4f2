"""Backends: what runs a graph.

argument_conversion  arguments of a call as arrays of the shapes and dtypes that a graph expects
cache                wengert.memory and wengert.cache: what native code keeps
copy_on_return       results that a caller may write to
cost_report          operations, bytes and peak memory, counted without running
executable           Executable: a graph with its inputs checked and its sizes solved, ready to
                     call
interpreter_profile  how long each line takes, seen by a clock
interpreter_timing   where the time of a run goes, where lines run one after the other
liveness             when each value is needed for the last time, and what that saves
memory               wengert.memory and wengert.cache: what native code keeps
null                 "null": runs nothing
registry             Backend, the registry by name, entry points of third parties
variable_updates     new values of variables, written after a run
interpreter/         runs a graph node by node with NumPy
llvm/                "llvm": native code; imported at first use, as LLVM is large
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import late_names, public_dir

from .executable import Executable
from .interpreter.interpreter import Interpreter
from .null import Null
from .registry import Backend, backend, backends, register_backend

if TYPE_CHECKING:
    from .cost_report import Report, report
    from .interpreter_profile import Profile, profile

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
        **dict.fromkeys(("Profile", "profile"), ".interpreter_profile"),
        **dict.fromkeys(("Report", "report"), ".cost_report"),
    },
)

__dir__ = public_dir(__name__)
