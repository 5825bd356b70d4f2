"""Settings of `jit`: the default backend, and how many programs are cached.

One place to change them, for the whole library.  What is kept is bounded everywhere: a function
that is called in ever new ways compiles ever again, and takes no more memory for it.
"""

from __future__ import annotations

from wengert._engine.backends.registry import is_backend

PREFERRED = ("llvm", "interpret")

CALLS = 256  # ways of calling that are found at once, in each function
EXACT = 32  # programs for one shape each, where one for all cannot be, in each family
FAMILIES = 64  # ways of calling that differ in more than lengths
MODES = 8  # of models, options and captured values, in each family: training and evaluation
OBJECTS = 32  # different objects among the arguments, such as those that a method belongs to
ENTRIES = 4  # native entries that are tried in turn
ROUTES = 16  # ways of calling that have entries of their own
STRUCTURES = 3  # of containers, which are tried in turn


def preferred_backend() -> str:
    """The name of the backend that compiles where nobody says."""
    return next(name for name in PREFERRED if is_backend(name))
