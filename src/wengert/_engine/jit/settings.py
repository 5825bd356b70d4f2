"""Settings of `jit`: the default backend, and the sizes of caches.

All caches are bounded: a function that is always called with new signatures is compiled each time,
but its memory does not grow.
"""

from __future__ import annotations

from wengert._engine.backends.registry import is_backend

PREFERRED = ("llvm", "interpret")

CALLS = 256  # signatures with a direct lookup, per state of captured values
EXACT = 32  # programs for one shape each, per family
FAMILIES = 64  # signatures that differ in more than sizes, per state
MODES = 8  # modes of modules (training, evaluation), per family; captured values, per OBJECTS
OBJECTS = 32  # sets of objects in the arguments, such as the `self` of a method
ENTRIES = 4  # programs whose native entry points are tried in turn, per signature or structure
ROUTES = 16  # signatures with native entry points
STRUCTURES = 3  # structures of containers that are tried in turn


def preferred_backend() -> str:
    """The name of the default backend."""
    return next(name for name in PREFERRED if is_backend(name))
