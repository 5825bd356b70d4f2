"""The globals of converted functions: those of the module, with numpy, scipy and math replaced.

    Overlay    a view of a module's globals
    overlay    the view of a dictionary of globals; cached

The module itself is not changed, so other threads and library code see NumPy's own functions.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.fork_safe_locks import lock

from .builtin_overrides import builtins_of
from .namespaces import REPLACED_MODULES, replacement

_MAX_CACHED = 256


class Overlay(dict[str, Any]):
    """A view of a module's globals, in which some objects are replaced by others.

    Names are looked up in the module at each access, so that changes of its globals are visible.

    Parameters
    ----------
    module_globals : dict
    runtime : dict, optional
        The functions that rewritten code calls, by name.

    Attributes
    ----------
    converts : bool
        Whether functions are converted when they are looked up, rather than when they are called.
    predefined : frozenset of str
        Names that the view defines itself; others in it have been assigned by the function.
    """

    __slots__ = ("converts", "module_globals", "predefined")

    def __init__(self, module_globals: dict[str, Any], runtime: dict[str, Any] | None) -> None:
        super().__init__(runtime or {})
        if runtime is not None:
            self["__wg_module__"] = module_globals
        self.module_globals, self.converts = module_globals, runtime is None
        self["__builtins__"] = builtins_of(module_globals)
        self.predefined = frozenset(self)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.module_globals

    def __missing__(self, name: str) -> Any:
        x = self.module_globals[name]
        known = REPLACED_MODULES.get(id(x))  # as in `replacement`, whose call would take longer
        if known is not None:
            return known[1]
        if self.converts and type(x) is FunctionType:
            return converted(x)
        return replacement(x)

    def write_back(self, note: Callable[[dict[str, Any], str], None]) -> None:
        """Move the global variables that a function has assigned to the module.

        Parameters
        ----------
        note : callable
            Called with the globals of the module and the name of a variable, before it is set.
        """
        for name in self.keys() - self.predefined:
            note(self.module_globals, name)
            self.module_globals[name] = self.pop(name)


_views: dict[tuple[int, bool], Overlay] = {}
_lock = lock()


def overlay(module_globals: dict[str, Any], runtime: dict[str, Any] | None = None) -> Overlay:
    """The view of a module's globals, for rewritten code if `runtime` is given."""
    key = id(module_globals), runtime is not None
    cached = _views.get(key)
    if cached is not None and cached.module_globals is module_globals:
        return cached
    view = Overlay(module_globals, runtime)
    with _lock:
        while len(_views) >= _MAX_CACHED:
            _views.pop(next(iter(_views)))
        _views[key] = view
    return view
