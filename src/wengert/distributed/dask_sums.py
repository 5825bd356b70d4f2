"""Sums over partitions by Dask; the only file that imports dask and distributed.

A sum is one graph of tasks: the pickled program and the pickled parameters, each with a key that is
a digest of its content; one task for each partition, numbered; and a tree of additions that is
determined by the number of partitions.  Everything in the graph can be computed again, so the
scheduler repeats what a lost worker had: scattered data could not be repeated.

    partitions_of    Dask collections as delayed partitions
    is_dask          whether an object is a Dask collection, or a sequence with delayed objects
    client_of        the client that computes a sum, if there is one
    computed         the sum
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from typing import Any

from wengert.errors import ArgumentError, at, user_line

from .agreement import Packed
from .partition_programs import run_packed
from .tree_sums import Terms, groups, plus

_MODULES = frozenset(("dask", "distributed", "dask_expr"))
_PREFIX = "wengert-partition"


def _of_dask(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] in _MODULES


def is_dask(partitions: Any) -> bool:
    """Whether partitions are Dask's: a collection, or a sequence of collections or futures."""
    if _of_dask(partitions):
        return True
    return isinstance(partitions, list | tuple) and any(map(_of_dask, partitions))


def is_client(executor: Any) -> bool:
    """Whether an executor is a distributed.Client."""
    return type(executor).__module__.partition(".")[0] == "distributed" and hasattr(
        executor, "scheduler_info"
    )


def _dask() -> Any:
    try:
        import dask
        import dask.delayed
    except ImportError as error:
        raise ImportError(
            f"sums over Dask collections need Dask: pip install 'wengert[dask]' ({error})."
        ) from error
    return dask


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"sums by a Dask client need distributed: pip install 'wengert[dask]' ({error})."
        ) from error
    return distributed


# ---- partitions ----------------------------------------------------------------------------------


def partitions_of(partitions: Any) -> tuple[list[Any], bool]:
    """The partitions as a list of delayed objects or of tuples of them.

    Returns
    -------
    partitions : list
    is_bag : bool
        Whether each is a list of items.
    """
    _dask()
    if isinstance(partitions, tuple) and all(map(_is_collection, partitions)):
        return _zipped(partitions), False
    if not _of_dask(partitions):
        return list(partitions), False
    if _is_collection(partitions):
        return _delayed(partitions), type(partitions).__module__.startswith("dask.bag")
    raise ArgumentError(
        f"partitions is one {type(partitions).__name__}. Give a list of them, one for each "
        f"partition{at(user_line())}."
    )


def _is_collection(x: Any) -> bool:
    return _of_dask(x) and hasattr(type(x), "to_delayed")  # a Delayed has any attribute


def _delayed(collection: Any, chunks: Any = None) -> list[Any]:
    """The partitions of a collection; those of an array are its chunks along the first axis."""
    if not hasattr(collection, "chunks"):
        return list(collection.to_delayed())
    if collection.ndim == 0:
        raise ArgumentError(
            f"the partitions of a Dask array are its chunks along the first axis, and this one has "
            f"no axes{at(user_line())}."
        )
    whole = {k: -1 for k in range(1, collection.ndim)}
    if chunks is not None and collection.chunks[0] != chunks:
        if collection.shape[0] != sum(chunks):
            raise ArgumentError(
                f"Dask arrays that are partitioned together have {sum(chunks)} and "
                f"{collection.shape[0]} entries along the first axis. Give arrays of the same "
                f"length{at(user_line())}."
            )
        whole[0] = chunks
    if any(len(c) > 1 for c in collection.chunks[1:]) or 0 in whole:
        collection = collection.rechunk(whole)
    return list(collection.to_delayed().ravel())


def _zipped(collections: Sequence[Any]) -> list[Any]:
    """The partitions of several collections together, as tuples."""
    arrays = [c for c in collections if hasattr(c, "chunks") and c.ndim]
    chunks = arrays[0].chunks[0] if arrays else None
    known = chunks is not None and all(n == n for n in chunks)
    columns = [_delayed(c, chunks if known and hasattr(c, "chunks") else None) for c in collections]
    counts = [len(column) for column in columns]
    if len(set(counts)) > 1:
        raise ArgumentError(
            f"Dask collections that are partitioned together have {counts} partitions. Give them "
            f"the same partitions (rechunk, repartition){at(user_line())}."
        )
    return list(zip(*columns, strict=True))


# ---- computation ---------------------------------------------------------------------------------


def client_of(executor: Any) -> Any:
    """The client that computes a sum; None for the scheduler that Dask is configured with."""
    if executor is not None:
        if executor.asynchronous:
            raise ArgumentError(
                f"the client is asynchronous, and a sum is awaited by its caller. Give a client "
                f"that was made without asynchronous=True{at(user_line())}."
            )
        return executor
    with contextlib.suppress(ImportError, ValueError):  # there is no client
        return _distributed().default_client()
    return None


def _unchanged(x: Packed) -> Packed:
    return x


def computed(
    partitions: Sequence[Any],
    is_bag: bool,
    program: Packed,
    operands: Packed,
    client: Any,
    split_every: int,
) -> Terms:
    """The sum over partitions.

    Raises
    ------
    PartitionError
        The function raised an error.
    distributed.KilledWorker
        Workers ended several times while they computed a partition; a note names it.
    """
    dask = _dask()
    delayed = dask.delayed
    token, count = uuid.uuid4().hex, len(partitions)

    def held(x: Packed, name: str) -> Any:
        task = delayed(_unchanged, pure=False, traverse=False)
        return task(x, dask_key_name=f"wengert-{name}-{x.key}")

    sent = held(program, "program"), held(operands, "operands")
    one = delayed(run_packed, pure=False)
    level: list[Any] = [
        one(*sent, part, k, count, is_bag, dask_key_name=f"{_PREFIX}-{token}-{k}")
        for k, part in enumerate(partitions)
    ]
    added = delayed(plus, pure=False)
    depth = 0
    while len(level) > 1:
        level = [
            added(list(group), dask_key_name=f"wengert-sum-{token}-{depth}-{k}")
            for k, group in enumerate(groups(level, split_every))
        ]
        depth += 1
    # Parameters may be large; they are sent once for each sum, as they have to be.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        if client is None:
            return dask.compute(level[0])[0]  # type: ignore[no-any-return]
        future = client.compute(level[0])
    try:
        return future.result()  # type: ignore[no-any-return]
    except BaseException as error:  # an interrupt too
        if isinstance(error, _distributed().KilledWorker):
            _note_partition(error, token, client, count)
        future.cancel()
        raise


def _note_partition(error: Any, token: str, client: Any, count: int) -> None:
    """Name the partitions in an error for workers that ended."""
    prefix = f"{_PREFIX}-{token}-"
    found = {str(error.task)}
    with contextlib.suppress(Exception):  # a scheduler may not run functions
        found |= set(client.run_on_scheduler(_failed_keys, prefix=prefix))
    numbers = sorted({int(k.removeprefix(prefix)) for k in found if k.startswith(prefix)})
    error.partitions = numbers
    if not numbers:
        return
    others = " or ".join(map(str, numbers))
    error.add_note(
        f"Workers ended each time while they had partition {others} of {count}"
        + (" (a worker has several partitions waiting)" if len(numbers) > 1 else "")
        + ". Its data may need more memory than a worker has, or the function ended the process."
    )


def _failed_keys(prefix: str, dask_scheduler: Any = None) -> list[str]:
    """The keys of failed tasks; runs in the scheduler."""
    tasks = dask_scheduler.tasks
    return [str(k) for k, task in tasks.items() if str(k).startswith(prefix) and task.exception]
