"""The structure of the results of a call.

is_single     whether the only result is returned by itself
nesting_of    nested tuples of results
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core import pytree
from wengert._engine.core.graph import BaseGraph


def is_single(graph: BaseGraph) -> bool:
    """Whether a call of the graph returns its only output, and no container of it."""
    results = graph.structure[1]
    structure = getattr(results, "structure", results)
    return len(graph.outputs) == 1 and not graph.updates and structure.is_leaf() is True


def nesting_of(graph: BaseGraph) -> Any:
    """The numbers of the results in the tuples they are returned in; None if it is otherwise."""
    results = graph.structure[1]
    if graph.updates or not all(getattr(results, "live", (True,))):
        return None
    structure = getattr(results, "structure", results)
    numbers = pytree.unflatten(structure, list(range(structure.num_leaves)))
    return numbers if _is_tuple(numbers) and any(map(_is_tuple, numbers)) else None


def _is_tuple(x: int | Sequence[int]) -> bool:
    """Whether it is a tuple of numbers and of tuples that are not empty."""
    return type(x) is tuple and bool(x) and all(type(y) is int or _is_tuple(y) for y in x)
