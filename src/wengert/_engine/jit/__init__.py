"""jit: from a Python function and its arguments to a compiled program.

decorator.py           jit: the decorator
jitted.py              Jitted: the callable it returns
special_arguments.py   calls with objects of pandas, xarray and pint; which Python numbers are
                       constants of a program
call_signature.py      a call as a cache key; which arguments are inputs of a program
programs.py            the captured values of a function, and the programs for them; programs for
                       calls that differ in sizes only; fewer garbage collections while a function
                       is compiled
compiled_graph.py      the simplified graph, or one that is made when it is needed; raises for
                       functions and graphs that cannot be compiled; raises for random numbers that
                       would become constants of a program
compiled_program.py    one compiled graph with its inputs, outputs, updates and effects; the default
                       backend, and the sizes of caches
entry_dispatch.py      native entry points, one for each call signature; calls with containers,
                       directly to a native entry point
compiled_operation.py  a run by the native entry point of a backend; a compiled graph as one
                       operation, with compiled derivatives
lowered.py             graph, loops and instructions of a program, for inspection; how it is shown,
                       as text and in notebooks; CacheInfo: the number of programs
exporting.py           export: functions and derivatives as files for other languages
profile_call.py        profile: time and memory of a compiled function
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names, public_dir

from .decorator import jit
from .jitted import Jitted
from .lowered import CacheInfo, Lowered

if TYPE_CHECKING:
    from wengert._engine.profiling.profile import Profile

    from .exporting import ExportedFiles, export
    from .profile_call import profile

__all__ = [
    "CacheInfo",
    "ExportedFiles",
    "Jitted",
    "Lowered",
    "Profile",
    "export",
    "jit",
    "profile",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Profile": "wengert._engine.profiling.profile",
        "profile": ".profile_call",
        **dict.fromkeys(("ExportedFiles", "export"), ".exporting"),
    },
)

__dir__ = public_dir(__name__)
