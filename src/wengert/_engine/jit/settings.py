"""Settings of `jit`: the default backend, and the sizes of caches.

The settings of the whole library.  All caches are bounded: a function called with always new
signatures compiles again and again, but does not need more and more memory.
"""

from __future__ import annotations

from wengert._engine.backends.registry import is_backend

PREFERRED = ("llvm", "interpret")

CALLS = 256  # signatures with a direct lookup, per state of captured values
EXACT = 32  # programs for one shape each, per family
FAMILIES = 64  # signatures that differ in more than sizes, per state
MODES = 8  # modes of modules (training and evaluation), options and captured values
OBJECTS = 32  # different objects among the arguments, such as the `self` of a method
ENTRIES = 4  # native entry points tried in turn
ROUTES = 16  # signatures with native entries
STRUCTURES = 3  # structures of containers tried in turn


def preferred_backend() -> str:
    """The name of the default backend."""
    return next(name for name in PREFERRED if is_backend(name))
