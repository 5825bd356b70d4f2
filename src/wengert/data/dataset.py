"""Datasets, and views of them without copying.

    Dataset        base class, with the methods `map`, `filter` and `subset`
    Subset         selected items, in a given order
    MapDataset     a function applied to items or to one of their fields
    filtered       the items that satisfy a condition
    item_of        an item, with the seed of its random transforms
    batch_of       several items at once, if the dataset supports it
    default_seed   the seed of items that are read without a loader

Random transforms of an item (a crop, noise) depend only on the seed passed to `item`.  A loader
derives it from its own seed, the epoch and the position in the epoch, so that prefetching and
resuming do not change the items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, StructureError, at, user_line

from .samplers import as_generator

Seed = tuple[int, ...]


class Dataset:
    """Base class of datasets: define ``__len__`` and ``__getitem__(i)``.

    An item is an array, a number, or a tuple or dict of these.

    Attributes
    ----------
    random : bool
        Whether items are random; if so, define ``item(i, seed)`` too.
    """

    random: bool = False

    def __len__(self) -> int:
        raise StructureError(
            f"{type(self).__name__} has no length. Define __len__(self){at(user_line())}."
        )

    def __getitem__(self, index: Any) -> Any:
        raise StructureError(
            f"{type(self).__name__} has no items. Define __getitem__(self, i){at(user_line())}."
        )

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]

    def item(self, index: int, seed: Seed) -> Any:
        """An item, whose random transforms depend on a seed only.

        Parameters
        ----------
        index : int
        seed : tuple of int
            For ``numpy.random.default_rng(seed)``.
        """
        return self[index]

    def batch(self, indices: Any) -> Any:
        """Several items as a batch; NotImplemented if they have to be read one by one.

        Parameters
        ----------
        indices : array of int
        """
        return NotImplemented

    def map(self, function: Callable[..., Any], field: Any = None) -> MapDataset:
        """A view that applies a function to the items; see `MapDataset`."""
        return MapDataset(self, function, field)

    def filter(self, condition: Callable[[Any], Any]) -> Subset:
        """A view of the items that satisfy a condition, which is evaluated for all items now."""
        return filtered(self, condition)

    def subset(self, indices: Any) -> Subset:
        """A view of some items; see `Subset`."""
        return Subset(self, indices)


class Subset(Dataset):
    """Some items of a dataset.

    Parameters
    ----------
    dataset : Dataset or sequence
    indices : array_like of int, or of bool
        Indices of the items, in order, possibly repeated; or a mask with a boolean for each item.

    Raises
    ------
    ArgumentError
        An index out of range, or an argument that is not a list of indices.

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
                f"Subset: indices is an array {chosen.dtype}{list(chosen.shape)}. Pass a 1-d array "
                f"of integers, or of {count} booleans, one per item{at(user_line())}."
            )
        if chosen.size and not -count <= chosen.min() <= chosen.max() < count:
            raise ArgumentError(
                f"Subset: indices range from {chosen.min()} to {chosen.max()}, but the dataset has "
                f"{count} items. Pass indices below {count}{at(user_line())}."
            )
        self.dataset = dataset
        self.indices = chosen.astype(np.int64)

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether the underlying dataset is random."""
        return is_random(self.dataset)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        return self.item(index, default_seed(index, len(self)))

    def item(self, index: int, seed: Seed) -> Any:
        """The selected item."""
        return item_of(self.dataset, int(self.indices[index]), seed)

    def batch(self, indices: Any) -> Any:
        """Several items as a batch, if the underlying dataset supports it."""
        return batch_of(self.dataset, self.indices[indices])

    def __repr__(self) -> str:
        return f"Subset({len(self)} of {self.dataset!r})"


class MapDataset(Dataset):
    """A function applied to the items of a dataset.

    Parameters
    ----------
    dataset : Dataset or sequence
    function : callable
        Called with an item when it is read; it must not modify the item in place. A function with
        a true attribute ``random`` is called with a generator too, ``function(item, rng)``, as
        those of `wengert.data.transforms`.
    field : int or str, optional
        The field of items (tuples or dicts) to which the function is applied.

    Raises
    ------
    ArgumentError
        The function is not callable.

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
                f"MapDataset was given {function!r}, which is not callable. Pass a function of an "
                f"item{at(user_line())}."
            )
        self.dataset, self.function, self.field = dataset, function, field

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Whether the function or the underlying dataset is random."""
        return self._takes_rng or is_random(self.dataset)

    @property
    def _takes_rng(self) -> bool:
        return bool(getattr(self.function, "random", False))

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        return self.item(index, default_seed(index, len(self)))

    def item(self, index: int, seed: Seed) -> Any:
        """The function of an item."""
        # Another seed for each function, so that their random numbers are independent.
        item = item_of(self.dataset, index, (*seed, 1))
        if self.field is None:
            return self._apply(item, seed)
        field = self.field
        if isinstance(item, dict) and field in item:
            return {**item, field: self._apply(item[field], seed)}
        if isinstance(item, tuple) and isinstance(field, int) and -len(item) <= field < len(item):
            fields = list(item)
            fields[field] = self._apply(fields[field], seed)
            return tuple_like(item, fields)
        raise StructureError(
            f"MapDataset(field={field!r}): item {index}, a {type(item).__name__}, has no such "
            f"field. Pass a key of dicts or an index of tuples{at(user_line())}."
        )

    def _apply(self, x: Any, seed: Seed) -> Any:
        return self.function(x, as_generator(seed)) if self._takes_rng else self.function(x)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        return f"MapDataset({self.dataset!r}, {name})"


def filtered(dataset: Any, condition: Callable[[Any], Any]) -> Subset:
    """The items that satisfy a condition.

    Parameters
    ----------
    dataset : Dataset or sequence
    condition : callable
        Called with each item once, immediately.

    Examples
    --------
    >>> from wengert.data import filtered
    >>> list(filtered(range(6), lambda x: x % 2))
    [1, 3, 5]
    """
    return Subset(dataset, [i for i in range(len(dataset)) if condition(dataset[i])])


def tuple_like(like: tuple[Any, ...], fields: Sequence[Any]) -> Any:
    """A tuple of the same class as `like`, which may be a named tuple."""
    return type(like)(*fields) if hasattr(like, "_fields") else tuple(fields)


def is_random(dataset: Any) -> bool:
    """Whether items of a dataset depend on a seed."""
    return bool(getattr(dataset, "random", False)) and hasattr(dataset, "item")


def default_seed(index: Any, count: int) -> Seed:
    """The seed of an item that is read without a loader; it depends on the index only."""
    return 0, 0, int(index) % max(1, count)


def item_of(dataset: Any, index: int, seed: Seed) -> Any:
    """An item of a dataset, or of a plain sequence."""
    return dataset.item(index, seed) if isinstance(dataset, Dataset) else dataset[index]


def batch_of(dataset: Any, indices: Any) -> Any:
    """Several items as a batch, or NotImplemented."""
    if not isinstance(dataset, Dataset) or is_random(dataset):
        return NotImplemented
    return dataset.batch(indices)
