"""DataLoader: batches of a dataset, in a new order each epoch.

Every sample comes exactly once in each pass; the last batch is smaller where the numbers do not
divide, and is dropped only if asked.  Orders follow from the seed: the same seed, the same sequence
of orders, whether batches are made here, by a thread ahead of time, or by other processes.

`state_dict` says where a loader stands, also in the middle of a pass: another one of the same
dataset that has loaded it goes on with the very next batch.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import numpy as np

from wengert._engine.core.lazy_import import LazyModule

from ..errors import ArgumentError, StructureError, at, user_line
from .collate import Plan, as_dataset, collated
from .dataset import Seed, is_random
from .prefetch import ahead
from .rng_state import as_generator, digest, put_state, state_of
from .samplers import RandomSampler, Sampler, SequentialSampler

_workers = LazyModule(
    "wengert.data.worker_processes"
)  # and multiprocessing, which most programs do not need


class _Pass:
    """One way through a dataset: what it began from, and how far it has come."""

    def __init__(self, number: int, before: dict[str, Any], order: Any, done: int) -> None:
        self.number, self.before, self.order, self.done = number, before, order, done


class DataLoader:
    """Batches of a dataset.

    Parameters
    ----------
    dataset : Dataset, sequence, array, or tuple or dict of arrays
        Arrays are taken as an `ArrayDataset`.
    batch_size : int, default 1
    shuffle : bool, default False
        Draw a new order for each pass.
    rng : int or numpy.random.Generator, optional
        Where orders, and what is random in items, come from; fresh entropy by default.
    drop_last : bool, default False
        Leave out a last batch that is not full.
    collate : callable, optional
        Makes a batch of a list of items; stacks them by default (`stack_items`).
    sampler : Sampler or iterable of int, optional
        Which items come in a pass, and in which order; in the place of `shuffle`.
    workers : int, default 0
        How many other processes make batches. Dataset and functions are pickled to them once. It
        pays where an item costs milliseconds; for arrays in memory it does not.
    prefetch : int, optional
        How many batches are made ahead: by a thread, or by each worker. By default none, and 2 for
        each worker.
    persistent_workers : bool, default False
        Keep the processes from pass to pass, until `close` or the end of the loader.
    timeout : float, optional
        Seconds to wait for a batch of a worker.

    Raises
    ------
    ArgumentError
        A batch size below one, a negative number of workers or batches ahead, or a sampler beside
        ``shuffle=True``.
    StructureError
        Something without a length, or without items by number.

    Notes
    -----
    While it is gone through: what an item raises is raised again where the batch is asked for, with
    a note that names the item and, of a worker, where it happened there; `LoaderError` if a worker
    dies. Threads and processes end with the loop, also by `break`, exceptions and Ctrl-C.

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
        workers: int = 0,
        prefetch: int | None = None,
        persistent_workers: bool = False,
        timeout: float | None = None,
    ) -> None:
        whole = hasattr(batch_size, "__index__") and not isinstance(batch_size, bool)
        if not whole or batch_size < 1:
            raise ArgumentError(
                f"DataLoader(batch_size={batch_size!r}): must be an integer, at "
                f"least one{at(user_line())}."
            )
        for word, given in (("workers", workers), ("prefetch", prefetch or 0)):
            if given < 0 or int(given) != given:
                raise ArgumentError(
                    f"DataLoader({word}={given}): must be an integer >= 0{at(user_line())}."
                )
        if shuffle and sampler is not None:
            raise ArgumentError(
                "DataLoader(shuffle=True, sampler=...): both define the order. Pass only one of "
                "them"
                f"{at(user_line())}."
            )
        self.dataset = as_dataset(dataset)
        if not hasattr(self.dataset, "__getitem__") or not hasattr(self.dataset, "__len__"):
            raise StructureError(
                f"DataLoader of a {type(self.dataset).__name__}: a dataset has a length and items "
                f"by number. Make a list of what comes one by one{at(user_line())}."
            )
        self.batch_size = int(batch_size)
        self.shuffle = bool(shuffle)
        self.rng = as_generator(rng)
        self.drop_last = drop_last
        self.collate = collate
        if sampler is None:
            sampler = (RandomSampler if shuffle else SequentialSampler)(self.dataset)
        self.sampler = sampler
        self.workers = int(workers)
        self.prefetch = (2 if workers else 0) if prefetch is None else int(prefetch)
        self.persistent_workers, self.timeout = persistent_workers, timeout
        self._number = 0  # passes begun
        self._latest: _Pass | None = None  # the one begun last, unless it has ended
        self._resumed: Mapping[str, Any] | None = None
        self._pool: Any = None

    def __len__(self) -> int:
        """The number of batches."""
        return self._count(len(self.sampler))

    def __repr__(self) -> str:
        order = ", shuffled" if self.shuffle else ""
        more = f", {self.workers} workers" if self.workers else ""
        batches = f"{len(self)} batches of {self.batch_size}"
        return f"DataLoader({batches}{order}{more}, of {self.dataset!r})"

    # ---- going through ---------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        mine = self._begun()
        seed: Seed = (digest(mine.before), mine.number) if is_random(self.dataset) else ()
        count = self._count(len(mine.order))
        batches = self._batches(Plan(mine.order, self.batch_size, count, seed), mine.done)
        try:
            for batch in batches:
                mine.done += 1
                yield batch
        finally:
            batches.close()
        if self._latest is mine:
            self._latest = None

    def _begun(self) -> _Pass:
        """A new pass, or the rest of one that was loaded."""
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            put_state(self.rng, resumed["order_rng"])
            self._number = resumed["pass"]
        before = state_of(self.rng)
        if resumed is not None and resumed["order"] is not None:
            order = np.asarray(resumed["order"])
        elif isinstance(self.sampler, Sampler):
            order = np.asarray(self.sampler.order(self.rng))
        else:
            order = np.asarray(list(self.sampler), np.int64)
        if resumed is not None:
            put_state(self.rng, resumed["rng"])
        done = 0 if resumed is None else int(resumed["batch"])
        self._latest = _Pass(self._number, before, order, done)
        self._number += 1
        return self._latest

    def _count(self, items: int) -> int:
        full, rest = divmod(items, self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)

    def _batches(self, plan: Plan, first: int) -> Generator[Any, None, None]:
        if self.workers and first < plan.total:
            return self._by_workers(plan, first)
        here = (
            collated(self.dataset, plan, number, self.collate)
            for number in range(first, plan.total)
        )
        return ahead(here, self.prefetch) if self.prefetch else here

    def _by_workers(self, plan: Plan, first: int) -> Generator[Any, None, None]:
        kept = self._pool if self.persistent_workers else None
        pool = kept
        if pool is None or pool.is_busy or not pool.processes:
            most = self.workers if self.persistent_workers else plan.total - first
            pool = _workers.Workers(self.dataset, self.collate, min(self.workers, most))
            if self.persistent_workers and (kept is None or not kept.processes):
                self._pool = pool
                weakref.finalize(self, pool.close)
        try:
            yield from pool.batches(plan, first, max(1, self.prefetch), self.timeout)
        finally:
            if pool is not self._pool:
                pool.close()

    def close(self) -> None:
        """End worker processes that were kept; the next pass starts them again."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    # ---- where it stands -------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Where it stands: after the batches handed out so far of the pass begun last.

        Numbers, words and arrays, for `wengert.save`.
        """
        if self._resumed is not None:
            return dict(self._resumed)
        now, mine = state_of(self.rng), self._latest
        state = {"length": len(self.sampler), "batch_size": self.batch_size, "rng": now}
        if mine is None:
            return {**state, "pass": self._number, "batch": None}
        order = None if isinstance(self.sampler, Sampler) else mine.order
        return {
            **state,
            "pass": mine.number,
            "batch": mine.done,
            "order": order,
            "order_rng": mine.before,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Stand where another loader of the same dataset stood: the next pass goes on from there.

        Raises
        ------
        StructureError
            It is no state of a loader.
        FileError
            Its generator is of another kind.
        """
        if missing := {"length", "batch_size", "rng", "pass", "batch"} - set(state):
            raise StructureError(
                f"DataLoader.load_state_dict: the state has no {sorted(missing)}. Give what "
                f"state_dict() of a loader gave{at(user_line())}."
            )
        mine = len(self.sampler), self.batch_size
        other = state["length"], state["batch_size"]
        if mine != other:
            raise StructureError(
                f"DataLoader.load_state_dict: the state is of {other[0]} samples in batches of "
                f"{other[1]}, this has {mine[0]} in batches of {mine[1]}. Go on with the same data "
                f"and batch size{at(user_line())}."
            )
        put_state(self.rng, state["rng"])
        self._number, self._latest = int(state["pass"]), None
        self._resumed = None if state["batch"] is None else dict(state)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None, "_latest": None, "_resumed": self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.load_state_dict(state["_resumed"])
