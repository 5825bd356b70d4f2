"""Datasets made of other datasets, without copying.

Subset          some items, in an order of their own
ConcatDataset   one dataset after the other
MapDataset      items, or one field of them, through a function
filtered        the items for which a condition holds
random_split    parts by lengths or shares, by seed
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, StructureError, at, user_line

from .collate import as_dataset
from .dataset import Dataset, Seed, batch_of, is_random, item_of, outside, rebuilt
from .rng_state import as_generator

__all__ = ["ConcatDataset", "MapDataset", "Subset", "filtered", "random_split"]


class Subset(Dataset):
    """Some items of a dataset.

    Parameters
    ----------
    dataset : Dataset or sequence
    indices : array_like of int, or of bool
        Which items, in which order; they may repeat. A mask has one boolean for each item.

    Raises
    ------
    ArgumentError
        An index that the dataset does not have, or an argument that is not a list of indices.

    Examples
    --------
    >>> from wengert.data import Subset
    >>> list(Subset("abcde", [4, 0, 0]))
    ['e', 'a', 'a']
    """

    def __init__(self, dataset: Any, indices: Any) -> None:
        chosen, count = np.asarray(indices), len(dataset)
        if chosen.dtype == bool and chosen.shape == (count,):
            chosen = np.flatnonzero(chosen)
        if chosen.size == 0:
            chosen = chosen.astype(np.int64).reshape(-1)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise ArgumentError(
                f"Subset of {count} items by an array {chosen.dtype}{list(chosen.shape)}: give one "
                f"axis of integers, or a boolean for each item{at(user_line())}."
            )
        if chosen.size and not -count <= chosen.min() <= chosen.max() < count:
            raise ArgumentError(
                f"Subset: indices from {chosen.min()} to {chosen.max()}, but there are {count} "
                f"items, numbered from 0. Choose among these{at(user_line())}."
            )
        self.dataset = dataset
        self.indices = chosen.astype(np.int64)

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether what it is a view of is random."""
        return is_random(self.dataset)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        return self.item(index, outside(index, len(self)))

    def item(self, index: int, seed: Seed) -> Any:
        """An item."""
        return item_of(self.dataset, int(self.indices[index]), seed)

    def batch(self, indices: Any) -> Any:
        """Many items at once, if the dataset can."""
        return batch_of(self.dataset, self.indices[indices])

    def __repr__(self) -> str:
        return f"Subset({len(self)} of {self.dataset!r})"


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


class MapDataset(Dataset):
    """Items that have gone through a function.

    Parameters
    ----------
    dataset : Dataset or sequence
    function : callable
        Called with an item when it is asked for; it must not change the item in place. One with
        an attribute ``random`` that is true is called with a generator, too: ``function(item,
        rng)``; `wengert.data.transforms` has such.
    field : int or str, optional
        The field of items (tuples or dicts) that goes through the function; others stay.

    Raises
    ------
    ArgumentError
        The function is none.

    Examples
    --------
    >>> from wengert.data import MapDataset
    >>> pairs = [(1, "a"), (2, "b")]
    >>> list(MapDataset(pairs, lambda x: 10 * x, field=0))
    [(10, 'a'), (20, 'b')]
    """

    def __init__(self, dataset: Any, function: Callable[..., Any], field: Any = None) -> None:
        if not callable(function):
            raise ArgumentError(
                f"MapDataset by {function!r}, which is not callable. Pass a function of an item"
                f"{at(user_line())}."
            )
        self.dataset, self.function, self.field = dataset, function, field

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether the function, or what it is a view of, is random."""
        return self._draws or is_random(self.dataset)

    @property
    def _draws(self) -> bool:
        return bool(getattr(self.function, "random", False))

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        return self.item(index, outside(index, len(self)))

    def item(self, index: int, seed: Seed) -> Any:
        """An item, through the function."""
        # A seed of its own for each function, so that one does not draw what another has drawn.
        item = item_of(self.dataset, index, (*seed, 1))
        if self.field is None:
            return self._apply(item, seed)
        field = self.field
        if isinstance(item, dict) and field in item:
            return {**item, field: self._apply(item[field], seed)}
        if isinstance(item, tuple) and isinstance(field, int) and -len(item) <= field < len(item):
            fields = list(item)
            fields[field] = self._apply(fields[field], seed)
            return rebuilt(item, fields)
        raise StructureError(
            f"MapDataset(field={field!r}): item {index} is a {type(item).__name__} without that "
            f"field. Name a key of dicts or a place in tuples{at(user_line())}."
        )

    def _apply(self, x: Any, seed: Seed) -> Any:
        return self.function(x, as_generator(seed)) if self._draws else self.function(x)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        return f"MapDataset({self.dataset!r}, {name})"


def filtered(dataset: Any, condition: Callable[[Any], Any]) -> Subset:
    """The items for which a condition holds.

    Parameters
    ----------
    dataset : Dataset or sequence
    condition : callable
        Of an item. All are looked at, once, now.

    Examples
    --------
    >>> from wengert.data import filtered
    >>> list(filtered(range(6), lambda x: x % 2))
    [1, 3, 5]
    """
    return Subset(dataset, [i for i in range(len(dataset)) if condition(dataset[i])])


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
