"""DataLoader: batches of a dataset, in a new order each epoch, by a thread in the background.

    prefetched    the batches of an iterator, made by a thread in advance

Every sample is used exactly once in each epoch; the last batch may be smaller, unless `drop_last`.
The seed determines the sequence of orders, with or without a prefetching thread.

`state_dict` returns the position of a loader, also in the middle of an epoch: another loader of the
same dataset that loads it continues with the next batch.

The thread ends with the loop over its batches: when there are no more, or when the loop is left by
`break`, an exception or an interrupt.  It is a daemon thread and does not delay the exit of the
interpreter.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, StructureError, at, user_line
from .array_concat_split import as_dataset
from .collate import CollatePlan, make_batch, make_part
from .dataset import Seed, is_random
from .samplers import (
    RandomSampler,
    Sampler,
    SequentialSampler,
    as_generator,
    digest,
    set_state,
    state_of,
)

_JOIN_TIMEOUT = 5.0  # seconds for the batch that is being made when the loop is left


class _Queue:
    """A bounded queue of batches that both sides can close."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.ready: deque[Any] = deque()
        self.changed = threading.Condition()
        self.closed = False  # the consumer needs no more
        self.ended = False  # the producer has no more
        self.error: BaseException | None = None

    def put(self, batch: Any) -> bool:
        """Add a batch when the queue has space; False if it is closed."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or len(self.ready) < self.capacity)
            if not self.closed:
                self.ready.append(batch)
                self.changed.notify_all()
            return not self.closed

    def end(self, error: BaseException | None) -> None:
        """Mark the end of the batches, with the producer's exception if there is one."""
        with self.changed:
            self.ended, self.error = True, error
            self.changed.notify_all()

    def take(self) -> list[Any]:
        """A list with the next batch, or an empty list at the end."""
        with self.changed:
            self.changed.wait_for(lambda: self.ready or self.ended)
            if self.ready:
                batch = self.ready.popleft()
                self.changed.notify_all()
                return [batch]
        if self.error is not None:
            raise self.error
        return []

    def close(self) -> None:
        """Stop the producer: no more batches are needed."""
        with self.changed:
            self.closed = True
            self.ready.clear()
            self.changed.notify_all()


def prefetched(batches: Iterator[Any], count: int) -> Generator[Any, None, None]:
    """The batches of an iterator, made by a thread in advance.

    Parameters
    ----------
    batches : iterator
        Consumed in the thread only.
    count : int
        Maximal number of batches in advance.
    """
    queue = _Queue(count)

    def produce() -> None:
        error: BaseException | None = None
        try:
            for batch in batches:
                if not queue.put(batch):
                    break
        except BaseException as raised:
            error = raised
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()
            queue.end(error)

    thread = threading.Thread(target=produce, name="wengert-prefetch", daemon=True)
    thread.start()
    try:
        while found := queue.take():
            yield found[0]
    finally:
        queue.close()
        thread.join(_JOIN_TIMEOUT)


@dataclass
class _Epoch:
    """An epoch: the generator's state at its start, the order, and the batches returned so far."""

    number: int
    rng_state: dict[str, Any]
    order: Any
    returned: int


class DataLoader:
    """Batches of a dataset.

    Parameters
    ----------
    dataset : Dataset, sequence, array, or tuple or dict of arrays
        Arrays are converted to an `ArrayDataset`.
    batch_size : int, default 1
    shuffle : bool, default False
        Draw a new order for each epoch.
    rng : int or numpy.random.Generator, optional
        Source of the orders and of random transforms; fresh entropy by default.
    drop_last : bool, default False
        Drop the last batch if it is smaller.
    collate : callable, optional
        Makes a batch from a list of items; by default `stack_items`.
    sampler : Sampler or iterable of int, optional
        The items of an epoch and their order, instead of `shuffle`.
    prefetch : int, default 0
        The number of batches that a background thread prepares in advance.

    Raises
    ------
    ArgumentError
        An invalid batch size or `prefetch`, or a sampler together with ``shuffle=True``.
    StructureError
        The dataset has no length, or no items by index.

    Notes
    -----
    An exception of an item is raised where the batch is requested, with a note that names the item.
    The thread of `prefetch` ends with the loop, also by `break`, exceptions and Ctrl-C.

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
        sampler: Any = None,
        prefetch: int = 0,
    ) -> None:
        is_integer = hasattr(batch_size, "__index__") and not isinstance(batch_size, bool)
        if not is_integer or batch_size < 1:
            raise ArgumentError(
                f"DataLoader(batch_size={batch_size!r}): batch_size must be an integer, at least 1"
                f"{at(user_line())}."
            )
        if prefetch < 0 or int(prefetch) != prefetch:
            raise ArgumentError(
                f"DataLoader(prefetch={prefetch}): prefetch must be an integer, at least 0"
                f"{at(user_line())}."
            )
        if shuffle and sampler is not None:
            raise ArgumentError(
                "DataLoader(shuffle=True, sampler=...): both define the order. Pass one of them"
                f"{at(user_line())}."
            )
        self.dataset = as_dataset(dataset)
        if not hasattr(self.dataset, "__getitem__") or not hasattr(self.dataset, "__len__"):
            raise StructureError(
                f"DataLoader of a {type(self.dataset).__name__}: a dataset has a length and items "
                f"by index. Convert an iterator to a list{at(user_line())}."
            )
        self.batch_size = int(batch_size)
        self.shuffle = bool(shuffle)
        self.rng = as_generator(rng)
        self.drop_last = drop_last
        self.collate = collate
        if sampler is None:
            sampler = (RandomSampler if shuffle else SequentialSampler)(self.dataset)
        self.sampler = sampler
        self.prefetch = int(prefetch)
        self._number = 0  # epochs begun
        self._latest: _Epoch | None = None  # the last epoch begun, unless it has ended
        self._resumed: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        """The number of batches."""
        return self._count(len(self.sampler))

    def __repr__(self) -> str:
        order = ", shuffled" if self.shuffle else ""
        batches = f"{len(self)} batches of {self.batch_size}"
        return f"DataLoader({batches}{order}, of {self.dataset!r})"

    # ---- iterating -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        return self._epoch(None)

    def parts(self, rank: int, size: int) -> Iterator[Any]:
        """The batches, of which only the items of one of several processes are read.

        The first batch, and all if there is a `collate`, are whole. Others are a `BatchPart`.

        Parameters
        ----------
        rank, size : int
            The number of the process, and the number of processes.

        Examples
        --------
        >>> from wengert.data import DataLoader
        >>> loader = DataLoader(np.arange(7.0), batch_size=3)
        >>> for batch in loader.parts(1, 2):
        ...     print(batch)
        [0. 1. 2.]
        BatchPart(batch=array([4., 5.]), own=2, total=3)
        BatchPart(batch=array([6.]), own=1, total=1)
        """
        return self._epoch((rank, size))

    def _epoch(self, process: tuple[int, int] | None) -> Iterator[Any]:
        epoch = self._begin_epoch()
        seed: Seed = (digest(epoch.rng_state), epoch.number) if is_random(self.dataset) else ()
        count = self._count(len(epoch.order))
        plan = CollatePlan(epoch.order, self.batch_size, count, seed)
        batches = self._batches(plan, epoch.returned, process)
        try:
            for batch in batches:
                epoch.returned += 1
                yield batch
        finally:
            batches.close()
        if self._latest is epoch:
            self._latest = None

    def _begin_epoch(self) -> _Epoch:
        """A new epoch, or the rest of one whose state was loaded."""
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            set_state(self.rng, resumed["order_rng"])
            self._number = resumed["pass"]
        rng_state = state_of(self.rng)
        if resumed is not None and resumed["order"] is not None:
            order = np.asarray(resumed["order"])
        elif isinstance(self.sampler, Sampler):
            order = np.asarray(self.sampler.order(self.rng))
        else:
            order = np.asarray(list(self.sampler), np.int64)
        if resumed is not None:
            set_state(self.rng, resumed["rng"])
        returned = 0 if resumed is None else int(resumed["batch"])
        self._latest = _Epoch(self._number, rng_state, order, returned)
        self._number += 1
        return self._latest

    def _count(self, items: int) -> int:
        full, rest = divmod(items, self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)

    def _batches(
        self, plan: CollatePlan, first: int, process: tuple[int, int] | None
    ) -> Generator[Any, None, None]:
        def batch(number: int) -> Any:
            if process is None or number == first or self.collate is not None:
                return make_batch(self.dataset, plan, number, self.collate)
            return make_part(self.dataset, plan, number, *process)

        batches = (batch(number) for number in range(first, plan.total))
        return prefetched(batches, self.prefetch) if self.prefetch else batches

    # ---- position --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The position after the batches returned so far, for `load_state_dict`.

        Numbers, strings and arrays, which `wengert.save` accepts.
        """
        if self._resumed is not None:
            return dict(self._resumed)
        rng_state, epoch = state_of(self.rng), self._latest
        state = {"length": len(self.sampler), "batch_size": self.batch_size, "rng": rng_state}
        if epoch is None:
            return {**state, "pass": self._number, "batch": None}
        order = None if isinstance(self.sampler, Sampler) else epoch.order
        return {
            **state,
            "pass": epoch.number,
            "batch": epoch.returned,
            "order": order,
            "order_rng": epoch.rng_state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the position of another loader of the same dataset.

        Raises
        ------
        StructureError
            It is not the state of a loader of this dataset.
        FileError
            It has the state of another kind of generator.
        """
        if missing := {"length", "batch_size", "rng", "pass", "batch"} - set(state):
            raise StructureError(
                f"DataLoader.load_state_dict: the state has no {sorted(missing)}. Pass the result "
                f"of state_dict() of a loader{at(user_line())}."
            )
        mine = len(self.sampler), self.batch_size
        other = state["length"], state["batch_size"]
        if mine != other:
            raise StructureError(
                f"DataLoader.load_state_dict: the state is for {other[0]} samples in batches of "
                f"{other[1]}, this loader has {mine[0]} in batches of {mine[1]}. Use the same "
                f"data and batch size{at(user_line())}."
            )
        set_state(self.rng, state["rng"])
        self._number, self._latest = int(state["pass"]), None
        self._resumed = None if state["batch"] is None else dict(state)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_latest": None, "_resumed": self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.load_state_dict(state["_resumed"])
