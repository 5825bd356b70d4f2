"""DataLoader: a dataset in batches, in a fresh order each time it is gone through.

Every sample comes exactly once in each pass; the last batch is smaller where the numbers do not
divide, and is dropped only if asked.  Orders follow from the seed: the same seed, the same sequence
of orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.handle import Handle, value_of
from ..errors import ArgumentError, at, user_line
from .dataset import Dataset, TensorDataset


class DataLoader:
    """Batches of a dataset.

    Parameters
    ----------
    dataset : Dataset, sequence, array or tuple of arrays
        Arrays are taken as a `TensorDataset`.
    batch_size : int, default 1
    shuffle : bool, default False
        Draw a new order for each pass.
    rng : int or numpy.random.Generator, optional
        Where orders come from; fresh entropy by default.
    drop_last : bool, default False
        Leave out a last batch that is not full.
    collate : callable, optional
        Makes a batch of a list of items; stacks them by default.

    Raises
    ------
    ArgumentError
        A batch size below one.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data import DataLoader
    >>> loader = DataLoader((np.arange(5.0), np.arange(5) % 2), batch_size=2)
    >>> for x, y in loader:
    ...     print(x, y)
    [0. 1.] [0 1]
    [2. 3.] [0 1]
    [4.] [0]
    >>> len(loader)
    3
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        rng: Any = None,
        drop_last: bool = False,
        collate: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        if batch_size < 1 or int(batch_size) != batch_size:
            raise ArgumentError(
                f"DataLoader(batch_size={batch_size}): a batch has a whole number of samples, at "
                f"least one{at(user_line())}."
            )
        arrays = isinstance(dataset, tuple) and all(
            isinstance(a, np.ndarray | Handle) for a in dataset
        )
        if arrays:
            dataset = TensorDataset(*dataset)
        elif isinstance(dataset, np.ndarray | Handle):
            dataset = _Single(value_of(dataset))
        self.dataset = dataset
        self.batch_size = int(batch_size)
        self.shuffle = shuffle
        self.rng = np.random.default_rng(rng)
        self.drop_last = drop_last
        self.collate = collate

    def __len__(self) -> int:
        """The number of batches."""
        full, rest = divmod(len(self.dataset), self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)

    def __iter__(self) -> Iterator[Any]:
        n = len(self.dataset)
        order = self.rng.permutation(n) if self.shuffle else np.arange(n)
        for i in range(len(self)):
            yield self._batch(order[i * self.batch_size : (i + 1) * self.batch_size])

    def _batch(self, chosen: Any) -> Any:
        at_once = self.collate is None and isinstance(self.dataset, TensorDataset | _Single)
        if at_once:
            return self.dataset[chosen]
        items = [self.dataset[int(i)] for i in chosen]
        return (self.collate or stack_items)(items)


class _Single(Dataset):
    """One array as a dataset whose items are its entries."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Any:
        return self.array[index]


def stack_items(items: Sequence[Any]) -> Any:
    """Items stacked along a new first axis; tuples and dicts field by field.

    Parameters
    ----------
    items : sequence
        Arrays, numbers, or tuples or dicts of these, all alike. Other things stay a list.
    """
    first = items[0]
    if isinstance(first, dict):
        return {k: stack_items([item[k] for item in items]) for k in first}
    if isinstance(first, tuple):
        return tuple(stack_items(column) for column in zip(*items, strict=True))
    if isinstance(first, np.ndarray | np.generic | int | float | complex | Handle):
        return np.stack([np.asarray(value_of(item)) for item in items])
    return list(items)
