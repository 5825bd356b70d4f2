"""Loop rows: the elements of a list to which a traced loop has appended.

Such a list has as many elements as in Python.  An element is a row of an array that the loop
computes, and is taken from it where it is used; a list of all rows is used as the array itself.

RowBlock    the array, or a part of it
LoopRow     the mixin of tensors that are rows; `register_row` names the class
rows_of     the rows of a block, for a list
whole       the array of a list of rows
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from .handle import Handle, shape_of, wrap
from .node import Node
from .op import lookup
from .recording import current_trace
from .tracing import record

R = TypeVar("R", bound="type[LoopRow]")


class RowBlock:
    """Rows of one array along its first axis.

    Parameters
    ----------
    length : int
        The number of rows.
    source : Tensor or (RowBlock, int)
        The array, or a block and the number of its row that is the array.
    weak : bool
        Whether rows combine with arrays as numbers of Python.
    """

    __slots__ = ("length", "source", "weak")

    def __init__(self, length: int, source: Any, weak: bool = False) -> None:
        self.length, self.source, self.weak = length, source, weak

    @property
    def array(self) -> Any:
        """The array."""
        if isinstance(self.source, tuple):
            block, index = self.source
            return block.array[index]
        return self.source

    def row(self, index: int) -> Node:
        """The node of a row."""
        node: Node = self.array[index].node
        return (
            record(lookup("cast"), [node], {"dtype": node.spec.dtype}, weak=True).node
            if (self.weak)
            else node
        )


class LoopRow(Handle):
    """A tensor that is a row of a block until it is modified."""

    __slots__ = ()

    _block: RowBlock | None
    _index: int
    _made: tuple[Any, Node] | None


class _RowClass:
    row: type[LoopRow] = LoopRow


def register_row(cls: R) -> R:
    """Make `cls` the class of rows (a class decorator)."""
    _RowClass.row = cls
    return cls


def node_of(row: LoopRow) -> Node:
    """The node of a row, made in the trace in which it is first used."""
    own: Any = row  # slots are those of the class that is registered
    made: tuple[Any, Node] | None = own._made
    session = current_trace()
    if made is None or (own._block is not None and made[0] is not session):
        made = own._made = session, own._block.row(own._index)
    return made[1]


def set_node(row: LoopRow, node: Node) -> None:
    """Give a row another node: it is a tensor of its own from then on."""
    own: Any = row
    own._block, own._made = None, (None, node)


def rows_of(block: RowBlock) -> Iterator[Any]:
    """The rows of a block."""
    for k in range(block.length):
        row: Any = object.__new__(_RowClass.row)
        row._block, row._index, row._made = block, k, None
        yield row


def whole(values: Sequence[Any]) -> Any:
    """The array of a list of rows, or of lists of rows; None for another list.

    Rows must follow one another; other elements may precede or follow them.
    """
    if not isinstance(values, list | tuple) or not _begins_like_rows(values):
        return None
    if (columns := _columns(values)) is not None:
        return columns
    runs = _runs(values)
    if not any(isinstance(r, tuple) for r in runs):
        return None
    pieces = [_piece(r) for r in runs]
    if len(pieces) == 1:
        return pieces[0]
    if len({shape_of(p)[1:] for p in pieces}) > 1:
        return None
    return lookup("concatenate")(*pieces, axis=0)


def _begins_like_rows(values: Sequence[Any]) -> bool:
    """Whether there may be rows in a list: they are at one of its ends."""
    if not values:
        return False
    return any(
        isinstance(v, LoopRow)
        or (isinstance(v, list | tuple) and v and isinstance(v[0], LoopRow | list | tuple))
        for v in (values[0], values[-1])
    )


def _columns(values: Sequence[Any]) -> Any:
    """The array of a list of tuples, each with one row of several blocks; None for others."""
    if len(values) < 2 or any(type(v) not in (tuple, list) for v in (values[0], values[-1])):
        return None
    count = len(values[0])
    if any(type(v) is not type(values[0]) or len(v) != count for v in values):
        return None
    if count and _place(values[0][0])[0] is _place(values[0][-1])[0] and count > 1:
        return None  # rows of one block, which follow one another
    found = [whole(list(column)) for column in zip(*values, strict=True)]
    if not found or any(f is None for f in found):
        return None
    return lookup("stack")(*found, axis=1)


def _runs(values: Sequence[Any]) -> list[Any]:
    """Runs of rows, as (block, first, last + 1), and other elements."""
    runs: list[Any] = []
    for value in values:
        block, index = _place(value)
        if block is None:
            runs.append(value)
        elif runs and type(runs[-1]) is tuple and _follows(runs[-1], block, index):
            runs[-1] = runs[-1][0], runs[-1][1], index + 1
        else:
            runs.append((block, index, index + 1))
    return runs


def _follows(run: tuple[RowBlock, int, int], block: RowBlock, index: int) -> bool:
    return run[0] is block and run[2] == index


def _place(value: object) -> tuple[RowBlock | None, int]:
    """The block and the number of a row, or of a list of all rows of a row of a block."""
    if isinstance(value, LoopRow):
        return value._block, value._index if value._block is not None else 0
    if isinstance(value, list) and value and isinstance(value[0], LoopRow):
        block = value[0]._block
        if block is not None and isinstance(block.source, tuple) and len(value) == block.length:
            places = [_place(v) for v in value]
            if all(b is block and k == i for i, (b, k) in enumerate(places)):
                parent: tuple[RowBlock, int] = block.source
                return parent
    return None, 0


def _piece(run: Any) -> Any:
    if type(run) is not tuple:
        run = run if isinstance(run, Handle) else whole(run) if isinstance(run, list) else run
        if not isinstance(run, Handle):
            run = lookup("stack")(*run, axis=0) if isinstance(run, list) else run
        return lookup("stack")(run, axis=0)
    block, first, end = run
    array = block.array
    return wrap(array.node) if (first, end) == (0, block.length) else array[first:end]
