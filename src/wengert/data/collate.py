"""Batches from lists of items.

Arrays and numbers are stacked along a new first axis; tuples, named tuples and dicts field by
field, as deeply as they are nested.  What cannot be stacked (words, lists, objects) stays a list.

    stack_items     the default of a loader
    pad_items       the same for sequences of unlike lengths
    CollatePlan     which items are in which batch of a pass
    collated        a batch of a plan, by one index or item by item
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert.errors import ShapeError, StructureError, at, user_line

from .dataset import Seed, batch_of, item_of, rebuilt

_NUMBERS = np.ndarray | np.generic | bool | int | float | complex | Handle


def stack_items(items: Sequence[Any]) -> Any:
    """Items stacked along a new first axis; tuples and dicts field by field.

    Parameters
    ----------
    items : sequence
        Arrays, numbers, or tuples or dicts of these, of equal structure. Other items stay a list.

    Raises
    ------
    ShapeError
        Arrays of unlike shapes.
    StructureError
        Containers of unlike fields.

    Examples
    --------
    >>> from wengert.data import stack_items
    >>> stack_items([{"x": (1, 2.0), "name": "a"}, {"x": (3, 4.0), "name": "b"}])
    {'x': (array([1, 3]), array([2., 4.])), 'name': ['a', 'b']}
    """
    return _field_by_field(items, np.stack)


def pad_items(items: Sequence[Any], value: Any = 0) -> Any:
    """Items stacked, where arrays are shorter filled up to the longest.

    Parameters
    ----------
    items : sequence
        As for `stack_items`; arrays may differ in their lengths.
    value : number, default 0
        What to fill up with, behind what there is.

    Raises
    ------
    ShapeError
        Arrays with unlike numbers of axes.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data import pad_items
    >>> pad_items([np.array([1, 2, 3]), np.array([4])], value=-1)
    array([[ 1,  2,  3],
           [ 4, -1, -1]])
    """

    def padded(arrays: list[Any]) -> Any:
        if len({a.ndim for a in arrays}) != 1:
            raise ValueError("numbers of axes")
        shape = np.max([a.shape for a in arrays], axis=0) if arrays[0].ndim else ()
        out = np.full((len(arrays), *map(int, shape)), value, np.result_type(*arrays))
        for row, a in zip(out, arrays, strict=True):
            row[tuple(map(slice, a.shape))] = a
        return out

    def stacked(arrays: list[Any]) -> Any:
        return padded(arrays) if arrays[0].ndim else np.stack(arrays)

    return _field_by_field(items, stacked)


def _field_by_field(items: Sequence[Any], stack: Callable[[list[Any]], Any]) -> Any:
    first = items[0]
    if isinstance(first, dict):
        keys = first.keys()
        odd = next((x for x in items if not isinstance(x, dict) or x.keys() != keys), None)
        if odd is not None:
            have = list(odd) if isinstance(odd, dict) else type(odd).__name__
            raise StructureError(
                f"a batch of dicts with the keys {list(keys)} and, elsewhere, {have}. Give all "
                f"items the same fields, or a collate= of your own{at(user_line())}."
            )
        return {k: _field_by_field([item[k] for item in items], stack) for k in first}
    if isinstance(first, tuple):
        odd = next((x for x in items if not isinstance(x, tuple) or len(x) != len(first)), None)
        if odd is not None:
            have = f"{len(odd)} fields" if isinstance(odd, tuple) else type(odd).__name__
            raise StructureError(
                f"a batch of tuples of {len(first)} fields and, elsewhere, {have}. Give all items "
                f"the same fields, or a collate= of your own{at(user_line())}."
            )
        columns = zip(*items, strict=True)
        return rebuilt(first, [_field_by_field(column, stack) for column in columns])
    if isinstance(first, _NUMBERS):
        arrays = [np.asarray(value_of(item)) for item in items]
        try:
            return stack(arrays)
        except ValueError as error:
            shapes = sorted({a.shape for a in arrays})
            raise ShapeError(
                f"a batch of items of shapes {', '.join(map(str, shapes[:4]))}: arrays are stacked "
                "only if they are of one shape. Crop or resize them (map), or give "
                f"collate=pad_items{at(user_line())}."
            ) from error
    return list(items)


class CollatePlan(NamedTuple):
    """What a pass does.

    Attributes
    ----------
    order : array of int
        The items, one after the other.
    size : int
        How many make a batch.
    total : int
        Batches in all.
    seed : tuple of int
        For what is random in items.
    """

    order: Any
    size: int
    total: int
    seed: Seed


def collated(
    dataset: Any, plan: CollatePlan, number: int, collate: Callable[[list[Any]], Any] | None
) -> Any:
    """The batch of that number of a plan.

    Raises
    ------
    Exception
        What an item raises, with a note that names it.
    """
    first = number * plan.size
    indices = plan.order[first : first + plan.size]
    if collate is None:
        batch = batch_of(dataset, indices)
        if batch is not NotImplemented:
            return batch
    items = []
    for place, index in enumerate(indices, start=first):
        try:
            items.append(item_of(dataset, int(index), (*plan.seed, place)))
        except Exception as error:
            error.add_note(f"This was item {int(index)} of {type(dataset).__name__}.")
            raise
    return (collate or stack_items)(items)
