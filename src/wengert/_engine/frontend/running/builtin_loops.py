"""Builtin loops: functions of Python that loop over a traced array, or over what a loop appended.

They are written as loops, and rewritten as functions of the user are; short ones are unrolled.

looped         the rewritten function
sum_, any_, all_, least, greatest
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


@functools.cache
def looped(function: Callable[..., Any]) -> Callable[..., Any]:
    """One of these functions, rewritten."""
    from ..rewritten import rewritten

    return rewritten(function, True) or function  # type: ignore[arg-type]


def sum_(values: Any, total: Any) -> Any:
    """``sum(values, total)``."""
    for value in values:
        total = total + value
    return total


def any_(values: Any) -> bool:
    """``any(values)``."""
    for value in values:  # noqa: SIM110
        if value:
            return True
    return False


def all_(values: Any) -> bool:
    """``all(values)``."""
    for value in values:  # noqa: SIM110
        if not value:
            return False
    return True


def least(values: Any) -> Any:
    """``min(values)``."""
    best = values[0]
    for value in values[1:]:
        if value < best:
            best = value
    return best


def greatest(values: Any) -> Any:
    """``max(values)``."""
    best = values[0]
    for value in values[1:]:
        if value > best:
            best = value
    return best
