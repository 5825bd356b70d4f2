"""Builtin loops: functions of Python that loop over a traced array, or over what a loop appended.

They are written as loops, and rewritten as functions of the user are; short ones are unrolled.

looped         the rewritten function; register_rewriter sets what rewrites it
sum_, any_, all_, least, greatest
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any


class _Rewriter:
    """What rewrites functions, which stands above this package."""

    rewritten: Callable[[FunctionType], FunctionType | None]


def register_rewriter(rewritten: Callable[[FunctionType], FunctionType | None]) -> None:
    """Set what rewrites functions."""
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


def least(values: Sequence[Any]) -> Any:
    """``min(values)``."""
    best = values[0]
    for value in values[1:]:
        if value < best:
            best = value
    return best


def greatest(values: Sequence[Any]) -> Any:
    """``max(values)``."""
    best = values[0]
    for value in values[1:]:
        if value > best:
            best = value
    return best
