"""Loop facts: what is known about a loop before it is traced.

LoopFacts     the facts from rewriting
stopped       whether a flag is set that ends the loop
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from ..state import UNBOUND, SharedVariables
from .booleans import or_


class LoopFacts(NamedTuple):
    """The facts about a loop from rewriting.

    assigned : the variables that the body assigns.
    carried : of these, those that a trip may read before it assigns them.
    live : those that may be read after the loop.
    updated : those that are only assigned by ``x += y`` and the like.
    stored : variables with elements that it assigns.
    stops : flags that end the loop.
    size : the number of statements.
    refusal : why it stays a loop of Python, or None.
    filled : lists made before it to which it appends (list_appends.py).
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


def _same(x: object) -> object:
    return x


def stopped(facts: LoopFacts, variables: SharedVariables) -> Any:
    """Whether a flag is set that ends the loop."""
    stop: Any = False
    for name in facts.stops:
        value = _content(variables, name)
        if value is not UNBOUND and value is not False:
            stop = or_(stop, functools.partial(_same, value))
    return stop


def _content(variables: SharedVariables, name: str) -> Any:
    return SharedVariables.read(variables).get(name, UNBOUND)
