"""What the iterations of a traced loop append to lists.

The body is traced once, so the values that it appends are collected, and stacked by the loop.
After the loop, the list gets as many elements as in Python, each a row of a stacked array
(core/loop_rows.py).  If a branch appends, or the loop may end early, their number is not known, and
the variable refers to a `FilledList` from then on (filled_lists.py).

append_       the statement ``out.append(value)``
Collecting    a context in which values that are appended to some lists are collected, or refused
Rows, MaskedRows   the values that an iteration appends to a list, as outputs of the loop
append_unknown     append a value of which it is not known whether it is appended

What the iterations of a loop append to lists, as outputs of its node.

The loop stacks the values.  If the number of iterations is not known, it carries arrays in which
each iteration stores its values, and whether there is one.

LoopAppends      the values that the iterations of a loop append to lists
AppendedArrays   arrays that they append, and the elements that come from them
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from wengert._engine.control_flow.closure_conversion import output
from wengert._engine.core.conversion_hook import is_immutable
from wengert._engine.core.handle import Handle, describe, shape_of, wrap
from wengert._engine.core.loop_rows import LoopRow, RowBlock, rows_of, whole
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.ops.indexing.template import IndexSlot

from ..state import NotTraceable, SharedVariables
from .filled_lists import FilledList, RowPiece, arrays_in_element, pieces_of
from .iterables import Items, size_or_value
from .loop_node import strongly_typed
from .values import MaybeUnbound, PartitionedValue, spec_of


class _OpenLists(threading.local):
    """For each block that is being traced, the values appended to lists, by id of the list.

    A string instead of values says why nothing may be appended.
    """

    stack: tuple[dict[int, list[Any] | str], ...] = ()


_open = _OpenLists()


def append_(target: list[Any], value: object) -> None:
    """The statement ``target.append(value)``, for a list that the function has created."""
    for lists_of_block in _open.stack[::-1]:
        collected = lists_of_block.get(id(target))
        if isinstance(collected, str):
            raise NotTraceable(collected)
        if collected is not None:
            collected.append(value)
            return
    target.append(value)


def append_unknown(target: Any, value: object, variables: SharedVariables) -> Any:
    """Append a value, some or all of which may not be appended, and return the list.

    Parameters
    ----------
    target : list or FilledList
    value : MaybeUnbound or RowPiece
    variables : SharedVariables
        Those that refer to lists; a list is replaced by a `FilledList`.
    """
    if any(id(target) in lists_of_block for lists_of_block in _open.stack):
        append_(target, value)
        return target
    if type(target) is FilledList:
        target.add(value)
        return target
    names = [n for n, v in variables.read().items() if v is target]
    if not names or variables.fixed.intersection(names):
        raise NotTraceable(
            "it appends to a list, which may have another name, in one of the branches only"
        )
    filled = FilledList(target)
    filled.add(value)
    variables.write(dict.fromkeys(names, filled))
    return filled


class Collecting:
    """The values that a block appends to some lists.

    Parameters
    ----------
    lists : list of list
    refusal : str, optional
        Why nothing may be appended to them in the block.
    """

    def __init__(self, lists: Sequence[Any], refusal: str | None = None) -> None:
        self.lists = [x for x in lists if type(x) in (list, FilledList)]
        self._refusal = refusal
        self.values: list[list[Any]] = []

    @contextmanager
    def block(self) -> Iterator[None]:
        """A context in which the values are collected; earlier ones are discarded."""
        self.values = [[] for _ in self.lists]
        collected = [self._refusal or v for v in self.values]
        lists_of_block: dict[int, list[Any] | str] = dict(
            zip(map(id, self.lists), collected, strict=True)
        )
        before = _open.stack
        _open.stack = (*before, lists_of_block)
        try:
            yield
        finally:
            _open.stack = before

    @property
    def arrays(self) -> list[Handle]:
        """The arrays in the values."""
        return [x for v in self.values for x in _arrays_of(v)]

    def appends_older(self, since: int) -> bool:
        """Whether an array is older than a serial number."""
        return any(x.node.serial < since for x in self.arrays if not isinstance(x, LoopRow))

    def rows(self, masked: bool) -> list[Rows | MaskedRows]:
        """The collected values of each list.

        With `masked`, the number of iterations is not known.
        """
        rows: list[Rows | MaskedRows] = []
        for target, values in zip(self.lists, self.values, strict=True):
            unknown = type(target) is FilledList or any(
                isinstance(v, MaybeUnbound | RowPiece) for v in values
            )
            if values:
                rows.append((MaskedRows if masked or unknown else Rows)(target, values))
        return rows


class Rows:
    """The values that an iteration appends to a list.

    Attributes
    ----------
    numeric_leaves : list
        The arrays and numbers in them, which the loop stacks.
    appended : list of AppendedArrays
        Set by `finish`.
    """

    def __init__(self, target: list[Any], values: list[Any]) -> None:
        self._target = target
        self._values = [_AppendedValue(v) for v in _stacked_if_possible(values)]
        self.numeric_leaves = [x for value in self._values for x in value.numeric_leaves]
        self.appended: list[AppendedArrays] = []

    def finish(self, stacked: list[Any], length: int, variables: SharedVariables) -> None:
        """Append the values of all iterations to the list.

        Parameters
        ----------
        stacked : list
            The results of the loop for `numeric_leaves`.
        length : int
            The number of iterations.
        variables : SharedVariables
            Those that refer to lists.
        """
        remaining = iter(stacked)
        columns = [
            value.column([next(remaining) for _ in value.numeric_leaves], length)
            for value in self._values
        ]
        self.appended = [a for value in self._values for a in value.appended]
        for iteration in zip(*columns, strict=True):
            for value in iteration:
                append_(self._target, value)


class MaskedRows:
    """The values that an iteration appends to a list, if their number is not known.

    Attributes
    ----------
    numeric_leaves : list
        Arrays with a row for each value, and whether it is appended.
    appended : list of AppendedArrays
        Set by `finish`.
    """

    def __init__(self, target: Any, values: list[Any]) -> None:
        self._arrays = [x for v in values for x in _arrays_of(v)]
        self.appended: list[AppendedArrays] = []
        self._target, self._piece = target, pieces_of(values)
        self.numeric_leaves = [*self._piece.leaves, self._piece.mask]

    def finish(self, stacked: list[Any], length: int, variables: SharedVariables) -> None:
        """Append the values of all iterations to the list; see `Rows.finish`."""
        flat = [wrap(x.reshape((-1, *x.shape[2:])).node) for x in stacked]
        self.appended = [AppendedArrays(self._arrays, x, []) for x in flat[:-1]]
        piece = self._piece._replace(leaves=flat[:-1], mask=flat[-1])
        append_unknown(self._target, piece, variables)


class AppendedArrays(NamedTuple):
    """Arrays that an iteration appends, and the elements that come from them.

    Attributes
    ----------
    arrays : list of Tensor
        In the traced iteration.
    source : Tensor
        The array of which the elements are rows.
    last : list of Tensor
        The elements of the last iteration, in the order of `arrays`; empty if they are not known.
    """

    arrays: list[Any]
    source: Any
    last: list[Any]


class _AppendedValue:
    """A value that an iteration appends, or several of them as one array.

    Attributes
    ----------
    numeric_leaves : list
    appended : list of AppendedArrays
        Set by `column`.
    """

    def __init__(self, value: object) -> None:
        self.appended: list[AppendedArrays] = []
        self._arrays = _arrays_of(value)
        self._is_stacked, self._is_list = isinstance(value, _StackedValues), False
        if isinstance(value, _StackedValues):
            self.numeric_leaves, self._parts, self._weak = [value.array], None, [False]
            return
        rows = whole(value) if isinstance(value, list) else None
        if rows is not None:
            self.numeric_leaves, self._parts, self._weak, self._is_list = (
                [rows],
                None,
                [False],
                True,
            )
            return
        self._parts = PartitionedValue.of(value)
        others = zip(self._parts.leaves, self._parts.numeric, strict=True)
        if not all(is_number or is_immutable(x) for x, is_number in others):
            raise NotTraceable(f"it appends a {type(value).__name__}")
        self.numeric_leaves = self._parts.numeric_leaves
        self._weak = [spec.weak for spec in self._parts.specs]

    def column(self, stacked: list[Any], length: int) -> list[Any]:
        """The values of all iterations."""
        if length == 0:
            return []
        if self._is_stacked:
            array = stacked[0]
            inner_length = array.shape[1]
            flat = wrap(array.reshape((length * inner_length, *array.shape[2:])).node)
            rows = list(rows_of(RowBlock(length * inner_length, flat)))
            last = rows[-inner_length:] if inner_length == len(self._arrays) else []
            self.appended = [AppendedArrays(self._arrays, flat, last)]
            return rows
        blocks = [RowBlock(length, x, w) for x, w in zip(stacked, self._weak, strict=True)]
        if self._is_list:
            self.appended = [AppendedArrays(self._arrays, stacked[0], [])]
            inner_length = int(stacked[0].shape[1])
            return [list(rows_of(RowBlock(inner_length, (blocks[0], k)))) for k in range(length)]
        columns = [list(rows_of(b)) for b in blocks]
        assert self._parts is not None
        self.appended = [
            AppendedArrays([x], block.source, column[-1:])
            for x, block, column in zip(self._parts.numeric_leaves, blocks, columns, strict=True)
            if _is_array(x)
        ]
        return [self._parts.rebuild([c[k] for c in columns]) for k in range(length)]


class _StackedValues:
    """Values that one iteration appends one after the other, as rows of one array."""

    def __init__(self, array: Any, values: Sequence[Any]) -> None:
        self.array, self.values = array, values


def _arrays_of(value: Any) -> list[Handle]:
    """The arrays in a value, or in several, that is appended."""
    if isinstance(value, _StackedValues):
        return [x for v in value.values for x in arrays_in_element(v)]
    return arrays_in_element(value)


def _is_array(x: object) -> bool:
    return isinstance(x, Handle) and bool(shape_of(x))


def _stacked_if_possible(values: list[Any]) -> list[Any]:
    """The values; several with the same shape and dtype are stacked to one array."""
    if len(values) == 1:
        return values
    array = whole(values)
    if array is None:
        specs = {(s.shape, s.dtype) if (s := spec_of(v)) is not None else None for v in values}
        if len(specs) != 1 or None in specs or not any(isinstance(v, Handle) for v in values):
            return values
        array = lookup("stack")(*values, axis=0)
    return [_StackedValues(array, values)]


class LoopAppends(Collecting):
    """The values that the iterations of a loop append to lists.

    Parameters
    ----------
    lists : list of list
    items : Items or None
        The items of a ``for`` loop.
    stops : bool
        Whether the loop may end early.
    variables : SharedVariables
        Those that refer to lists.
    """

    def __init__(
        self, lists: Sequence[Any], items: Items | None, stops: bool, variables: SharedVariables
    ) -> None:
        length = None if items is None else items.length
        has_length = type(length) is int
        self._items, self._variables = items, variables
        self._capacity: Any = length if has_length else None if items is None else items.limit
        self._is_buffered = stops or not has_length
        self._rows: list[Rows | MaskedRows] = []
        self._first = 0
        unknown = (
            "it appends to a list, and the maximum of its length is not known. Use a for loop over "
            "a range of the greatest length, with a break"
        )
        super().__init__(lists, None if self._capacity is not None else unknown)

    def add_outputs(
        self, outputs: list[Node], inputs: list[Node], start: list[Any], counter: Node
    ) -> None:
        """Add the values to the outputs of the body, and the arrays to the carry."""
        self._rows = self.rows(self._is_buffered)
        self._first = len(start)
        leaves = [strongly_typed(x) for r in self._rows for x in r.numeric_leaves]
        if not self._is_buffered or not leaves:
            outputs += [output(x, "loop") for x in leaves]
            return
        assert self._items is not None
        position = (wrap(counter) - size_or_value(self._items.start)) // self._items.step
        for leaf in leaves:
            spec = describe(leaf)
            shape = (self._capacity, *spec.shape)
            inputs.append(placeholder(Spec(shape, spec.dtype)))
            start.append(zeros(Spec(shape, spec.dtype)))
            stored = lookup("setitem")(wrap(inputs[-1]), leaf, position, index=IndexSlot(0))
            outputs.append(stored.node)

    def finish(self, outs: Sequence[Any]) -> list[AppendedArrays]:
        """Append the values to the lists, from the results of the loop."""
        stacked = iter(outs[self._first :])
        for r in self._rows:
            results = [next(stacked) for _ in r.numeric_leaves]
            r.finish(results, self._capacity, self._variables)
        return [a for r in self._rows for a in r.appended]
