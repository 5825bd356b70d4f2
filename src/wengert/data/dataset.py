"""Datasets: anything with a length and items by number.

A `TensorDataset` takes a whole batch by one index, which a loader uses; other datasets are asked
item by item.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.handle import value_of
from ..errors import ArgumentError, ShapeError, StructureError, at, user_line


class Dataset:
    """Base of datasets: define ``__len__`` and ``__getitem__(i)``.

    An item is an array, a number, or a tuple or dict of these.
    """

    def __len__(self) -> int:
        raise StructureError(
            f"{type(self).__name__} has no length. Define __len__(self){at(user_line())}."
        )

    def __getitem__(self, index: Any) -> Any:
        raise StructureError(
            f"{type(self).__name__} has no items. Define __getitem__(self, i){at(user_line())}."
        )


class TensorDataset(Dataset):
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
        if not arrays:
            raise ArgumentError(f"TensorDataset() of no arrays. Give it some{at(user_line())}.")
        self.arrays = tuple(np.asarray(value_of(a)) for a in arrays)
        lengths = [a.shape[0] if a.ndim else None for a in self.arrays]
        if None in lengths or len(set(lengths)) != 1:
            raise ShapeError(
                f"TensorDataset of arrays of shapes {[a.shape for a in self.arrays]}: the first "
                f"axis counts the samples and has to be the same for all{at(user_line())}."
            )

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(a[index] for a in self.arrays)
