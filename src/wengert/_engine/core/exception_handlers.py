"""Exceptions that a ``try`` statement of the user's may catch.

A compiled program raises an exception that depends on values when it runs, when the ``try``
statement around it has ended.  So what may raise such an exception is refused inside of it.

handling         a block inside of a try statement
may_be_caught    whether an exception of a type may be caught
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Types = Callable[[], Any]  # the exceptions of the handlers, or None for all


class _Handlers(threading.local):
    types: tuple[Types, ...] = ()


_handlers = _Handlers()


@contextmanager
def handling(types: Types) -> Iterator[None]:
    """A block inside of a try statement that catches some exceptions."""
    before, _handlers.types = _handlers.types, (*_handlers.types, types)
    try:
        yield
    finally:
        _handlers.types = before


def may_be_caught(error: type[Exception], by_name: bool = False) -> bool:
    """Whether a try statement of the user's, which is being traced, catches an exception.

    With `by_name`, handlers of all exceptions do not count: they do not say which are expected.
    """
    for types in _handlers.types:
        found = types()
        if found is None:
            found = (BaseException,)
        if by_name:
            found = tuple([t for t in found if t not in (Exception, BaseException)])
        if issubclass(error, found):
            return True
    return False
