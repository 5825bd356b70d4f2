"""Filled lists: lists of which the length is not known, as branches have appended to them.

    out = []
    for v in x:
        if v > 0:            # the loop stacks the value of each iteration, and whether it is
            out.append(v)    # appended: a piece, with a row for each append

The elements are the rows of all pieces at which the mask is true (ops/indexing/masks.py).
The list can be read, counted, looped over, appended to and passed to NumPy.

RowPiece         rows that may be elements
FilledList    such a list
tested        a value as a condition: whether such a list has elements
arrays_in_element  the arrays in a value that is appended
pieces_of     values, some of which may not have been appended, as a piece
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.branch_aliases import add_unknown, may_share
from wengert._engine.core.handle import Handle, owner_of_memory, shape_of, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.spec import Spec
from wengert._engine.ops.indexing.masks import true_positions
from wengert._engine.ops.indexing.window_functions import applied
from wengert._engine.ops.indexing.windows import Window
from wengert.errors import TraceError, at, user_place

from ..state import NotTraceable
from .values import MaybeUnbound, PartitionedValue, cast, joined_spec, weakly_typed

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


class RowPiece(NamedTuple):
    """Rows that may be elements of a list.

    Attributes
    ----------
    parts : PartitionedValue
        A value of the structure of an element.
    specs : list of Spec
        The specs of the numeric leaves of an element.
    leaves : list
        For each numeric leaf, an array with a row for each value.
    mask : Tensor or array
        Which rows are elements.
    """

    parts: PartitionedValue
    specs: list[Spec]
    leaves: list[Any]
    mask: Any


def pieces_of(values: Sequence[Any]) -> RowPiece:
    """Values, some of which may not have been appended, as one piece.

    Parameters
    ----------
    values : sequence
        Values of one structure, `MaybeUnbound` of them, and pieces.

    Raises
    ------
    NotTraceable
        Their structures differ.
    """
    pieces = [v if isinstance(v, RowPiece) else _of_value(v) for v in values]
    first = pieces[0]
    specs = list(first.specs)
    for other in pieces[1:]:
        first.parts.check_like(other.parts, "an element of a list")
        pairs = zip(specs, other.specs, strict=True)
        specs = [joined_spec(a, b, "an element of a list") for a, b in pairs]
    leaves = [
        _joined([_as_dtype(p.leaves[k], spec) for p in pieces]) for k, spec in enumerate(specs)
    ]
    return RowPiece(first.parts, specs, leaves, _joined([p.mask for p in pieces]))


def _of_value(value: Any) -> RowPiece:
    defined: Any = True
    if type(value) is MaybeUnbound:
        value, defined = value
    parts = PartitionedValue.of(value)
    if not all(parts.numeric):
        raise NotTraceable(
            f"it appends a {type(value).__name__} to a list in one of the branches only"
        )
    leaves = [_tensor(x)[None] for x in parts.numeric_leaves]
    return RowPiece(parts, parts.specs, leaves, _tensor(defined).reshape((1,)))


def arrays_in_element(value: Any) -> list[Handle]:
    """The arrays in a value, which may be modified after it has been appended."""
    if isinstance(value, RowPiece):
        return [x for x, spec in zip(value.leaves, value.specs, strict=True) if spec.shape]
    leaves = pytree.flatten(value.value if isinstance(value, MaybeUnbound) else value)[0]
    return [x for x in leaves if isinstance(x, Handle) and shape_of(x)]


def _tensor(x: Any) -> Any:
    return x if isinstance(x, Handle) else wrap(constant(np.asarray(x)))


def _as_dtype(rows: Any, spec: Spec) -> Any:
    return cast(rows, Spec(rows.shape, spec.dtype))


def _joined(arrays: Sequence[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else lookup("concatenate")(*arrays, axis=0)


def tested(x: Any) -> Any:
    """A value as a condition: whether a filled list has elements; others as they are."""
    return x.shape[0] > 0 if type(x) is FilledList else x


class FilledList:
    """A list of which the length is not known.

    Parameters
    ----------
    values : sequence
        Its first elements.
    """

    __array_priority__ = 2000
    is_window = True

    def __init__(self, values: Sequence[Any]) -> None:
        self._values: list[Any] = list(values)
        self._columns: list[Window] | None = None
        self._piece: RowPiece | None = None
        self._nodes: list[Node] = []  # of the arrays when the columns were made
        self._made: list[Window] = []  # the columns, and their nodes when they were made
        self._made_nodes: list[Node] = []
        self._session = current_trace()

    def add(self, value: Any) -> None:
        """Append a value, a value that may not have been appended, or a piece."""
        self._values.append(value)
        self._columns = None

    def append(self, value: object) -> None:
        """Append a value."""
        if current_trace() is not self._session:
            raise NotTraceable("it appends to a list whose length is not known")
        self.add(value)

    def columns(self) -> list[Window]:
        """For each numeric leaf of an element, its values in all elements."""
        nodes = [x.node for v in self._values for x in arrays_in_element(v)]
        if self._columns is None or not all(map(operator.is_, nodes, self._nodes)):
            if any(
                c.whole.node is not n for c, n in zip(self._made, self._made_nodes, strict=True)
            ):
                raise self.refusal("a change of the list after a change of an array in it")
            self._piece, self._nodes = pieces_of(self._values), nodes
            if not nodes:  # numbers, which do not change
                self._values = [self._piece]
            (places,) = true_positions(self._piece.mask)
            self._columns = [Window(x[places.whole], places.ranges) for x in self._piece.leaves]
            self._note_shared()
        return self._columns

    def _note_shared(self) -> None:
        """Make it an error to use what shares memory with an element after a store to it."""
        self._made = self._columns or []
        self._made_nodes = self._nodes_now()
        arrays = [x for v in self._values for x in arrays_in_element(v)]
        others = {id(y): y for x in arrays for y in may_share(x) if y is not owner_of_memory(x)}
        pairs = [(c.whole, y) for c in self._made for y in others.values()]
        add_unknown(pairs, one_way=True)

    def _nodes_now(self) -> list[Node]:
        return [c.whole.node for c in self._made]

    def _element(self, leaves: Sequence[Any]) -> Any:
        assert self._piece is not None
        numbers = [
            weakly_typed(x) if spec.weak and not spec.shape else x
            for x, spec in zip(leaves, self._piece.specs, strict=True)
        ]
        return self._piece.parts.rebuild(numbers)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The number of elements, and the shape of an element."""
        return self.compacted().shape

    @property
    def capacity(self) -> int | None:
        """The greatest possible number of elements."""
        return self.columns()[0].capacity

    def compacted(self) -> Window:
        """The elements as an array."""
        columns = self.columns()
        assert self._piece is not None
        if self._piece.parts.structure is None:
            return columns[0]
        whole = lookup("stack")(*[c.whole for c in columns], axis=1)
        return Window(whole, columns[0].ranges)

    def row(self, k: Any) -> Any:
        """The element with an index that is known to be in range."""
        return self._element([c.row(k) for c in self.columns()])

    def __getitem__(self, index: Any) -> Any:
        columns = self.columns()
        if not isinstance(index, slice):
            return self._element([c[index] for c in columns])
        part = FilledList([])
        chosen = [c[index].copy() for c in columns]
        assert self._piece is not None
        for c in chosen:
            mask = c.mask()
        part.add(self._piece._replace(leaves=[c.whole for c in chosen], mask=mask))
        return part

    def __array_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        return applied(func.__name__, args, kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        windows = [x.compacted() if isinstance(x, FilledList) else x for x in inputs]
        return self.compacted().__array_ufunc__(ufunc, method, *windows, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.refusal(f".{name}")

    def __len__(self) -> int:
        raise self.refusal("len() in a function of a library")

    def __iter__(self) -> Any:
        raise self.refusal("iteration by Python")

    def __bool__(self) -> bool:
        raise self.refusal("its truth")

    def __eq__(self, other: object) -> bool:
        raise self.refusal("a comparison")

    __hash__ = object.__hash__

    def __add__(self, other: Array) -> Any:
        raise self.refusal("+")

    __radd__ = __iadd__ = __mul__ = __rmul__ = __imul__ = __add__

    def __setitem__(self, index: object, value: object) -> None:
        raise self.refusal("an assignment to an element")

    def __repr__(self) -> str:
        return "<list to which a branch has appended>"

    def refusal(self, what: str) -> TraceError:
        return TraceError(
            "a branch has appended to a list, so the number of its elements is not known while a "
            f"graph is built, but {what} requires it. Make it an array, np.array(out), which can "
            "be reduced, sorted, indexed and looped over, or count with len(out)"
            f"{at(user_place())}."
        )
