"""jit: from a Python function and its arguments to a compiled program.

decorator.py           jit: the decorator
jitted.py              Jitted: the callable it returns
call_signature.py      structure, dtypes and shapes of a call as a key; which arguments are fed
captured_state.py      what a function captured, and the programs for it
shape_polymorphism.py  calls that differ in lengths only: one program for each, or one for all
compiled_program.py    one compiled graph, and what stands around its run
entry_dispatch.py      native entry points, one for each way of calling
pytree_fast_path.py    calls with containers, straight into a native entry point
native_call.py         a run by the native entry point of a backend
compiled_operation.py  a compiled graph as one operation, with compiled derivatives
gc_threshold.py        fewer garbage collections while a function is compiled
unsupported.py         what cannot be compiled
rng_guard.py           random numbers that would become constants of a program
lowered.py             what can be inspected: graph, loops, instructions
profile_call.py        profile: where time and memory of a compiled function go
settings.py            which backend compiles, and how many programs are kept
"""

from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import lazy_names, public_dir

from .decorator import jit
from .jitted import CacheInfo, Jitted
from .lowered import Lowered

if TYPE_CHECKING:
    from wengert._engine.profiling.profile import Profile

    from .profile_call import profile

__all__ = ["CacheInfo", "Jitted", "Lowered", "Profile", "jit", "profile"]

__getattr__ = lazy_names(
    __name__, {"Profile": "wengert._engine.profiling.profile", "profile": ".profile_call"}
)

__dir__ = public_dir(__name__)
