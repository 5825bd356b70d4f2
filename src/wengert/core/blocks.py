"""Blocks: what holds in a block of the program, and stops to hold in whatever order blocks end.

A block in a generator or coroutine may end late, after blocks that were opened later, or in another
context or thread than it began in.  So ending one does not put a former value back
(`Token.reset`, which fails or revives what has ended): it marks the block as ended, and whoever
looks sees the innermost one that has not.

    Block    one of them: its value, the block around it, whether it has ended
    Blocks   all of one sort, as a context variable: threads and tasks see their own
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Block(Generic[T]):
    """A block that holds a value until it is ended.

    ``block.end(True)`` ends it: a method of C, so it happens or it does not when somebody presses
    Ctrl-C, and it can be the callback of a weak reference. `Blocks.forget` then lets go of its
    value.
    """

    __slots__ = ("end", "ends", "outer", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.outer: Block[T] | None = None
        self.ends: list[Any] = []
        self.end: Callable[[Any], None] = self.ends.append


class Blocks(Generic[T]):
    """Nested blocks of one sort.

    Parameters
    ----------
    name : str
        Of the context variable.
    default : object
        What holds outside of all blocks.

    Examples
    --------
    >>> from wengert.core.blocks import Block, Blocks
    >>> colours = Blocks("colours", "none")
    >>> red, blue = Block("red"), Block("blue")
    >>> colours.open(red)
    >>> colours.open(blue)
    >>> red.end(True)
    >>> colours.get()
    'blue'
    >>> blue.end(True)
    >>> colours.get()
    'none'
    """

    __slots__ = ("_default", "_innermost", "_look")

    def __init__(self, name: str, default: T) -> None:
        self._innermost: ContextVar[Block[T] | None] = ContextVar(name, default=None)
        self._look = self._innermost.get
        self._default = default

    def get(self) -> T:
        """What holds here."""
        block = self._look()
        if block is None:
            return self._default
        if not block.ends:
            return block.value
        found = self.innermost()
        return self._default if found is None else found.value

    def innermost(self) -> Block[T] | None:
        """The innermost open block, if any."""
        block = self._look()
        while block is not None and block.ends:
            block = block.outer
        return block

    def open(self, block: Block[T]) -> None:
        """Let a block begin here."""
        block.outer = self.innermost()
        self._innermost.set(block)

    def forget(self) -> None:
        """Let go of blocks that have ended."""
        self._innermost.set(self.innermost())
