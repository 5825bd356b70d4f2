"""What is known about a loop before it is traced.

LoopFacts     facts from static analysis, which the rewritten code passes
stopped       whether a flag is set that ends the loop
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from ..state import UNBOUND, SharedVariables
from .booleans import or_


class LoopFacts(NamedTuple):
    """Facts about a loop from static analysis.

    Attributes
    ----------
    assigned : tuple of str
        The variables that the body assigns.
    carried : tuple of str
        Those that an iteration may read before it assigns them.
    live : tuple of str
        Those that may be read after the loop.
    updated : tuple of str
        Those that are only assigned by augmented assignments, as ``x += y``.
    stored : tuple of str
        The variables with elements that the body assigns.
    stops : tuple of str
        The flags that end the loop (rewriting/exits.py).
    size : int
        The number of statements in the body.
    refusal : str or None
        Why the loop cannot be traced.
    filled : tuple of str
        The lists, created before the loop, to which it appends (rewriting/list_appends.py).
    """

    assigned: tuple[str, ...]
    carried: tuple[str, ...]
    live: tuple[str, ...]
    updated: tuple[str, ...]
    stored: tuple[str, ...]
    stops: tuple[str, ...]
    size: int
    refusal: str | None
    filled: tuple[str, ...] = ()


def _identity(x: object) -> object:
    return x


def stopped(facts: LoopFacts, variables: SharedVariables) -> Any:
    """Whether a flag that ends the loop is set; may be traced."""
    is_stopped: Any = False
    for name in facts.stops:
        value = _value_of(variables, name)
        if value is not UNBOUND and value is not False:
            is_stopped = or_(is_stopped, functools.partial(_identity, value))
    return is_stopped


def _value_of(variables: SharedVariables, name: str) -> Any:
    return SharedVariables.read(variables).get(name, UNBOUND)
