"""Backends: interpreter, native code, and what they share.

registry             Backend, and the registry of backends by name; entry points of other packages;
                     "null": runs nothing and returns zeros
executable           Executable: a compiled graph with checked inputs and solved sizes
argument_conversion  arguments of a call as arrays of the shapes and dtypes of a graph's inputs;
                     copies of results that share memory with something else
variable_updates     new values of variables, written together after a run
large_array_kernels  kernels of single operations, for eager operations on large arrays
liveness             lifetime of values, and which operations may write in place
cost_report          operations, bytes and peak memory, counted without running
interpreter_profile  time of each node in the interpreter, and of a run that executes one node
                     after the other
cache                wengert.cache: compiled code on disk
memory               wengert.memory: recycled memory of native functions
interpreter          runs a graph node by node with NumPy
cuda/                "cuda": kernels of a graphics card, and its libraries by CuPy
llvm/                "llvm": native code; imported at first use, as LLVM is large
"""

from typing import TYPE_CHECKING

from wengert._engine.backends.interpreter import Interpreter
from wengert._engine.backends.registry import Null
from wengert._engine.core.lazy_import import lazy_names, public_dir

from .executable import Executable
from .registry import Backend, backend, backends, register_backend

if TYPE_CHECKING:
    from wengert._engine.profiling.record import Timing

    from .cost_report import Report, report
    from .cuda import emulated_device
    from .interpreter_profile import NodeTimes, profile

__all__ = [
    "Backend",
    "Executable",
    "Interpreter",
    "NodeTimes",
    "Null",
    "Report",
    "Timing",
    "backend",
    "backends",
    "emulated_device",
    "profile",
    "register_backend",
    "report",
]

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("NodeTimes", "profile"), ".interpreter_profile"),
        **dict.fromkeys(("Report", "report"), ".cost_report"),
        "emulated_device": ".cuda",
        "Timing": "wengert._engine.profiling.record",
    },
)

__dir__ = public_dir(__name__)
