"""Batches made ahead in a background thread.

    ahead    an iterator's batches, made by a thread while the last ones are used

The thread ends with the loop over its batches: when there are no more, when the loop is left by
`break` or an exception, and when it is interrupted.  It is a daemon, so a program never waits for
one that was forgotten.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from typing import Any

_PATIENCE = 5.0  # seconds for the batch that is being made when the loop is left


class _Shelf:
    """Batches that are ready, at most so many."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.ready: deque[Any] = deque()
        self.changed = threading.Condition()
        self.closed = False  # no more are needed
        self.ended = False  # there are no more
        self.error: BaseException | None = None

    def put(self, batch: Any) -> bool:
        """Add a batch when the queue has space; False if it is closed."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or len(self.ready) < self.room)
            if not self.closed:
                self.ready.append(batch)
                self.changed.notify_all()
            return not self.closed

    def end(self, error: BaseException | None) -> None:
        """Say that there are no more."""
        with self.changed:
            self.ended, self.error = True, error
            self.changed.notify_all()

    def take(self) -> list[Any]:
        """The next batch, in a list; an empty list at the end."""
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
        """Say that no more are wanted."""
        with self.changed:
            self.closed = True
            self.ready.clear()
            self.changed.notify_all()


def ahead(batches: Iterator[Any], count: int) -> Generator[Any, None, None]:
    """Batches of an iterator, made by a thread.

    Parameters
    ----------
    batches : iterator
        Gone through in the thread only.
    count : int
        How many are ready at most.
    """
    shelf = _Shelf(count)

    def work() -> None:
        error: BaseException | None = None
        try:
            for batch in batches:
                if not shelf.put(batch):
                    break
        except BaseException as raised:
            error = raised
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()
            shelf.end(error)

    thread = threading.Thread(target=work, name="wengert-prefetch", daemon=True)
    thread.start()
    try:
        while found := shelf.take():
            yield found[0]
    finally:
        shelf.close()
        thread.join(_PATIENCE)
