"""Datasets joined and split, without copying.

ConcatDataset   one dataset after the other
random_split    parts by lengths or shares, by seed
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from .array_dataset import as_dataset
from .dataset import Dataset, Seed, Subset, is_random, item_of, outside
from .rng_state import as_generator


class ConcatDataset(Dataset):
    """One dataset after the other.

    Parameters
    ----------
    datasets : iterable of Dataset or sequence

    Raises
    ------
    ArgumentError
        None are given.

    Examples
    --------
    >>> from wengert.data import ConcatDataset
    >>> list(ConcatDataset(["ab", "", "c"]))
    ['a', 'b', 'c']
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError(
                f"ConcatDataset of no datasets. Pass at least one{at(user_line())}."
            )
        self.ends = np.cumsum([len(d) for d in self.datasets])

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether any of them is random."""
        return any(map(is_random, self.datasets))

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, index: Any) -> Any:
        return self.item(index, outside(index, len(self)))

    def item(self, index: int, seed: Seed) -> Any:
        """An item."""
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"item {index} of {count}")
        place = index % count
        which = int(np.searchsorted(self.ends, place, side="right"))
        start = int(self.ends[which - 1]) if which else 0
        return item_of(self.datasets[which], place - start, seed)

    def __repr__(self) -> str:
        return f"ConcatDataset({self.datasets!r})"


def random_split(dataset: Any, lengths: Sequence[float], rng: Any = None) -> list[Subset]:
    """Split a dataset at random into parts that do not overlap.

    Parameters
    ----------
    dataset : Dataset, sequence, array or tuple of arrays
        Arrays are taken as a loader takes them.
    lengths : sequence of int, or of float
        How many items each part has, all of them together; or shares that sum to 1: then each has
        its share rounded down, and what is left over goes to the first ones, one each.
    rng : int or numpy.random.Generator, optional
        The same seed, the same parts.

    Returns
    -------
    list of Subset

    Raises
    ------
    ArgumentError
        The lengths do not sum to what there is.

    Examples
    --------
    >>> from wengert.data import random_split
    >>> parts = random_split(range(10), [0.75, 0.25], rng=0)
    >>> [len(p) for p in parts], sorted([*parts[0], *parts[1]]) == list(range(10))
    ([8, 2], True)
    """
    from_arrays = as_dataset(dataset)
    count, given = len(from_arrays), list(lengths)
    if any(n < 0 for n in given) or not given:
        raise ArgumentError(
            f"random_split into parts of {given}: lengths must be >= 0{at(user_line())}."
        )
    sizes: list[Any] = given
    if any(isinstance(n, float | np.floating) for n in given):
        if not math.isclose(sum(given), 1.0, rel_tol=1e-9):
            raise ArgumentError(
                f"random_split into shares of {given}, which sum to {sum(given)} and not to 1. "
                f"Change them, or give lengths{at(user_line())}."
            )
        sizes = [math.floor(count * share) for share in given]
        for k in range(count - sum(sizes)):
            sizes[k % len(sizes)] += 1
    if sum(sizes) != count:
        raise ArgumentError(
            f"random_split into parts of {given}, together {sum(sizes)}, of {count} items. Lengths "
            f"sum to what there is{at(user_line())}."
        )
    order = as_generator(rng).permutation(count)
    ends = np.cumsum(sizes)
    return [
        Subset(from_arrays, order[int(end) - int(size) : int(end)])
        for size, end in zip(sizes, ends, strict=True)
    ]
