"""Datasets of arrays; a loader takes a whole batch of these by one index.

ArrayDataset     arrays side by side, in tuples and dicts of any depth
TensorDataset    the same, of arrays given one by one
as_dataset       arrays as datasets
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .dataset import Dataset, rebuilt


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


def as_dataset(data: Any) -> Any:
    """An array, or a tuple or dict of arrays, as a dataset; other things as they are."""
    if isinstance(data, np.ndarray | Handle):
        return ArrayDataset(data)
    if isinstance(data, tuple) and data and all(isinstance(a, np.ndarray | Handle) for a in data):
        return TensorDataset(*data)
    if isinstance(data, dict):
        return ArrayDataset(data)
    return data


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
