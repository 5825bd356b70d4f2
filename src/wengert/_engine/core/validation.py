"""Given: checks of arguments that are of one kind only, with messages of one form.

function       something that can be called
word           a text that is not empty
words          one or several
whole_numbers  one or several
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from wengert.errors import ArgumentError, at, user_line

F = TypeVar("F", bound=Callable[..., Any])


def spelled(x: Any) -> str:
    """What was given, in a few words."""
    if x is None or isinstance(x, str | int | float | complex | tuple):
        text = repr(x)
        if len(text) <= 40:
            return text
    return f"a {type(x).__name__}"


def function(x: Any, what: str) -> None:
    """Refuse what cannot be called."""
    if not callable(x):
        raise ArgumentError(
            f"{what} of {spelled(x)}, which is no function. Give a function of arrays"
            f"{at(user_line())}."
        )


def word(x: Any, what: str) -> str:
    """A text that is not empty."""
    if not isinstance(x, str) or not x:
        raise ArgumentError(f"{what} is {spelled(x)}. Give it a word{at(user_line())}.")
    return x


def words(x: Any, what: str) -> list[str]:
    """One or several words, as a list; None is none."""
    if x is None or isinstance(x, str):
        return [] if x is None else [x]
    items = _items(x)
    if items is None or not all(isinstance(item, str) for item in items):
        raise ArgumentError(
            f"{what} is {spelled(x)}. Give a name, or several as a tuple{at(user_line())}."
        )
    return items


def whole_numbers(x: Any, what: str) -> list[int]:
    """One or several whole numbers, as a list."""
    try:
        if isinstance(x, int | np.integer):
            return [int(x)]
        return [operator.index(item) for item in x]
    except TypeError as error:
        raise ArgumentError(
            f"{what} is {spelled(x)}. Give a whole number, or several as a tuple{at(user_line())}."
        ) from error


def _items(x: Any) -> list[Any] | None:
    return list(x) if isinstance(x, Iterable) else None
