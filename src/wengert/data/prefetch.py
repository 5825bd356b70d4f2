"""Batches made in a background thread.

    prefetched    the batches of an iterator, made by a thread in advance

The thread ends with the loop over its batches: when there are no more, or when the loop is left by
`break`, an exception or an interrupt.  It is a daemon thread and does not delay the exit of the
interpreter.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from typing import Any

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
