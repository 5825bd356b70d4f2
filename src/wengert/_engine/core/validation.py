"""Validation of single arguments, with messages of one form.

function    a callable
word        a non-empty string
words       one string, or several
integers    one integer, or several
byte_count  a number of bytes
spelled     a short text of an argument

refuse_unknown_length   raise for a part of an array with an unknown number of elements
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from wengert.errors import ArgumentError, at, user_line

F = TypeVar("F", bound=Callable[..., Any])


def spelled(x: Any) -> str:
    """A short text of an argument for messages."""
    if x is None or isinstance(x, str | int | float | complex | tuple):
        text = repr(x)
        if len(text) <= 40:
            return text
    return f"a {type(x).__name__}"


def function(x: Any, what: str) -> None:
    """Raise ArgumentError if `x` is not callable."""
    if not callable(x):
        raise ArgumentError(
            f"{what} of {spelled(x)}, which is not a function. Give a function of arrays"
            f"{at(user_line())}."
        )


def word(x: Any, what: str) -> str:
    """A non-empty string, or ArgumentError."""
    if not isinstance(x, str) or not x:
        raise ArgumentError(
            f"{what} must be a non-empty string, not {spelled(x)}{at(user_line())}."
        )
    return x


def words(x: Any, what: str) -> list[str]:
    """One string or several, as a list; None is the empty list."""
    if x is None or isinstance(x, str):
        return [] if x is None else [x]
    items = _items(x)
    if items is None or not all(isinstance(item, str) for item in items):
        raise ArgumentError(
            f"{what} must be a name or a sequence of names, not {spelled(x)}{at(user_line())}."
        )
    return items


def integers(x: Any, what: str) -> list[int]:
    """One integer or several, as a list."""
    try:
        if isinstance(x, int | np.integer):
            return [int(x)]
        return [operator.index(item) for item in x]
    except TypeError as error:
        raise ArgumentError(
            f"{what} must be an integer or a sequence of integers, not {spelled(x)}"
            f"{at(user_line())}."
        ) from error


def byte_count(x: Any, called: str, advice: str = "") -> int:
    """A number of bytes, at least 0 and below 2**63, or ArgumentError."""
    try:
        number = -1 if isinstance(x, bool) else operator.index(x)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 63:
        raise ArgumentError(
            f"{called}({x!r}) is not a number of bytes: give an integer that is at least 0{advice}"
            f"{at(user_line())}."
        )
    return number


def _items(x: tuple[Any, ...]) -> list[Any] | None:
    return list(x) if isinstance(x, Iterable) else None


def refuse_unknown_length(x: Any) -> None:
    """Raise if `x` is a part of an array with an unknown number of elements."""
    refusal = getattr(type(x), "refusal", None)
    if refusal is not None:
        raise refusal(x, "returning them")
