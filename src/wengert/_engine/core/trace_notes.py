"""Trace notes: decisions of the front end while a function was traced, for `wengert.explain`.

note                 add a note
collected            a block in which notes are collected
TraceNote            one note
note_not_converted   note why the loops and branches of a function are not converted
not_converted        a sentence that says so, for errors

Functions whose operations have their name in graphs.

JAX has it by the same name; pictures, profiles and messages show the name.

    named_call   a decorator: a `scope` (tracing.py) around each call
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import NamedTuple, ParamSpec, TypeVar

from wengert.errors import user_frame, user_line

from .tracing import scope
from .validation import function as check_function

_reasons: weakref.WeakKeyDictionary[CodeType, str] = weakref.WeakKeyDictionary()


class TraceNote(NamedTuple):
    """A decision: its kind, an explanation, and the user's line."""

    kind: str
    text: str
    where: str | None


class _Collector(threading.local):
    notes: list[TraceNote] | None = None


_collector = _Collector()


def note(kind: str, text: str) -> None:
    """Add a note, if notes are collected."""
    if _collector.notes is not None:
        _collector.notes.append(TraceNote(kind, text, user_line()))


@contextmanager
def collected() -> Iterator[list[TraceNote]]:
    """A block in which notes are collected."""
    outer = _collector.notes
    notes: list[TraceNote] = []
    _collector.notes = notes
    try:
        yield notes
    finally:
        _collector.notes = outer


def note_not_converted(code: CodeType, reason: str) -> None:
    """Note why the loops and branches of a function are not converted."""
    _reasons[code] = reason


def not_converted() -> str:
    """A sentence, if the loops and branches of the user's function that runs are not converted."""
    frame, _ = user_frame()
    reason = None if frame is None else _reasons.get(frame.f_code)
    if frame is None or reason is None:
        return ""
    name = frame.f_code.co_name
    return f" The loops and branches of {name} are not converted: {reason}."


__all__ = ["named_call"]
P = ParamSpec("P")
R = TypeVar("R")


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """`fun`, with a name for the nodes that its calls record; a decorator.

    The name is seen in pictures, profiles and messages, and ``graph.select(scope=name)`` finds the
    nodes.

    Parameters
    ----------
    fun : callable
    name : str, optional
        By default that of `fun`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> @wg.named_call
    ... def encoder(x):
    ...     return np.sin(x)
    >>> [n.scope for n in wg.trace(lambda x: encoder(x) + 1.0)(wg.spec(2))][1]
    'encoder'
    """
    check_function(fun, "named_call")
    title = getattr(fun, "__name__", "function") if name is None else name

    @functools.wraps(fun)
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        with scope(title):
            return fun(*args, **kwargs)

    return named
