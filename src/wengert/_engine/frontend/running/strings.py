"""Strings made of values: a loop that makes one of a traced value is unrolled.

A loop is traced once, so that such a string would be the same in all iterations.  Messages, as of
``print`` and exceptions, are left.

formatted      a value of an f-string
string_type    the replacement of ``str``, ``repr`` and ``format``
format_method  the replacement of the method ``format`` of a string
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert._engine.core.handle import is_traced

from ..state import Speculation


def formatted(x: Any) -> Any:
    """A value that becomes a part of a string."""
    if is_traced(x):
        Speculation.refuse("it makes a string of a value that is not known")
    return x


def string_type(builtin: Any) -> Callable[..., Any]:
    """``str``, ``repr`` or ``format``."""

    def convert(*args: Any, **kwargs: Any) -> Any:
        return builtin(*map(formatted, args), **kwargs)

    return convert


def format_method(text: str) -> Callable[..., str]:
    """The method ``format`` of a string."""

    def convert(*args: Any, **kwargs: Any) -> str:
        for x in (*args, *kwargs.values()):
            formatted(x)
        return text.format(*args, **kwargs)

    return convert
