"""Datasets of arrays, from which a loader takes whole batches by one indexing operation.

ArrayDataset     arrays of equal length, in nested tuples and dicts
TensorDataset    the same, from separate arguments
as_dataset       arrays as datasets
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .dataset import Dataset, tuple_like


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
