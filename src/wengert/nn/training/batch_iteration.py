"""Batches: the data of `fit` as a repeatable iterable.

BatchSource  the batches of each epoch; its position can be saved and restored
size_of      the number of samples of a batch
split        inputs and target of a batch
OWN ...      the weights of a part of a batch, in training with several processes
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.pytree import flatten
from wengert.data import DataLoader, Dataset
from wengert.errors import ArgumentError, StructureError, at, user_line

# The number of samples, their fraction of the batch, whether to stop, the size in bytes.
OWN, SHARE, FLAG, BYTES = range(4)


_LOADERS = DataLoader.__iter__  # not that of a subclass


class BatchSource:
    """Data as batches.

    Parameters
    ----------
    data : DataLoader, Dataset, arrays, or any iterable of batches
        Arrays and datasets are wrapped in a loader.
    batch_size, shuffle, rng
        Options of that loader.
    what : str
        Name of the data in error messages.
    """

    def __init__(self, data: Any, batch_size: int, shuffle: bool, rng: Any, what: str) -> None:
        from_arrays = isinstance(data, np.ndarray | Handle | Dataset | dict) or (
            isinstance(data, tuple) and all(isinstance(a, np.ndarray | Handle) for a in data)
        )
        if from_arrays:
            data = DataLoader(data, batch_size, shuffle=shuffle, rng=rng)
        if not hasattr(data, "__iter__"):
            raise StructureError(
                f"fit: the {what} must be a DataLoader, arrays (x, y), a Dataset, or an iterable "
                f"of batches, got {type(data).__name__}{at(user_line())}."
            )
        self.data, self.what = data, what
        self.done = 0  # completed batches of this epoch
        if self._length() == 0:
            raise self.empty()

    def _length(self) -> int | None:
        try:
            return len(self.data)
        except TypeError:
            return None

    def __len__(self) -> int:
        return self._length() or 0

    def empty(self) -> ArgumentError:
        """The error for data without batches."""
        full = getattr(self.data, "drop_last", False)
        why = "it has fewer samples than a batch (drop_last=True)" if full else "it has no samples"
        if not isinstance(self.data, DataLoader):
            why = "the iterable is empty; an iterator can be used only once"
        return ArgumentError(
            f"fit: the {self.what} have no batches: {why}. Give data with at least one batch in "
            f"every epoch{at(user_line())}."
        )

    def batches(self, process: tuple[int, int] | None = None) -> Iterator[Any]:
        """The remaining batches of this epoch.

        For process ``(rank, size)`` loaders may read its part only: batches are a `BatchPart`,
        except for the first.
        """
        data = self.data if process is None else self._parts(*process)
        skipped = 0 if hasattr(self.data, "load_state_dict") else self.done
        for batch in data:
            if skipped:
                skipped -= 1
                continue
            self.done += 1
            yield batch
        if not self.done:
            raise self.empty()

    def _parts(self, rank: int, size: int) -> Any:
        is_loader = isinstance(self.data, DataLoader) and type(self.data).__iter__ is _LOADERS
        return self.data.parts(rank, size) if is_loader else self.data

    def end(self) -> None:
        """End the epoch."""
        self.done = 0

    def state_dict(self) -> dict[str, Any]:
        """The position in the data."""
        loader = self.data.state_dict() if hasattr(self.data, "load_state_dict") else None
        return {"done": self.done, "loader": loader}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a position."""
        has_state = hasattr(self.data, "load_state_dict")
        if has_state != (state["loader"] is not None):
            raise StructureError(
                f"fit(resume=...): the {self.what} of the checkpoint are of another kind (a loader "
                f"or not). Resume with the same data{at(user_line())}."
            )
        self.done = int(state["done"])
        if has_state:
            self.data.load_state_dict(state["loader"])


def size_of(batch: Any) -> int:
    """The number of samples of a batch: the length of its first array; 1 without arrays."""
    for leaf in batch if type(batch) is tuple else flatten(batch)[0]:
        if type(leaf) is np.ndarray and leaf.ndim:  # fast path
            return len(leaf)
        break
    for leaf in flatten(batch)[0]:
        shape = shape_of(leaf) if isinstance(leaf, np.ndarray | np.generic | Handle) else ()
        if shape:
            return int(shape[0])
    return 1


def split(batch: Any) -> tuple[tuple[Any, ...], Any]:
    """The inputs of a batch, and its target.

    Raises
    ------
    StructureError
        The batch is not a tuple or list of at least two fields.
    """
    if not isinstance(batch, tuple | list) or len(batch) < 2:
        have = f"{len(batch)} fields" if isinstance(batch, tuple | list) else type(batch).__name__
        raise StructureError(
            f"fit: expected a batch of inputs and a target, (x, y), got {have}. Give such "
            f"batches, or compute the loss of other batches by objective=f(model, batch)"
            f"{at(user_line())}."
        )
    return tuple(batch[:-1]), batch[-1]
