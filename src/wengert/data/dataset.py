"""Datasets: anything with a length and items by index.

    Dataset          the base: views of it by `map`, `filter` and `subset`
    ArrayDataset     arrays side by side, in tuples and dicts of any depth
    TensorDataset    the same, of arrays given one by one
    item_of          one item, with the seed of what is random in it
    batch_of         many items at once, where the dataset can
    outside          the seed of items that no loader asks for
    mapped           containers of arrays, through a function

An `ArrayDataset` takes a whole batch by one index, which a loader uses; other datasets are asked
item by item.  What is random in an item (a crop, noise) follows from the seed that `item` is given,
and from nothing else: a loader makes it of its own seed, the pass and the place in it, so threads
and resuming change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.core.lazy_import import LazyModule

from ..errors import ArgumentError, ShapeError, StructureError, at, user_line

_views = LazyModule("wengert.data.subsets")

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

    def map(self, function: Callable[..., Any], field: Any = None) -> Any:
        """A view whose items have gone through a function; see `MapDataset`."""
        return _views.MapDataset(self, function, field)

    def filter(self, condition: Callable[[Any], Any]) -> Any:
        """A view of the items for which the condition holds; each is looked at once, now."""
        return _views.filtered(self, condition)

    def subset(self, indices: Any) -> Any:
        """A view of some items; see `Subset`."""
        return _views.Subset(self, indices)


class ArrayDataset(Dataset):
    """Arrays side by side: item i has their i-th entries, in the same containers.

    Parameters
    ----------
    arrays : array_like, or tuple or dict of these, nested as deeply as one likes
        All of the same length along the first axis.

    Raises
    ------
    ArgumentError
        No arrays.
    ShapeError
        Lengths differ, or one has no axis.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data import ArrayDataset
    >>> data = ArrayDataset({"x": np.eye(3), "y": (np.arange(3), [10, 20, 30])})
    >>> data[1]
    {'x': array([0., 1., 0.]), 'y': (np.int64(1), np.int64(20))}
    """

    def __init__(self, arrays: Any) -> None:
        leaves: list[Any] = []

        def taken(leaf: Any) -> Any:
            leaves.append(np.asarray(value_of(leaf)))
            return leaves[-1]

        self.structure = mapped(taken, arrays)
        name = type(self).__name__
        if not leaves:
            raise ArgumentError(f"{name}() of no arrays. Pass at least one{at(user_line())}.")
        lengths = [a.shape[0] if a.ndim else None for a in leaves]
        if None in lengths or len(set(lengths)) != 1:
            raise ShapeError(
                f"{name} of arrays of shapes {[a.shape for a in leaves]}: the first "
                f"axis counts the samples and has to be the same for all{at(user_line())}."
            )
        self._length = len(leaves[0])

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        return mapped(lambda a: a[index], self.structure)

    def batch(self, indices: Any) -> Any:
        """Many items by one index."""
        return self[indices]

    def __repr__(self) -> str:
        inside = mapped(lambda a: Shown(f"{a.dtype}{list(a.shape)}"), self.structure)
        return f"{type(self).__name__}({inside})"


class TensorDataset(ArrayDataset):
    """Arrays side by side: item i is the tuple of their i-th entries.

    Parameters
    ----------
    *arrays : array_like
        All of the same length along the first axis.

    Raises
    ------
    ArgumentError
        No arrays.
    ShapeError
        Lengths differ.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data import TensorDataset
    >>> data = TensorDataset(np.eye(3), np.array([10, 20, 30]))
    >>> len(data), data[1]
    (3, (array([0., 1., 0.]), np.int64(20)))
    """

    def __init__(self, *arrays: Any) -> None:
        super().__init__(arrays)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What it was made of."""
        return self.structure


class Shown(str):
    """Words that are printed without quotes."""

    def __repr__(self) -> str:
        return str(self)


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """A function of each leaf of nested tuples, named tuples and dicts, in the same containers."""
    if isinstance(tree, dict):
        return {key: mapped(function, inner) for key, inner in tree.items()}
    if isinstance(tree, tuple):
        return rebuilt(tree, [mapped(function, inner) for inner in tree])
    return function(tree)


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
