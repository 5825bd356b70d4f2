"""Blocks: what holds in a block of the program, and stops to hold in whatever order blocks end.

A block in a generator or coroutine may end late, after blocks that were opened later, or in another
context or thread than it began in.  So ending one does not put a former value back
(`Token.reset`, which fails or revives what has ended): it marks the block as ended, and whoever
looks sees the innermost one that has not.

    Block    one of them: its value, the block around it, whether it is open
    Blocks   all of one sort, as a context variable: threads and tasks see their own
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")


class Block(Generic[T]):
    """A block that holds a value while it is open.

    Whoever ends it says ``block.is_open = False`` first of all: no call, so Ctrl-C cannot prevent
    it. `Blocks.forget` then lets go of its value.
    """

    __slots__ = ("is_open", "outer", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.outer: Block[T] | None = None
        self.is_open = True


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
    >>> red.is_open = False
    >>> colours.get()
    'blue'
    >>> blue.is_open = False
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
        if block.is_open:
            return block.value
        found = self.innermost()
        return self._default if found is None else found.value

    def innermost(self) -> Block[T] | None:
        """The innermost open block, if any."""
        block = self._look()
        while block is not None and not block.is_open:
            block = block.outer
        return block

    def open(self, block: Block[T]) -> None:
        """Let a block begin here."""
        block.outer = self.innermost()
        self._innermost.set(block)

    def forget(self) -> None:
        """Let go of blocks that have ended."""
        self._innermost.set(self.innermost())
