"""Functions compiled from a rewritten syntax tree, with a cache.

rewritten      the function with its loops, branches and calls rewritten
why_not        why a function cannot be rewritten
is_rewritten   whether a function has been rewritten
users_function the function that a converted one is a copy of
fills_computed_arrays   whether a function needs rewriting for its buffers
"""

from __future__ import annotations

import functools
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.thread_state import lock

from . import source
from .overlay import WRITING_BACK, Overlay, copy_metadata, overlay
from .running import RUNTIME
from .running.builtin_operations import register_rewriter
from .source import definition_of

if TYPE_CHECKING:
    from .rewriting import functions as rewriting
    from .rewriting import stores
else:  # not needed for code that is on disk
    stores = LazyModule("wengert._engine.frontend.rewriting.stores")
    rewriting = LazyModule("wengert._engine.frontend.rewriting.functions")

_MAX_CACHED = 1024
# The rewritten code, or why there is none.  The key includes the file name, since code objects of
# different files may be equal.
_codes: dict[tuple[CodeType, str, bool], CodeType | str] = {}
_lock = lock()


def rewritten(fun: FunctionType, whole: bool = True) -> FunctionType | None:
    """The function with its loops, branches and calls rewritten.

    Parameters
    ----------
    fun : function
    whole : bool
        Whether loops and branches are rewritten, or only calls.

    Returns
    -------
    function or None
        None if its source is unavailable, or cannot be rewritten (see `why_not`).
    """
    fun = users_function(fun)
    code = _code(fun.__code__, whole)
    if isinstance(code, str):
        return None
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
    globals_view = overlay(fun.__globals__, RUNTIME)
    closure = tuple([cells[n] for n in code.co_freevars])
    function = FunctionType(code, globals_view, fun.__name__, fun.__defaults__, closure)
    return copy_metadata(function, fun)


register_rewriter(rewritten)


def why_not(fun: FunctionType) -> str | None:
    """Why a function cannot be rewritten; None if it can."""
    code = _code(fun.__code__, True)
    return code if isinstance(code, str) else None


@functools.lru_cache(maxsize=_MAX_CACHED)
def fills_computed_arrays(code: CodeType) -> bool:
    """Whether a function assigns elements of arrays that it computes (rewriting/stores.py)."""
    definition = definition_of(code)
    return definition is not None and stores.fills_computed_arrays(definition.node)


def _code(code: CodeType, whole: bool) -> CodeType | str:
    key = code, code.co_filename, whole
    rewritten_or_reason = _codes.get(key)
    if rewritten_or_reason is None:
        rewritten_or_reason = _rewrite(code, whole)
        with _lock:
            while len(_codes) >= _MAX_CACHED:
                _codes.pop(next(iter(_codes)))
            _codes[key] = rewritten_or_reason
    return rewritten_or_reason


def _rewrite(code: CodeType, whole: bool) -> CodeType | str:
    found = source.find(code, whole)
    if found is not None:
        return found
    definition = definition_of(code)
    if definition is None:
        return "its source is not available, or has changed since it was imported"
    try:
        made: CodeType = rewriting.rewritten_code(definition, code, whole)
    except rewriting.Unsupported as error:
        return str(error)
    except RecursionError:
        return "its source is nested too deeply"
    source.keep(code, whole, made)
    return made


def is_rewritten(fun: FunctionType, whole: bool) -> bool:
    """Whether a function has been rewritten."""
    return _is_code_of(fun, users_function(fun).__code__, whole)


def users_function(fun: FunctionType) -> FunctionType:
    """The function that a converted one is a copy of; a function that is not a copy itself.

    A function defined in a converted one has its globals too, and ``__wrapped__`` if the user's
    code applies `functools.wraps` to it.
    """
    if fun.__code__ is WRITING_BACK:
        fun = fun.__wrapped__  # type: ignore[attr-defined]
    wrapped = getattr(fun, "__wrapped__", None)
    if type(fun.__globals__) is not Overlay or type(wrapped) is not FunctionType:
        return fun
    code = wrapped.__code__
    is_copy = code is fun.__code__ or any(_is_code_of(fun, code, whole) for whole in (True, False))
    return wrapped if is_copy else fun


def _is_code_of(fun: FunctionType, code: CodeType, whole: bool) -> bool:
    return _codes.get((code, code.co_filename, whole)) is fun.__code__
