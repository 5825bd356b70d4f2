"""Lists that loops read and assign at traced indices, as stacked arrays.

    for k in range(n):                 s = stack of the elements
        x = f(states[k], x)      ->    loop: x = f(s[k], x);  s[k] = x
        states[k] = x                  the elements of states are the rows of s

While a loop is traced, such a list has one array for each leaf of its elements, which must have the
same structure and shapes; dtypes are promoted.  An array that is read is a copy.  Changes of it in
place are written to the stack too, provided that the element cannot have been replaced meanwhile.

StackedList    a list, and the stacked arrays of its elements
ListNeeded     a loop must be traced again, with a list stacked
stacking       a context in which a loop is traced with stacked lists
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from wengert._engine.core.branch_aliases import add_unknown, may_share, own_memory, unnoticed
from wengert._engine.core.handle import (
    Handle,
    expect_views,
    is_traced,
    make_ambiguous,
    owner_of_memory,
    shape_of,
    wrap,
)
from wengert._engine.core.loop_rows import LoopRow, RowBlock, rows_of, source_of, whole
from wengert._engine.core.node import INPUT, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.spec import Spec
from wengert.errors import at, user_place

from ..state import NotTraceable, Speculation
from .values import PartitionedValue, cast, joined_spec, weakly_typed

# A loop with at most so many iterations is unrolled, rather than stacking a list of arrays.
LONGEST_OF_COPIES = 64


class ListNeeded(NotTraceable):
    """A loop must be traced again, because a list is used at a traced index."""

    def __init__(self, loop: object, values: Any) -> None:
        super().__init__("it uses a list at an index that is not known")
        self.loop, self.list = loop, values


class _Open(threading.local):
    """The loops that are being traced, with the number of open change logs; and stacked lists."""

    loops: tuple[tuple[Any, int], ...] = ()
    lists: dict[int, StackedList] = {}  # noqa: RUF012  (replaced, and never modified)


_open = _Open()


class StackedList:
    """A list, and the stacked arrays of its elements.

    Parameters
    ----------
    values : list or tuple
    since : int
        The serial number of the first node of the loop.

    Attributes
    ----------
    arrays : list of Handle
        For each leaf of an element, the stack of this leaf over all elements.
    is_assigned, is_modified : bool
        Whether the loop assigns elements, and whether it modifies their arrays in place.
    """

    def __init__(self, values: Any, since: int) -> None:
        parts = [PartitionedValue.of(v) for v in values]
        if not parts or not all(all(p.numeric) for p in parts):
            raise NotTraceable("it uses a list with elements that are not numbers or arrays")
        if any(p.structure != parts[0].structure for p in parts) or _has_lists(values[0]):
            raise NotTraceable("it uses a list whose elements have different structures")
        handles = [x for p in parts for x in p.numeric_leaves if isinstance(x, Handle)]
        rows_before = [x for x in handles if isinstance(x, LoopRow)]
        handles = [x for x in handles if not isinstance(x, LoopRow)]
        if any(x.node.serial >= since for x in handles):
            raise NotTraceable("it uses a list that it creates")
        self.list, self._parts = values, parts[0]
        self._before = list(values)
        self.specs: list[Spec] = list(parts[0].specs)
        for p in parts[1:]:
            self.widen(p.specs)
        rows = whole(values) if parts[0].structure is None else None
        columns = zip(*[p.numeric_leaves for p in parts], strict=True)
        self.arrays: list[Any] = (
            [cast(wrap(rows.node), self.specs[0])]
            if rows is not None
            else [_stacked(c, s) for c, s in zip(columns, self.specs, strict=True)]
        )
        self._owners = [owner_of_memory(x) for x in handles if x.node.spec.shape]
        self._owners += _shared_with_rows(rows_before)
        self.is_assigned = self.is_modified = False
        self.begin()

    def begin(self) -> None:
        """Start another attempt to trace the loop, and drop the state of the previous one."""
        for array in self.arrays:
            add_unknown([(x, array) for x in self._owners], one_way=not self.is_modified)
        self._version = 0
        self._copies: list[weakref.ref[Handle]] = []
        self._places: dict[int, tuple[int, Any, int]] = {}
        self._stored: dict[int, Handle] = {}
        self._kept: list[Any] = []  # so that identities stay different
        self._shares = len(set(map(id, self._owners))) < len(self._owners)

    def widen(self, specs: Sequence[Spec]) -> bool:
        if len(specs) != len(self.specs):
            raise NotTraceable("it assigns elements with different structures to a list")
        joined = [joined_spec(a, b, "an element") for a, b in zip(self.specs, specs, strict=True)]
        changed, self.specs = joined != self.specs, joined
        return changed

    def restack(self) -> None:
        """Convert the arrays to the current specs."""
        self.arrays = [cast(a, s) for a, s in zip(self.arrays, _stacked_specs(self), strict=True)]

    # ---- elements ------------------------------------------------------------------------------

    def read(self, index: Any) -> Any:
        """An element."""
        index = _checked(index)
        leaves: list[Any] = []
        for number, (array, spec) in enumerate(zip(self.arrays, self.specs, strict=True)):
            if not spec.shape:
                value = wrap(array[index].node)
                leaves.append(weakly_typed(value) if spec.weak else value)
                continue
            leaves.append(self._copy(number, array, index))
        return self._parts.rebuild(leaves)

    def _copy(self, number: int, array: Any, index: Any) -> Any:
        """An array of an element, whose changes in place are written to the stack."""
        base = wrap(array[index].node)
        copy = wrap(base.node)
        version, session = self._version, current_trace()

        def put(_: Any, view: Any) -> Any:
            if self._version != version or current_trace() is not session or self._shares:
                raise NotTraceable(
                    "it modifies an element of a list in place, which may have been replaced since "
                    "it was read"
                )
            self._note("is_modified")
            for ref in self._copies:
                other = ref()
                if other is not None and other is not copy:
                    make_ambiguous(other)
            self.arrays[number][index] = wrap(view.node)
            return view

        expect_views(base)
        base._views.append(weakref.ref(copy))
        copy._link = (base, lambda x: wrap(x.node), put)
        self._copies.append(weakref.ref(copy))
        self._kept.append(copy)
        self._places[id(copy)] = number, index, version
        return copy

    def _note(self, what: str) -> None:
        if not getattr(self, what):
            setattr(self, what, True)
            raise ListNeeded(_loop_of(self.list), self.list)

    def write(self, index: Any, value: Any) -> None:
        """Assign an element."""
        index = _checked(index)
        if type(self.list) is not list:
            raise TypeError(f"a tuple does not support item assignment{at(user_place())}")
        parts = PartitionedValue.of(value)
        self._parts.check_like(parts, "an element of a list")
        widened = self.widen(parts.specs)
        if widened:
            raise ListNeeded(_loop_of(self.list), self.list)
        if self._is_element(parts.numeric_leaves, index):
            return
        self._note("is_assigned")
        for number, (leaf, spec) in enumerate(zip(parts.numeric_leaves, self.specs, strict=True)):
            if isinstance(leaf, Handle) and spec.shape:
                self._share(leaf, self.arrays[number])
            value = cast(leaf, Spec(spec.shape, spec.dtype))
            with unnoticed():
                self.arrays[number][index] = value
        self._version += 1

    def _is_element(self, leaves: Sequence[Any], index: Any) -> bool:
        """Whether a value is the element that was read, as in ``x[index] += y``."""
        found = [self._places.get(id(x)) for x in leaves]
        return all(
            place is not None and place[1] is index and (place[0], place[2]) == (k, self._version)
            for k, place in enumerate(found)
        )

    def _share(self, leaf: Handle, array: Handle) -> None:
        """Record that an array becomes an element; it may be an element already."""
        owner, session = owner_of_memory(leaf), current_trace()
        is_new = owner is leaf and session is not None and owner.node.serial >= session.since
        if not is_new or owner.node.op is INPUT or id(owner) in self._stored:
            self._shares = True
            if self.is_modified:
                raise NotTraceable("elements of a list that it modifies may be the same array")
        self._stored[id(owner)] = owner
        add_unknown([(owner, array)], one_way=not self.is_modified)

    def check(self, modified: Collection[int]) -> None:
        """Refuse a body that modifies, in the next iteration, an array that it made an element.

        Parameters
        ----------
        modified : collection of int
            The ids of the arrays from before the loop that it modifies.
        """
        if not self._stored.keys().isdisjoint(modified):
            raise NotTraceable("it modifies an array that is an element of a list")

    # ---- after the loop ------------------------------------------------------------------------

    def finish(self) -> None:
        """Set the elements of the list after the loop."""
        if not self.is_assigned and not self.is_modified:
            return
        length = len(self._before)
        columns = [
            list(rows_of(RowBlock(length, array, spec.weak)))
            for array, spec in zip(self.arrays, self.specs, strict=True)
        ]
        Speculation.note_change(self.list)
        self.list[:] = [self._parts.rebuild([c[k] for c in columns]) for k in range(length)]

    def hide(self) -> None:
        """Replace the elements by placeholders while the loop, which changes them, is traced."""
        if self.is_assigned or self.is_modified:
            self.list[:] = [_HIDDEN] * len(self._before)

    def show(self) -> None:
        """Undo `hide`."""
        if self.is_assigned or self.is_modified:
            self.list[:] = self._before

    @property
    def rebound(self) -> list[Any]:
        """The arrays, if elements are assigned, and no arrays are modified in place."""
        return [] if self.is_modified else self.arrays

    @property
    def copies_much(self) -> bool:
        """Whether the stack is a copy of arrays that the loop only reads."""
        has_arrays = any(s.shape for s in self.specs)
        return has_arrays and not self.is_assigned and not self.is_modified


class _Hidden:
    """An element of a list that a loop changes, while the loop is traced."""

    def _refuse(self, *args: Any) -> Any:
        raise NotTraceable("it reads a whole list whose elements it changes")

    __getattr__ = __bool__ = __eq__ = __hash__ = __iter__ = __len__ = __float__ = _refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __lt__ = __gt__ = _refuse


_HIDDEN: Any = _Hidden()


def _has_lists(value: Any) -> bool:
    return isinstance(value, list | dict) or (
        isinstance(value, tuple) and any(map(_has_lists, value))
    )


def _shared_with_rows(rows: Sequence[LoopRow]) -> list[Handle]:
    """The arrays of which elements are rows, and what single rows share memory with."""
    sources = {id(source): source for row in rows for source in [source_of(row)]}
    found = {id(x): x for source in sources.values() for x in may_share(source)}
    for row in rows:
        if getattr(row, "_aliases", None) is not None:
            others = [*may_share(row), *[x for x, _ in own_memory(row).arrays()]]
            found.update((id(x), x) for x in others if x is not row)
    return [x for x in found.values() if shape_of(x)]


def _stacked(values: Sequence[Any], spec: Spec) -> Any:
    made = [cast(v, Spec(spec.shape, spec.dtype)) for v in values]
    if not any(isinstance(x, Handle) for x in made):
        return wrap(constant(np.stack(made)))
    return wrap(lookup("stack")(*made, axis=0).node)


def _stacked_specs(stack: StackedList) -> list[Spec]:
    return [
        Spec(a.node.spec.shape, s.dtype) for a, s in zip(stack.arrays, stack.specs, strict=True)
    ]


def _checked(index: Any) -> Any:
    if isinstance(index, Handle):
        spec = index.node.spec
        if spec.shape or spec.dtype.kind not in "iu":
            raise TypeError(f"list indices must be integers, not {spec}{at(user_place())}")
    elif not isinstance(index, int | np.integer):
        raise NotTraceable("it uses a slice of a list")
    return index


def _loop_of(values: Any) -> Any:
    """The outermost loop that is being traced, and before which the list existed."""
    logs = Speculation.open_logs()
    inside = max((k for k, log in enumerate(logs) if log.has(values)), default=-1)
    return next((loop for loop, depth in _open.loops if depth > inside), None)


def is_traced_index(index: object) -> bool:
    return isinstance(index, Handle) and is_traced(index)


def is_stacked(values: Any) -> bool:
    """Whether a list is stacked in a loop that is being traced."""
    return id(values) in _open.lists


def stack_of(values: Any, index: object) -> StackedList | None:
    """The stack of a list; if it has none, and the index is traced, raise `ListNeeded`."""
    if not _open.loops:
        return None
    stack = _open.lists.get(id(values))
    if stack is not None and stack.list is values:
        return stack
    if not is_traced_index(index):
        return None
    loop = _loop_of(values)
    if loop is None:
        return None
    raise ListNeeded(loop, values)


@contextmanager
def stacking(loop: object, lists: dict[int, StackedList]) -> Iterator[None]:
    """A context in which a loop is traced with stacked lists."""
    before = _open.loops, _open.lists
    _open.loops = (*_open.loops, (loop, len(Speculation.open_logs())))
    _open.lists = _open.lists | lists
    for stack in lists.values():
        stack.begin()
        stack.hide()
    try:
        yield
    finally:
        for stack in lists.values():
            stack.show()
        _open.loops, _open.lists = before
