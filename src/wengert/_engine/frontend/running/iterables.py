"""The iterables of ``for`` loops, with items by index.

Items               items that can be computed from a traced index
items_of            the items of an iterable
has_traced_items    whether the items of an iterable are traced
is_unknown_length   whether it is a window or selection (ops/indexing/windows.py)
range_, enumerate_, zip_, reversed_   the built-in functions, for traced operands too
TracedRange         a range with traced bounds
unroll              `wengert.unroll`: an iterable whose loop is unrolled; UnrolledRange is its class
note_counter_range  record the range of the counter of a loop
size_or_value       the tensor of a symbolic size

``np.ndenumerate`` and ``np.nditer`` of tensors.

    for (i, j), v in np.ndenumerate(A):    for k in range(A.size):
        ...                                    i, j, v = k // n, k % n, A[k // n, k % n]

ndenumerate   positions and elements of an array
nditer        the elements of one array; views of them if they may be assigned to
"""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from wengert._engine.core import loop_rows
from wengert._engine.core.branch_aliases import add_unknown
from wengert._engine.core.handle import (
    Handle,
    expect_views,
    is_traced,
    link,
    shape_of,
    wrap,
)
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.traced_inputs import interval
from wengert._engine.core.tracing import size_value
from wengert._engine.ops.indexing.slice_ends import linear, note_range
from wengert.errors import TraceError, at, user_place

from ..state import NotTraceable

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

T = TypeVar("T")


class Items(NamedTuple):
    """The items of a loop, as a function of its counter.

    Attributes
    ----------
    length : int, Dim or Tensor
        The number of items.
    start : int, Dim or Tensor
        The first value of the counter.
    step : int
        The increment of the counter.
    item : callable
        The item for a value of the counter.
    limit : int, optional
        A maximum of the number of items.
    """

    length: Any
    start: Any
    step: int
    item: Callable[[Any], Any]
    limit: int | None = None


class TracedRange:
    """A range with bounds that are symbolic sizes or traced values."""

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.start, self.stop, self.step = start, stop, step

    @property
    def length(self) -> Any:
        """The number of items; may be negative for an empty range."""
        span = self.stop - self.start if self.step > 0 else self.start - self.stop
        size = abs(self.step)
        return span if size == 1 else (span + (size - 1)) // size

    def __len__(self) -> int:
        raise self._unknown("len(range(...))")

    def __iter__(self) -> Iterator[Any]:
        raise self._unknown("iteration over range(...)")

    def _unknown(self, what: str) -> Exception:
        return TraceError(
            f"{what}: its length is not known while a graph is built. Loop over it with a for "
            f"statement in a function whose source is available, or use wengert.fori_loop"
            f"{at(user_place())}."
        )


def unroll(iterable: Iterable[T]) -> Iterable[T]:
    """An iterable whose loop is unrolled in a compiled function.

    Parameters
    ----------
    iterable : range, array, list ...
        Its length must be known when the function is traced.

    Returns
    -------
    iterable
        With the same items. It has no effect outside of compiled functions.

    Notes
    -----
    Each iteration is traced, so the time to compile is proportional to their number. Use it where
    iterations differ in ways that a loop of the graph does not support, like the shapes of layers.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> @wg.jit
    ... def power(x):
    ...     y = 1.0
    ...     for _ in wg.unroll(range(20)):
    ...         y = y * x
    ...     return y
    >>> float(power(2.0))
    1048576.0
    """
    return UnrolledRange(iterable)


class UnrolledRange:
    """An iterable whose loop is unrolled."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class CombinedIterable:
    """The result of zip, enumerate or reversed."""

    def __init__(self, items: Items, make_iterator: Callable[[], Any], *iterables: Any) -> None:
        self.items, self._make_iterator = items, make_iterator
        self.is_traced = any(map(has_traced_items, iterables))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._make_iterator())


def range_(*args: Any) -> Any:
    """``range``, whose bounds may be traced."""
    if not any(is_traced(a) or isinstance(a, Dim) for a in args) or not 1 <= len(args) <= 3:
        return builtins.range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    for bound in (start, stop, step):
        _check_integer(bound)
    if is_traced(step) or isinstance(step, Dim):
        raise TraceError(
            f"range(): its step is not known while a graph is built. Use a constant step"
            f"{at(user_place())}."
        )
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    return TracedRange(start, stop, int(step))


def _check_integer(x: Any) -> None:
    if isinstance(x, Handle):
        spec = x.node.spec
        if spec.shape or spec.dtype.kind not in "iu":
            raise TypeError(
                f"the arguments of range() must be integers, and one is {spec}{at(user_place())}."
            )
    elif not isinstance(x, Dim):
        builtins.range(x)


def enumerate_(iterable: Any, start: Any = 0) -> Any:
    """``enumerate``."""
    items = items_of(iterable)
    if items is None:
        return builtins.enumerate(iterable, start)
    pairs = Items(items.length, 0, 1, lambda k: (k + start, _item_at(items, k)), items.limit)
    return CombinedIterable(pairs, lambda: builtins.enumerate(iterable, start), iterable)


def zip_(*iterables: Any, strict: bool = False) -> Any:
    """``zip``."""
    all_items = [items_of(x) for x in iterables]
    items = [f for f in all_items if f is not None]
    lengths = [f.length for f in items]
    if not all_items or len(items) < len(all_items) or (strict and len(set(lengths)) > 1):
        return builtins.zip(*iterables, strict=strict)
    length = lengths[0]
    for other in lengths[1:]:
        length = _shorter(length, other)
    zipped = Items(length, 0, 1, lambda k: tuple([_item_at(f, k) for f in items]))
    return CombinedIterable(zipped, lambda: builtins.zip(*iterables, strict=False), *iterables)


def reversed_(iterable: Any) -> Any:
    """``reversed``."""
    items = items_of(iterable)
    if items is None or not (
        isinstance(iterable, builtins.range | TracedRange | Handle | list)
        or is_unknown_length(iterable)
    ):
        return builtins.reversed(iterable)
    backward = Items(
        items.length, 0, 1, lambda k: _item_at(items, items.length - 1 - k), items.limit
    )
    sequence: Any = iterable
    return CombinedIterable(backward, lambda: builtins.reversed(sequence), iterable)


def _shorter(a: object, b: Any) -> Any:
    if type(a) is int and type(b) is int:
        return min(a, b)
    if isinstance(a, Dim) and isinstance(b, Dim) and a == b:
        return a
    return lookup("minimum")(size_or_value(a), size_or_value(b))


def size_or_value(x: object) -> Any:
    """The integer tensor of a symbolic size; any other value as it is."""
    return size_value(x) if isinstance(x, Dim) else x


def _item_at(items: Items, k: Any) -> Any:
    """The item with index `k`, which counts from 0."""
    if items.step == 1 and type(items.start) is int and items.start == 0:
        return items.item(k)
    return items.item(k * items.step + size_or_value(items.start))


def items_of(iterable: object) -> Items | None:
    """The items of an iterable; None for one that only Python can iterate over."""
    if isinstance(iterable, CombinedIterable):
        return iterable.items
    if type(iterable) is builtins.range:
        return Items(len(iterable), iterable.start, iterable.step, _identity)
    if isinstance(iterable, TracedRange):
        return Items(iterable.length, iterable.start, iterable.step, _identity)
    if is_unknown_length(iterable):
        window: Any = iterable if hasattr(type(iterable), "row") else iterable.compacted()  # type: ignore[attr-defined]
        return Items(window.shape[0], 0, 1, window.row, window.capacity)
    if isinstance(iterable, Handle) or type(iterable) is np.ndarray:
        shape = shape_of(iterable)
        if not shape:
            raise TypeError(f"iteration over a 0-d array{at(user_place())}")
        if type(iterable) is np.ndarray:
            return None if iterable.dtype.kind not in "biufc" else _rows(iterable, shape[0])
        return _rows(iterable, shape[0])
    if type(iterable) is not list:
        return None
    if (columns := loop_rows.columns(iterable)) is not None:
        kind, copies = type(iterable[0]), [_unwritable(c, iterable) for c in columns]
        return _elements(iterable, lambda k: kind([column[k] for column in copies]))
    rows = loop_rows.whole(iterable)
    if rows is None:
        return None
    copy = _unwritable(rows, iterable)
    return _elements(iterable, lambda k: copy[k])


def _elements(values: list[Any], computed: Callable[[Any], Any]) -> Items:
    """The elements of a list, which are computed for indices that are not known."""
    return Items(len(values), 0, 1, lambda k: values[k] if isinstance(k, int) else computed(k))


def _unwritable(array: Any, values: Sequence[Any]) -> Any:
    """The array of a list of arrays, whose rows may not be modified as the elements may be."""
    if len(shape_of(array)) < 2:  # of numbers
        return array

    def put(_: Any, view: Any) -> Any:
        raise NotTraceable("it modifies an array that is an element of a list")

    copy, base = wrap(array.node), wrap(array.node)
    expect_views(base)
    link(copy, base, lambda x: wrap(x.node), put, shares=True)
    elements = [x for v in values for x in (v if isinstance(v, list | tuple) else [v])]
    shared = {
        id(x): x
        for e in elements
        if isinstance(e, Handle)
        for x in [loop_rows.source_of(e) if isinstance(e, loop_rows.LoopRow) else e]
    }
    add_unknown([(base, x) for x in shared.values()])
    return copy


def is_unknown_length(x: Any) -> bool:
    """Whether it is a slice with traced bounds, or the elements that a traced mask selects."""
    return getattr(type(x), "is_window", False)


def has_traced_items(iterable: object) -> bool:
    """Whether the items are traced: rows of a traced array, or of a list that a loop has filled."""
    if isinstance(iterable, CombinedIterable):
        return iterable.is_traced
    if isinstance(iterable, Handle):
        return is_traced(iterable)
    if is_unknown_length(iterable):
        return True
    return type(iterable) is list and items_of(iterable) is not None


def _rows(array: Any, length: Any) -> Items:
    def item(k: Any) -> Any:
        if isinstance(array, np.ndarray) and is_traced(k):
            return wrap(constant(array))[k]
        return array[k]

    return Items(length, 0, 1, item)


def _identity(k: object) -> Any:
    return k


def note_counter_range(counter: Node, items: Items) -> None:
    """Record the smallest and the largest value of the counter of a loop, for bounds checks."""
    first_interval, length_interval = interval(items.start), interval(size_or_value(items.length))
    distance = None if length_interval[1] is None else max(length_interval[1] - 1, 0) * items.step
    low, high = first_interval
    if items.step > 0:
        high = None if distance is None or high is None else high + distance
    else:
        low = None if distance is None or low is None else low + distance
    counter.note(interval=(low, high))
    first = linear(items.start)
    last = first.plus(linear(items.length).plus(linear(-1)), items.step)
    ends = (first, last) if items.step > 0 else (last, first)
    note_range(wrap(counter), ends[0], ends[1].plus(linear(1)))


class ndenumerate(CombinedIterable):
    """``np.ndenumerate``."""

    def __new__(cls, arr: Array) -> Any:
        """NumPy's iterator for a plain array."""
        return object.__new__(cls) if isinstance(arr, Handle) else np.ndenumerate(arr)

    def __init__(self, arr: Any) -> None:
        shape = shape_of(arr)

        def item(k: Any) -> Any:
            place = _position(k, shape)
            return place, arr[place]

        def places() -> Iterator[Any]:
            return ((p, arr[p]) for p in np.ndindex(*map(int, shape)))

        super().__init__(Items(math.prod(shape), 0, 1, item), places, arr)


class nditer(CombinedIterable):
    """``np.nditer`` of one array, without flags."""

    def __new__(cls, op: Array, *args: object, **kwargs: object) -> Any:
        """NumPy's iterator for plain arrays."""
        given = op if isinstance(op, list | tuple) else (op,)
        if any(isinstance(x, Handle) for x in given):
            return object.__new__(cls)
        return np.nditer(op, *args, **kwargs)  # type: ignore[call-overload]

    def __init__(
        self,
        op: Any,
        flags: Sequence[str] = (),
        op_flags: Sequence[Any] = (),
        order: str = "K",
    ) -> None:
        shape = () if isinstance(op, list | tuple) else shape_of(op)
        is_ordered = order == "C" or sum(n != 1 for n in shape) < 2
        if isinstance(op, list | tuple) or flags or not is_ordered:
            raise TraceError(
                "np.nditer of a tensor is supported for one array, without flags, and with "
                "order='C' if it has several axes, as the order of its memory is not known. "
                f"Loop over np.ndenumerate(x) or np.ndindex(x.shape){at(user_place())}."
            )
        names = {n for f in op_flags for n in ([f] if isinstance(f, str) else f)}
        view = (Ellipsis,) if names & {"readwrite", "writeonly"} else ()

        def item(k: Any) -> Any:
            return op[(*_position(k, shape), *view)]

        def elements() -> Iterator[Any]:
            return (op[(*p, *view)] for p in np.ndindex(*map(int, shape)))

        super().__init__(Items(math.prod(shape), 0, 1, item), elements, op)

    def __enter__(self) -> nditer:
        return self

    def __exit__(self, *args: object) -> None:
        pass


def _position(k: Any, shape: Sequence[Any]) -> tuple[Any, ...]:
    """The position of element number `k`."""
    inner = list(itertools.accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1))[::-1]
    place = []
    for axis, (n, length) in enumerate(zip(inner, shape, strict=True)):
        n, length = (size_value(x) if isinstance(x, Dim) else x for x in (n, length))
        part = k if isinstance(n, int) and n == 1 else k // n
        place.append(part if axis == 0 else part % length)
    return tuple(place)
