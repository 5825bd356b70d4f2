"""The globals of converted functions: those of the module, with numpy, scipy and math replaced.

    Overlay    a view of a module's globals
    overlay    the view of a dictionary of globals; cached
    original_globals   the globals of a function, or the view of them, in place of copies

The module itself is not changed, so other threads and library code see NumPy's own functions.

Copies of functions.

copy_metadata   give a copy the name, docstring and other attributes of the function
with_overlay    the same code, with globals in which modules are replaced
writing_globals_back    a function whose global variables reach the module on return
WRITING_BACK    the code of these

The built-in functions of converted code.

They are Python's, except that ``import`` gives the replacements of numpy, scipy and math,
``isinstance`` treats a tensor as an array or number, ``globals()`` is the dictionary of the user's
module, and ``eval`` and ``exec`` run in it.

    builtins_of    the ``__builtins__`` for a view of a module's globals
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.thread_state import lock

from .namespaces import REPLACED_MODULES, isinstance_, replacement
from .state import Speculation

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


def original_globals(scope: dict[str, Any], original: Callable[[Any], Any]) -> dict[str, Any]:
    """The globals of a function, or the view of them, where `original` replaces those of a copy."""
    if type(scope) is not Overlay:
        return original(scope)  # type: ignore[no-any-return]
    module_globals = original(scope.module_globals)
    if module_globals is scope.module_globals:
        return scope
    if scope.converts:
        return overlay(module_globals)
    own = scope.predefined - {"__builtins__", "__wg_module__"}
    return overlay(module_globals, {name: scope[name] for name in own})


def copy_metadata(copy: FunctionType, fun: FunctionType) -> FunctionType:
    """Give `copy` the attributes of `fun`, and return it."""
    copy.__kwdefaults__ = fun.__kwdefaults__
    copy.__qualname__, copy.__module__, copy.__doc__ = (
        fun.__qualname__,
        fun.__module__,
        fun.__doc__,
    )
    if fun.__dict__:
        copy.__dict__.update(fun.__dict__)
    copy.__wrapped__ = fun  # type: ignore[attr-defined]
    return copy


def with_overlay(fun: FunctionType) -> FunctionType:
    """The same code, with globals in which modules are replaced."""
    copy = FunctionType(
        fun.__code__, overlay(fun.__globals__), fun.__name__, fun.__defaults__, fun.__closure__
    )
    return copy_metadata(copy, fun)


def writing_globals_back(converted_function: FunctionType) -> FunctionType:
    """A converted function that assigns global variables, which reach the module on return."""

    @functools.wraps(converted_function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return converted_function(*args, **kwargs)
        finally:
            overlay = converted_function.__globals__
            assert isinstance(overlay, Overlay)
            overlay.write_back(Speculation.note_change)

    return run  # type: ignore[return-value]


WRITING_BACK = next(c for c in writing_globals_back.__code__.co_consts if type(c) is CodeType)


class _BuiltinsOverlay(dict[str, Any]):
    """The built-in names of a module, some of them overridden."""

    __slots__ = ("builtin_names",)

    def __init__(self, builtin_names: dict[str, Any], overrides: dict[str, Any]) -> None:
        super().__init__(overrides)
        self.builtin_names = builtin_names

    def __missing__(self, name: str) -> Any:
        return self.builtin_names[name]


def builtins_of(module: dict[str, Any]) -> dict[str, Any]:
    """The ``__builtins__`` for a view of a module's globals."""
    python_builtins = module.get("__builtins__", builtins)
    builtin_names = (
        vars(python_builtins) if isinstance(python_builtins, ModuleType) else python_builtins
    )
    overrides = {
        "__import__": functools.partial(_import, builtin_names["__import__"], module),
        "isinstance": isinstance_,
        "globals": functools.partial(_globals, module),
        "eval": functools.partial(_evaluate, builtin_names["eval"], module),
        "exec": functools.partial(_evaluate, builtin_names["exec"], module),
    }
    return _BuiltinsOverlay(builtin_names, overrides)


def _import(
    import_function: Callable[..., Any],
    module: dict[str, Any],
    name: str,
    *args: object,
    **kwargs: object,
) -> object:
    """``__import__``; relative imports are relative to the user's module."""
    return replacement(import_function(name, *((module, *args[1:]) if args else ()), **kwargs))


def _globals(module: dict[str, Any]) -> dict[str, Any]:
    return module


def _evaluate(
    function: Callable[..., Any],
    module: dict[str, Any],
    source: Any,
    *namespaces: Any,
    **keywords: Any,
) -> Any:
    """``eval`` and ``exec``; without namespaces, they use those of the caller."""
    if not namespaces and not keywords:
        namespaces = module, sys._getframe(1).f_locals
    return function(source, *namespaces, **keywords)
