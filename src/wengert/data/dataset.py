"""Datasets, and views of them without copying.

    Dataset       the base: views of it by `map`, `filter` and `subset`
    Subset        some items, in an order of their own
    MapDataset    items, or one field of them, through a function
    filtered      the items for which a condition holds
    item_of       one item, with the seed of what is random in it
    batch_of      many items at once, where the dataset can
    outside       the seed of items that no loader asks for

What is random in an item (a crop, noise) follows from the seed that `item` is given, and from
nothing else: a loader makes it of its own seed, the pass and the place in it, so threads and
resuming change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, StructureError, at, user_line

from .rng_state import as_generator

Seed = tuple[int, ...]


class Dataset:
    """Base of datasets: define ``__len__`` and ``__getitem__(i)``.

    An item is an array, a number, or a tuple or dict of these.

    Attributes
    ----------
    random : bool
        Whether items have something random in them; then define ``item(i, seed)``, too.
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
        """An item, whose random part follows from the seed.

        Parameters
        ----------
        index : int
        seed : tuple of int
            For ``numpy.random.default_rng(seed)``.
        """
        return self[index]

    def batch(self, indices: Any) -> Any:
        """Many items as one batch, or NotImplemented: then they are asked for one by one.

        Parameters
        ----------
        indices : array of int
        """
        return NotImplemented

    def map(self, function: Callable[..., Any], field: Any = None) -> MapDataset:
        """A view whose items have gone through a function; see `MapDataset`."""
        return MapDataset(self, function, field)

    def filter(self, condition: Callable[[Any], Any]) -> Subset:
        """A view of the items for which the condition holds; each is looked at once, now."""
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


def rebuilt(like: tuple[Any, ...], fields: Sequence[Any]) -> Any:
    """Fields in a tuple of the class of another one."""
    return type(like)(*fields) if hasattr(like, "_fields") else tuple(fields)


def is_random(dataset: Any) -> bool:
    """Whether items of a dataset depend on a seed."""
    return bool(getattr(dataset, "random", False)) and hasattr(dataset, "item")


def outside(index: Any, count: int) -> Seed:
    """The seed of an item that is asked for outside of a loader: always the same."""
    return 0, 0, int(index) % max(1, count)


def item_of(dataset: Any, index: int, seed: Seed) -> Any:
    """An item of a dataset, or of a plain sequence."""
    return dataset.item(index, seed) if isinstance(dataset, Dataset) else dataset[index]


def batch_of(dataset: Any, indices: Any) -> Any:
    """Many items as one batch, or NotImplemented."""
    if not isinstance(dataset, Dataset) or is_random(dataset):
        return NotImplemented
    return dataset.batch(indices)
