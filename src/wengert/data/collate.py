"""Combine lists of items into batches.

Arrays and numbers are stacked along a new first axis, in tuples, named tuples and dicts field by
field, recursively.  Items that cannot be stacked (strings, lists, objects) remain a list.

    stack_items     the default of a loader
    pad_items       the same for arrays of different lengths, which are padded
    CollatePlan     which items are in which batch of an epoch
    make_batch      a batch of a plan, by one indexing operation or item by item
    make_part       the part of one of several processes of a batch
    bounds_of       the first sample of a part, and the one after its last
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert.errors import ShapeError, StructureError, at, user_line

from .dataset import Seed, batch_of, item_of, tuple_like

_NUMBERS = np.ndarray | np.generic | bool | int | float | complex | Handle


def stack_items(items: Sequence[Any]) -> Any:
    """Stack items along a new first axis; tuples and dicts field by field.

    Parameters
    ----------
    items : sequence
        Arrays, numbers, or tuples or dicts of these, of equal structure. Other items remain a
        list.

    Raises
    ------
    ShapeError
        Arrays of different shapes.
    StructureError
        Containers with different fields.

    Examples
    --------
    >>> from wengert.data import stack_items
    >>> stack_items([{"x": (1, 2.0), "name": "a"}, {"x": (3, 4.0), "name": "b"}])
    {'x': (array([1, 3]), array([2., 4.])), 'name': ['a', 'b']}
    """
    return _field_by_field(items, np.stack)


def pad_items(items: Sequence[Any], value: Any = 0) -> Any:
    """Stack items, after padding arrays at the end to the length of the longest.

    Parameters
    ----------
    items : sequence
        As for `stack_items`, but arrays may have different lengths.
    value : number, default 0
        Value of the padding.

    Raises
    ------
    ShapeError
        Arrays with different numbers of axes.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data import pad_items
    >>> pad_items([np.array([1, 2, 3]), np.array([4])], value=-1)
    array([[ 1,  2,  3],
           [ 4, -1, -1]])
    """

    def pad_and_stack(arrays: list[Any]) -> Any:
        if len({a.ndim for a in arrays}) != 1:
            raise ValueError("numbers of axes")
        shape = np.max([a.shape for a in arrays], axis=0) if arrays[0].ndim else ()
        out = np.full((len(arrays), *map(int, shape)), value, np.result_type(*arrays))
        for row, a in zip(out, arrays, strict=True):
            row[tuple(map(slice, a.shape))] = a
        return out

    def stack(arrays: list[Any]) -> Any:
        return pad_and_stack(arrays) if arrays[0].ndim else np.stack(arrays)

    return _field_by_field(items, stack)


def _field_by_field(items: Sequence[Any], stack: Callable[[list[Any]], Any]) -> Any:
    first = items[0]
    if isinstance(first, dict):
        keys = first.keys()
        odd = next((x for x in items if not isinstance(x, dict) or x.keys() != keys), None)
        if odd is not None:
            other = f"keys {list(odd)}" if isinstance(odd, dict) else f"a {type(odd).__name__}"
            raise StructureError(
                f"cannot batch a dict with keys {list(keys)} and {other}. Give all items the same "
                f"fields, or pass collate=function{at(user_line())}."
            )
        return {k: _field_by_field([item[k] for item in items], stack) for k in first}
    if isinstance(first, tuple):
        odd = next((x for x in items if not isinstance(x, tuple) or len(x) != len(first)), None)
        if odd is not None:
            other = f"{len(odd)} fields" if isinstance(odd, tuple) else f"a {type(odd).__name__}"
            raise StructureError(
                f"cannot batch a tuple of {len(first)} fields and {other}. Give all items the "
                f"same fields, or pass collate=function{at(user_line())}."
            )
        columns = zip(*items, strict=True)
        return tuple_like(first, [_field_by_field(column, stack) for column in columns])
    if isinstance(first, _NUMBERS):
        arrays = [np.asarray(value_of(item)) for item in items]
        try:
            return stack(arrays)
        except ValueError as error:
            shapes = sorted({a.shape for a in arrays})
            raise ShapeError(
                f"cannot stack items of shapes {', '.join(map(str, shapes[:4]))} into a batch: "
                "the shapes must be equal. Crop or resize the items (map), or pass "
                f"collate=pad_items{at(user_line())}."
            ) from error
    return list(items)


class CollatePlan(NamedTuple):
    """The batches of an epoch.

    Attributes
    ----------
    order : array of int
        Indices of the items, in order.
    size : int
        Items per batch.
    total : int
        Number of batches.
    seed : tuple of int
        Seed of random transforms.
    """

    order: Any
    size: int
    total: int
    seed: Seed


def make_batch(
    dataset: Any, plan: CollatePlan, number: int, collate: Callable[[list[Any]], Any] | None
) -> Any:
    """A batch of a plan.

    Raises
    ------
    Exception
        The exception of an item, with a note that names it.
    """
    first = number * plan.size
    return _batch_of(dataset, plan, first, plan.order[first : first + plan.size], collate)


def _batch_of(
    dataset: Any,
    plan: CollatePlan,
    first: int,
    indices: Any,
    collate: Callable[[list[Any]], Any] | None,
) -> Any:
    """The items at `indices`, whose positions in the epoch begin with `first`."""
    if collate is None:
        batch = batch_of(dataset, indices)
        if batch is not NotImplemented:
            return batch
    items = []
    for position, index in enumerate(indices, start=first):
        try:
            items.append(item_of(dataset, int(index), (*plan.seed, position)))
        except Exception as error:
            error.add_note(f"This was item {int(index)} of {type(dataset).__name__}.")
            raise
    return (collate or stack_items)(items)


class BatchPart(NamedTuple):
    """The part of one of several processes of a batch.

    Attributes
    ----------
    batch : pytree
        Its items; those of the whole batch if the part is empty.
    own, total : int
        Numbers of items of the part, and of the whole batch.
    """

    batch: Any
    own: int
    total: int


def bounds_of(total: int, rank: int, size: int) -> tuple[int, int]:
    """The bounds of part `rank` of `size` parts, which differ in length by at most one."""
    return rank * total // size, (rank + 1) * total // size


def make_part(dataset: Any, plan: CollatePlan, number: int, rank: int, size: int) -> BatchPart:
    """The part of one of several processes of a batch of a plan."""
    first = number * plan.size
    indices = plan.order[first : first + plan.size]
    total = len(indices)
    start, stop = bounds_of(total, rank, size)
    begin, end = (start, stop) if stop > start else (0, total)
    batch = _batch_of(dataset, plan, first + begin, indices[begin:end], None)
    return BatchPart(batch, stop - start, total)
