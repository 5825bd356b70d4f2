"""Batches made in other processes.

    Workers     the processes of a loader; `batches` gives what they make, in order
    serve       what runs in each of them

Processes are spawned, not forked: threads of BLAS and of native code do not survive a fork.  So the
dataset and its functions are pickled, once, and the program's main module is imported again by each
(hence ``if __name__ == "__main__":``).

Batch i is made by worker i modulo their number, so the order is that of one process.  A worker is
told numbers of batches only, and how many may wait for it is limited, so neither side can block
the other.  It ends when its pipe closes: when the loop ends, is left or fails, and when the parent
dies, however it does.  Ctrl-C is for the parent; workers do not hear it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Generator
from typing import Any

from wengert.errors import LoaderError, StructureError, at, user_line

from .collate import Plan, collated

_PATIENCE = 1.0  # seconds for a worker to end by itself

__all__ = ["Workers", "serve"]


class Workers:
    """Processes that make batches of a dataset.

    Parameters
    ----------
    dataset : Dataset or sequence
    collate : callable or None
    count : int
        How many.

    Raises
    ------
    StructureError
        The dataset, or what it is made of, cannot be pickled.
    """

    def __init__(self, dataset: Any, collate: Callable[[list[Any]], Any] | None, count: int):
        try:
            what = pickle.dumps((dataset, collate), protocol=5)
        except Exception as error:
            raise StructureError(
                f"workers={count}: the dataset {type(dataset).__name__} cannot be sent to other "
                f"processes ({type(error).__name__}: {error}). Its functions have to be defined by "
                "`def` in a module, and what it holds has to pickle; or use workers=0"
                f"{at(user_line())}."
            ) from error
        context = multiprocessing.get_context("spawn")
        self.processes: list[Any] = []
        self.pipes: list[Any] = []
        self.is_busy = False
        self._parent = os.getpid()
        try:
            for number in range(count):
                mine, theirs = context.Pipe()
                process = context.Process(
                    target=serve, args=(theirs, what), name=f"wengert-worker-{number}", daemon=True
                )
                self.pipes.append(mine)
                process.start()
                self.processes.append(process)
                theirs.close()
        except BaseException:
            self.close()
            raise

    def batches(
        self, plan: Plan, first: int, ahead: int, timeout: float | None
    ) -> Generator[Any, None, None]:
        """Batches of a plan, in order.

        Parameters
        ----------
        plan : Plan
        first : int
            The number of the batch to begin with.
        ahead : int
            How many each worker makes ahead.
        timeout : float or None
            Seconds to wait for a batch.

        Raises
        ------
        LoaderError
            A worker process ended unexpectedly, or exceeded the timeout.
        Exception
            What a dataset raised in a worker, with a note that says where.
        """
        self.is_busy = True
        count = len(self.pipes)
        try:
            for worker in range(count):
                self._tell(worker, plan, first)
            for batch in range(first, min(plan.total, first + ahead * count)):
                self._tell(batch % count, batch, batch)
            for batch in range(first, plan.total):
                made = self._receive(batch % count, batch, timeout)
                if batch + ahead * count < plan.total:
                    self._tell(batch % count, batch + ahead * count, batch)
                yield made
            self.is_busy = False
        finally:
            if self.is_busy:  # the loop was left: what is on its way would disturb the next one
                self.close()

    def _tell(self, worker: int, what: Any, batch: int) -> None:
        try:
            self.pipes[worker].send(what)
        except OSError as error:
            raise self._died(worker, batch) from error

    def _receive(self, worker: int, batch: int, timeout: float | None) -> Any:
        pipe = self.pipes[worker]
        try:
            if timeout is not None and not pipe.poll(timeout):
                raise LoaderError(
                    f"worker {worker} has not made batch {batch} within {timeout} seconds. Give a "
                    f"longer timeout=, or look at what its items wait for{at(user_line())}."
                )
            is_good, *found = pipe.recv()
        except (EOFError, OSError) as error:
            raise self._died(worker, batch) from error
        if is_good:
            return found[0]
        raise _rebuilt(worker, batch, *found)

    def _died(self, worker: int, batch: int) -> LoaderError:
        process = self.processes[worker]
        process.join(_PATIENCE)
        code = process.exitcode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return LoaderError(
            f"worker {worker} ended {how} before it made batch {batch}. If the program has no "
            "`if __name__ == '__main__':` around what it does, add that; else look at what the "
            f"worker printed, or use workers=0{at(user_line())}."
        )

    def close(self) -> None:
        """End all workers; those that do not end by themselves are stopped."""
        if os.getpid() != self._parent:
            return
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.close()
        until = time.monotonic() + _PATIENCE
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()))
        for stop in ("terminate", "kill"):
            waiting = [p for p in self.processes if p.is_alive()]
            for process in waiting:
                getattr(process, stop)()
            for process in waiting:
                process.join(_PATIENCE)
        for process in self.processes:
            with contextlib.suppress(ValueError):  # one that could not be stopped
                process.close()
        self.processes, self.pipes = [], []


def _rebuilt(
    worker: int, batch: int, pickled: bytes | None, summary: str, text: str
) -> BaseException:
    """What was raised in a worker, with a note that says where."""
    error: BaseException
    try:
        if pickled is None:
            raise pickle.UnpicklingError
        error = pickle.loads(pickled)  # made by our own worker
    except Exception:  # of a class that does not pickle
        error = LoaderError(f"worker {worker} failed making batch {batch}: {summary}")
    error.add_note(f"Raised by worker {worker}, making batch {batch}; there:\n{text}")
    return error


def serve(pipe: Any, what: bytes) -> None:
    """Make batches until the pipe closes.

    Parameters
    ----------
    pipe : multiprocessing.Connection
        First the plan of a pass, then numbers of its batches; what they are goes back.
    what : bytes
        The dataset and how it is collated, pickled by the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    dataset, collate = pickle.loads(what)
    plan: Any = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            order = pipe.recv()
            if isinstance(order, Plan):
                plan = order
                continue
            try:
                made = collated(dataset, plan, order, collate)
                answer = pickle.dumps((True, made), protocol=5)
            except Exception as error:
                text = traceback.format_exc()
                answer = pickle.dumps((False, _pickled(error), repr(error), text))
            pipe.send_bytes(answer)


def _pickled(error: Exception) -> bytes | None:
    """An exception as bytes, if it can be made again of them."""
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:
        return None
    return data
