"""Loop rows: the elements of a list to which a traced loop has appended.

Such a list has as many elements as in Python.  Each is a row of an array that the loop computes,
and is read from the array where it is used; a list of all rows is used as the array itself.

RowBlock    the array, or a part of it
LoopRow     the base of tensors that are rows; `register_row` sets the class
rows_of     the rows of a block, as elements of a list
source_of   the array that a row is of, or was of until it was modified
row_of_array   the node of a row for another node of that array
whole       the array of a list of rows
columns     the arrays of a list of tuples of rows
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from .handle import AMBIGUOUS, Handle, ambiguous_node, shape_of, wrap
from .node import Node
from .op import lookup
from .recording import current_trace
from .spec import Spec
from .tracing import record

R = TypeVar("R", bound="type[LoopRow]")


class RowBlock:
    """Rows of one array along its first axis.

    Parameters
    ----------
    length : int
        The number of rows.
    source : Tensor or (RowBlock, int)
        The array, or a block and the index of its row that is the array.
    weak : bool
        Whether rows combine with arrays as Python numbers do.
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

    @property
    def root(self) -> Any:
        """The array that a loop has computed, of which this block is a part."""
        return self.source[0].root if isinstance(self.source, tuple) else self.source

    @property
    def depth(self) -> int:
        """The number of axes of that array that a row does not have."""
        return 1 + self.source[0].depth if isinstance(self.source, tuple) else 1

    def row(self, index: int) -> Node:
        """The node of a row."""
        root: Node = self.root.node
        if root.op is AMBIGUOUS:  # an error only if the row is used
            return ambiguous_node(Spec(root.spec.shape[self.depth :], root.spec.dtype))
        node: Node = self.array[index].node
        if self.weak:
            node = record(lookup("cast"), [node], {"dtype": node.spec.dtype}, weak=True).node
        return node


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
    """The node of a row; each trace that uses the row makes one."""
    slots: Any = row  # the registered class has the slots
    cached: tuple[Any, Node] | None = slots._made
    session, block = current_trace(), slots._block
    if block is not None and (
        cached is None or cached[0] is not session or block.root.node.op is AMBIGUOUS
    ):
        node: Node = block.row(slots._index)
        slots._made = None if node.op is AMBIGUOUS else (session, node)
        return node
    assert cached is not None
    return cached[1]


def set_node(row: LoopRow, node: Node) -> None:
    """Give a row another node; from then on it is an ordinary tensor.

    With the node that it had as a row it becomes one again, as when a traced block is left.
    """
    slots: Any = row
    block, session = slots._block, current_trace()
    before = slots._made[0] if block is None else (block, node_of(row))
    if node is before[1]:
        slots._block, slots._made = before[0], (_LEFT, node)
        return
    inner = session if session is not None and session.isolated else None
    if block is not None and inner is not None and block.root.node.serial < inner.since:
        inner.written.setdefault(row, before[1])  # which was made in the session
    slots._block, slots._made = None, (before, node)


_LEFT = object()  # in the place of the session that has made a node: it has been left


def source_of(row: LoopRow) -> Any:
    """The array that a row is of, or was of until it was modified."""
    slots: Any = row
    block = slots._made[0][0] if slots._block is None else slots._block
    return block.root


def row_of_array(row: LoopRow, node: Node) -> Node | None:
    """The node of a row if the array that it is of had this node; None if it has been modified."""
    slots: Any = row
    block = slots._block
    if block is None:
        return None
    root, before = block.root, block.root.node
    root.node = node
    try:
        found: Node = block.row(slots._index)
        return found
    finally:
        root.node = before


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
    if (parts := columns(values)) is not None:
        same = len({shape_of(part)[1:] for part in parts}) == 1
        return lookup("stack")(*parts, axis=1) if same else None
    runs = _runs(values)
    if not any(isinstance(r, _RowRange) for r in runs):
        return None
    pieces = [_piece(r) for r in runs]
    if any(p is None for p in pieces):
        return None
    if len(pieces) == 1:
        return pieces[0]
    if len({shape_of(p)[1:] for p in pieces}) > 1:
        return None
    return lookup("concatenate")(*pieces, axis=0)


def _begins_like_rows(values: Sequence[Any]) -> bool:
    """Whether a list may contain rows, by its first and last elements."""
    if not values:
        return False
    return any(
        isinstance(v, LoopRow)
        or (isinstance(v, list | tuple) and v and isinstance(v[0], LoopRow | list | tuple))
        for v in (values[0], values[-1])
    )


def columns(values: Sequence[Any]) -> list[Any] | None:
    """The arrays of a list of tuples, or lists, of rows: one for each position; None for others.

    The first and last tuples may have other elements than rows, as in `whole`.
    """
    if len(values) < 2 or not _begins_like_rows(values):
        return None
    first, last = values[0], values[-1]
    if any(type(v) not in (tuple, list) for v in (first, last)):
        return None
    count = len(first)
    if any(type(v) is not type(first) or len(v) != count for v in values):
        return None
    if count > 1 and any(_of_one_block(v) for v in (first, last)):
        return None  # rows of one block, which follow one another
    found = [whole(list(column)) for column in zip(*values, strict=True)]
    return None if not found or any(column is None for column in found) else found


def _of_one_block(values: Sequence[Any]) -> bool:
    """Whether the first and the last element are rows of one block."""
    block = _row_index(values[0])[0]
    return block is not None and block is _row_index(values[-1])[0]


class _RowRange(NamedTuple):
    """Rows of a block that follow one another."""

    block: RowBlock
    first: int
    end: int


def _runs(values: Sequence[Any]) -> list[Any]:
    """Runs of rows, and other elements."""
    runs: list[Any] = []
    for value in values:
        block, index = _row_index(value)
        if block is None:
            runs.append(value)
        elif runs and type(runs[-1]) is _RowRange and runs[-1][::2] == (block, index):
            runs[-1] = runs[-1]._replace(end=index + 1)
        else:
            runs.append(_RowRange(block, index, index + 1))
    return runs


def _row_index(value: object) -> tuple[RowBlock | None, int]:
    """The block and the index of a row, or of a list of all rows of a row of a block."""
    if isinstance(value, LoopRow):
        return value._block, value._index if value._block is not None else 0
    if isinstance(value, list) and value and isinstance(value[0], LoopRow):
        block = value[0]._block
        if block is not None and isinstance(block.source, tuple) and len(value) == block.length:
            rows = [_row_index(v) for v in value]
            if all(b is block and k == i for i, (b, k) in enumerate(rows)):
                parent: tuple[RowBlock, int] = block.source
                return parent
    return None, 0


def _piece(run: Any) -> Any:
    """A run, or another element, as an array with the rows along its first axis."""
    if type(run) is _RowRange:
        array = run.block.array
        is_all = (run.first, run.end) == (0, run.block.length)
        return wrap(array.node) if is_all else array[run.first : run.end]
    if isinstance(run, list | tuple):
        together = whole(run)
        if together is None and len({shape_of(x) for x in run}) != 1:
            return None
        run = lookup("stack")(*run, axis=0) if together is None else together
    return lookup("stack")(run, axis=0)
