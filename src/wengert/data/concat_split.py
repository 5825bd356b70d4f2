"""Concatenate and split datasets, without copying.

ConcatDataset   datasets in sequence
random_split    random disjoint subsets of given lengths or fractions
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from .array_dataset import as_dataset
from .dataset import Dataset, Seed, Subset, default_seed, is_random, item_of
from .rng_state import as_generator


class ConcatDataset(Dataset):
    """Concatenation of datasets.

    Parameters
    ----------
    datasets : iterable of Dataset or sequence

    Raises
    ------
    ArgumentError
        No datasets.

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
                f"ConcatDataset was given no datasets. Pass at least one{at(user_line())}."
            )
        self.ends = np.cumsum([len(d) for d in self.datasets])

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether any of the datasets is random."""
        return any(map(is_random, self.datasets))

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, index: Any) -> Any:
        return self.item(index, default_seed(index, len(self)))

    def item(self, index: int, seed: Seed) -> Any:
        """The item of the dataset that contains the index."""
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"index {index} is out of range for a dataset of {count} items")
        position = index % count
        which = int(np.searchsorted(self.ends, position, side="right"))
        start = int(self.ends[which - 1]) if which else 0
        return item_of(self.datasets[which], position - start, seed)

    def __repr__(self) -> str:
        return f"ConcatDataset({self.datasets!r})"


def random_split(dataset: Any, lengths: Sequence[float], rng: Any = None) -> list[Subset]:
    """Split a dataset at random into disjoint parts.

    Parameters
    ----------
    dataset : Dataset, sequence, array or tuple of arrays
        Arrays are converted to an `ArrayDataset`.
    lengths : sequence of int, or of float
        Lengths that sum to the number of items, or fractions that sum to 1. Lengths from fractions
        are rounded down, and the remaining items are given to the first parts, one each.
    rng : int or numpy.random.Generator, optional
        Random state or seed; equal seeds give equal parts.

    Returns
    -------
    list of Subset

    Raises
    ------
    ArgumentError
        The lengths do not sum to the number of items, or the fractions not to 1.

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
            f"random_split(lengths={given}): lengths must be at least 0{at(user_line())}."
        )
    sizes: list[Any] = given
    if any(isinstance(n, float | np.floating) for n in given):
        if not math.isclose(sum(given), 1.0, rel_tol=1e-9):
            raise ArgumentError(
                f"random_split(lengths={given}): fractions must sum to 1, these sum to "
                f"{sum(given)}. Change them, or pass integers{at(user_line())}."
            )
        sizes = [math.floor(count * share) for share in given]
        for k in range(count - sum(sizes)):
            sizes[k % len(sizes)] += 1
    if sum(sizes) != count:
        raise ArgumentError(
            f"random_split(lengths={given}): lengths must sum to the number of items, {count}; "
            f"these sum to {sum(sizes)}{at(user_line())}."
        )
    order = as_generator(rng).permutation(count)
    ends = np.cumsum(sizes)
    return [
        Subset(from_arrays, order[int(end) - int(size) : int(end)])
        for size, end in zip(sizes, ends, strict=True)
    ]
