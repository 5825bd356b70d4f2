"""Backends: what makes a list run.

base.py        Backend, the registry by name, entry points of third parties
interpret.py   "interpret": NumPy, line by line; the meaning of a graph
null.py        "null": counts operations, bytes and peak memory without running
liveness.py    when each value is needed for the last time, and what that saves
executable.py  Executable: a graph with its inputs checked and its sizes solved, ready to call
"""

from .base import Backend, backend, backends, register_backend
from .executable import Executable
from .interpret import Interpreter

__all__ = ["Backend", "Executable", "Interpreter", "backend", "backends", "register_backend"]
