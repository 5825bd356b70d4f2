"""Built-in functions that loop over a traced array, or over a list that a loop has filled.

They are written as Python loops, and rewritten as user functions are; short loops are unrolled.

sum_, any_, all_, filter_, min_, max_   the functions
looped                         one of them, rewritten
register_rewriter              set the function that rewrites them
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any


class _Rewriter:
    """The function that rewrites functions; it is defined in a module that imports this package."""

    rewritten: Callable[[FunctionType], FunctionType | None]


def register_rewriter(rewritten: Callable[[FunctionType], FunctionType | None]) -> None:
    """Set the function that rewrites functions."""
    _Rewriter.rewritten = staticmethod(rewritten)


@functools.cache
def looped(function: FunctionType) -> Callable[..., Any]:
    """One of these functions, rewritten."""
    return _Rewriter.rewritten(function) or function


def sum_(values: Iterable[Any], total: Any) -> Any:
    """``sum(values, total)``."""
    for value in values:
        total = total + value
    return total


def any_(values: Iterable[Any]) -> bool:
    """``any(values)``."""
    for value in values:  # noqa: SIM110
        if value:
            return True
    return False


def all_(values: Iterable[Any]) -> bool:
    """``all(values)``."""
    for value in values:  # noqa: SIM110
        if not value:
            return False
    return True


def filter_(condition: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
    """``filter(condition, values)``, as a list."""
    chosen = []
    for value in values:
        if condition(value):
            chosen.append(value)
    return chosen


def min_(values: Sequence[Any]) -> Any:
    """``min(values)``."""
    best = values[0]
    for value in values[1:]:
        if value < best:
            best = value
    return best


def max_(values: Sequence[Any]) -> Any:
    """``max(values)``."""
    best = values[0]
    for value in values[1:]:
        if value > best:
            best = value
    return best
