"""Datasets of arrays; datasets concatenated and split without copying.

ArrayDataset   arrays of equal length, in nested tuples and dicts
TensorDataset  the same, from separate arguments
as_dataset     arrays as datasets
ConcatDataset  datasets in sequence
random_split   random disjoint subsets of given lengths or fractions
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .dataset import Dataset, Seed, Subset, default_seed, is_random, item_of, tuple_like
from .samplers import as_generator


class ArrayDataset(Dataset):
    """Arrays of equal length: item i contains their i-th elements, in the same containers.

    Parameters
    ----------
    arrays : array_like, or tuple or dict of these, arbitrarily nested
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

        def add(leaf: Any) -> Any:
            leaves.append(np.asarray(value_of(leaf)))
            return leaves[-1]

        self.structure = map_leaves(add, arrays)
        name = type(self).__name__
        if not leaves:
            raise ArgumentError(f"{name} was given no arrays. Pass at least one{at(user_line())}.")
        lengths = [a.shape[0] if a.ndim else None for a in leaves]
        if None in lengths or len(set(lengths)) != 1:
            raise ShapeError(
                f"{name} was given arrays of shapes {[a.shape for a in leaves]}. The first axis "
                f"is the sample axis and must have the same length in all{at(user_line())}."
            )
        self._length = len(leaves[0])

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        return map_leaves(lambda a: a[index], self.structure)

    def batch(self, indices: Any) -> Any:
        """Several items by one indexing operation."""
        return self[indices]

    def __repr__(self) -> str:
        inside = map_leaves(lambda a: Unquoted(f"{a.dtype}{list(a.shape)}"), self.structure)
        return f"{type(self).__name__}({inside})"


class TensorDataset(ArrayDataset):
    """Arrays of equal length: item i is the tuple of their i-th elements.

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
        """The arrays."""
        return self.structure


def as_dataset(data: Any) -> Any:
    """An array, or a tuple or dict of arrays, as a dataset; other objects unchanged."""
    if isinstance(data, np.ndarray | Handle):
        return ArrayDataset(data)
    if isinstance(data, tuple) and data and all(isinstance(a, np.ndarray | Handle) for a in data):
        return TensorDataset(*data)
    if isinstance(data, dict):
        return ArrayDataset(data)
    return data


class Unquoted(str):
    """A string whose repr has no quotes."""

    def __repr__(self) -> str:
        return str(self)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Apply a function to the leaves of nested tuples, named tuples and dicts."""
    if isinstance(tree, dict):
        return {key: map_leaves(function, inner) for key, inner in tree.items()}
    if isinstance(tree, tuple):
        return tuple_like(tree, [map_leaves(function, inner) for inner in tree])
    return function(tree)


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
