"""Overlay: the globals of a function, with modules replaced by namespaces of tensors.

    Overlay    a view of a module's globals
    overlay    the view of a dictionary of globals

The module itself is not changed, so other threads and library code see NumPy's own functions.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.fork_safe_locks import lock

from .builtin_overrides import builtins_of
from .namespaces import replacement

_VIEWS_KEPT = 256  # views in memory


class Overlay(dict[str, Any]):
    """A view of a module's globals, in which some objects are exchanged for others.

    Names are looked up in the module at each access, so changes of its globals are seen.

    Attributes
    ----------
    real : dict
        The globals of the module.
    converts : bool
        Whether functions are converted when they are looked up, instead of when they are called.
    """

    __slots__ = ("converts", "fixed", "real")

    def __init__(self, real: dict[str, Any], runtime: dict[str, Any] | None) -> None:
        super().__init__(runtime or {})
        self.real, self.converts = real, runtime is None
        self["__builtins__"] = builtins_of(real)
        self.fixed = frozenset(self)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.real

    def __missing__(self, name: str) -> Any:
        x = self.real[name]
        if self.converts and type(x) is FunctionType:
            return converted(x)
        return replacement(x)

    def write_back(self, note: Callable[[dict[str, Any], str], None]) -> None:
        """Move the variables that a function has assigned here to the module.

        Parameters
        ----------
        note : callable
            Called with the globals of the module and the name before each.
        """
        for name in self.keys() - self.fixed:
            note(self.real, name)
            self.real[name] = self.pop(name)


_views: dict[tuple[int, bool], Overlay] = {}
_lock = lock()


def overlay(real: dict[str, Any], runtime: dict[str, Any] | None = None) -> Overlay:
    """The view of some globals, with the functions that rewritten code calls."""
    key = id(real), runtime is not None
    found = _views.get(key)
    if found is not None and found.real is real:
        return found
    made = Overlay(real, runtime)
    with _lock:
        while len(_views) >= _VIEWS_KEPT:
            _views.pop(next(iter(_views)))
        _views[key] = made
    return made
