"""Sums over partitions on one machine: serial, by an executor of concurrent.futures, or by joblib.

contributions_of    the contributions of all partitions, in their order
runs_here           whether an executor computes in this process, where nothing is pickled
is_joblib           whether an executor is one of joblib, which is not imported
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

from wengert.errors import ArgumentError, CommunicationError, at, user_line

from .agreement import Packed, packed
from .partition_programs import PartitionProgram, run, run_packed
from .tree_sums import Terms

_TASKS_PER_WORKER = 4  # that are submitted and not yet added: their results are in memory


def contributions_of(
    executor: Any,
    partitions: Sequence[Any],
    program: PartitionProgram | Callable[[], Packed],
    operands: Sequence[Any],
    pack: Callable[[], Packed],
) -> Iterator[Terms]:
    """The contributions of all partitions, in their order.

    Parameters
    ----------
    executor : None, concurrent.futures.Executor or joblib.Parallel
    partitions : sequence
    program : PartitionProgram, or callable that returns a packed one
        A `PartitionProgram` if it runs in this process.
    operands : sequence of arrays
    pack : callable
        Returns the packed operands.
    """
    count = len(partitions)
    if isinstance(program, PartitionProgram):
        here = program

        def task(partition: Any, index: int) -> tuple[Any, ...]:
            return run, (lambda: here), (lambda: operands), partition, index, count

    else:
        sent = program(), pack()

        def task(partition: Any, index: int) -> tuple[Any, ...]:
            if callable(partition):  # pools use pickle, which has no functions in functions
                partition = packed(partition, f"partition {index}")
            return run_packed, *sent, partition, index, count

    tasks = (task(partition, index) for index, partition in enumerate(partitions))
    if executor is None:
        return (function(*arguments) for function, *arguments in tasks)
    if is_joblib(executor):
        return iter(executor([(function, tuple(args), {}) for function, *args in tasks]))
    if isinstance(executor, Executor):
        return _by_executor(executor, tasks)
    raise ArgumentError(
        f"executor is a {type(executor).__name__}. Give an executor of concurrent.futures, a "
        f"joblib.Parallel, a distributed.Client, or None{at(user_line())}."
    )


def runs_here(executor: Any) -> bool:
    """Whether partitions are computed in this process."""
    return executor is None or isinstance(executor, ThreadPoolExecutor)


def is_joblib(executor: Any) -> bool:
    """Whether an executor is a joblib.Parallel."""
    return type(executor).__module__.partition(".")[0] == "joblib" and callable(executor)


def _by_executor(executor: Executor, tasks: Iterator[tuple[Any, ...]]) -> Iterator[Terms]:
    """The results in the order of the tasks, of which a few for each worker are submitted."""
    most = _TASKS_PER_WORKER * (getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
    waiting: deque[Future[Terms]] = deque()
    index = 0
    try:
        for task in tasks:
            waiting.append(executor.submit(*task))
            if len(waiting) >= most:
                yield waiting[0].result()
                waiting.popleft()
                index += 1
        while waiting:
            yield waiting[0].result()
            waiting.popleft()
            index += 1
    except BrokenExecutor as error:
        raise CommunicationError(
            f"a process of the executor ended while partition {index} or one of the "
            f"{most - 1} after it was computed. It may have had too little memory; an executor "
            f"cannot be used again after that, and a distributed.Client repeats lost work{_here()}."
        ) from error
    finally:  # after an error, an interrupt, or if the caller reads no more
        for future in waiting:
            future.cancel()


def _here() -> str:
    return at(user_line())
