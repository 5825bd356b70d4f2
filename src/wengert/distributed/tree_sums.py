"""Sums whose order of additions is determined by the number of terms.

Groups of `split_every` consecutive terms are added from left to right, then groups of their sums,
and so on.  So the bits of a sum do not depend on which worker computed a term, or when.

    TreeSum        such a sum of terms that arrive in their order
    Accumulator    one group
    plus           the sum of a group
    groups         consecutive groups
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Terms = list[Any] | None  # None: nothing to add


class Accumulator:
    """The sum of lists of arrays, from left to right."""

    def __init__(self) -> None:
        self.total: Terms = None
        self.count = 0
        self._owned = False  # whether the arrays of the total were made here

    def add(self, term: Terms) -> None:
        """Add a list of arrays; in place, if the total is not one of the lists that were given."""
        self.count += 1
        if term is None:
            return
        if self.total is None:
            self.total = term
            return
        pairs = zip(self.total, term, strict=True)
        self.total = [self._plus(a, b) for a, b in pairs]
        self._owned = True

    def _plus(self, a: Any, b: Any) -> Any:
        if self._owned and _may_hold(a, b):
            a += b
            return a
        return a + b


def _may_hold(a: Any, b: Any) -> bool:
    """Whether the sum has the shape and dtype of `a`, an array."""
    return (
        isinstance(a, np.ndarray)
        and a.shape == np.shape(b)
        and a.ndim > 0
        and np.result_type(a, b) == a.dtype
    )


def plus(terms: Iterable[Terms]) -> Terms:
    """The sum of some lists of arrays, from left to right."""
    result = Accumulator()
    for term in terms:
        result.add(term)
    return result.total


def groups(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Consecutive groups of at most `size` items."""
    return [items[k : k + size] for k in range(0, len(items), size)]


class TreeSum:
    """The sum of terms that are added one after the other; one partial sum for each level.

    Parameters
    ----------
    split_every : int
        The number of terms in a group, at least 2.
    """

    def __init__(self, split_every: int) -> None:
        self._size = split_every
        self._levels: list[Accumulator] = []

    def add(self, term: Terms, level: int = 0) -> None:
        """Add the next term of a level."""
        if level == len(self._levels):
            self._levels.append(Accumulator())
        group = self._levels[level]
        group.add(term)
        if group.count == self._size:
            self._levels[level] = Accumulator()
            self.add(group.total, level + 1)

    def total(self) -> Terms:
        """The sum of all terms; None if there are none."""
        level = 0
        while level < len(self._levels):
            group = self._levels[level]
            if level == len(self._levels) - 1 and group.count <= 1:
                return group.total
            self._levels[level] = Accumulator()
            if group.count:
                self.add(group.total, level + 1)
            level += 1
        return None
