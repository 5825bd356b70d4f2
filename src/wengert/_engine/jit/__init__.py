"""Compiling: a Python function and what it is called with, to a graph, to a program.

decorator.py   jit: the decorator
function.py    Jitted: the callable it makes
arguments.py   what a call is: its structure, dtypes and shapes as a key; what is fed
states.py      what a function captured, and the programs for it
family.py      all calls that differ in lengths only: one program for each, or one for all
program.py     one compiled graph, and what stands around its run
routes.py      native entries, one for each way of calling
shortcut.py    calls with containers, straight into a native entry
native.py      a run by the native entry of a backend
operation.py   a compiled graph as one line of a tape, with compiled derivatives
collecting.py  Python's collector of cycles looks less often meanwhile
refusing.py    what is not compiled
drawing.py     random numbers that a trace would keep for ever
lowered.py     what can be looked at: graph, loops, instructions
profiling.py   where time and memory of a compiled function go; measured.py what was found out,
               telling.py as text, picture, page
settings.py    which backend compiles, and how many programs are kept
"""

from typing import TYPE_CHECKING

from wengert._engine.core.late import late_names, public_dir

from .decorator import jit
from .function import Info, Jitted
from .lowered import Lowered

if TYPE_CHECKING:
    from .measured import Profile
    from .profiling import profile

__all__ = ["Info", "Jitted", "Lowered", "Profile", "jit", "profile"]

__getattr__ = late_names(__name__, {"Profile": ".measured", "profile": ".profiling"})

__dir__ = public_dir(__name__)
