"""Elements of lists, tuples and dicts that are read and assigned, at indices that may be traced.

    table[k]          the rows of the stacked elements at k; it may not be assigned to
    functions[k](x)   functions[0](x) if k == 0 else functions[1](x) ...
    numbers[key]      the element at the position of the key among the keys

    weights[i, k]     the elements of a constant array

before_load      called with the list, dict or array of an expression ``x[index]``
before_array_load   the same for an index with several parts
ArraySource      the array of such an expression
ListSource, DictSource   the list or dict of such an expression
ListTarget       the list of a statement ``x[index] = value``
read_only        an element whose arrays may not be assigned to
ChosenFunction   the function of a list at an index that is not known
position_of_key  the position of a key of a dict
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.branch_aliases import add_unknown
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, is_traced, link, shape_of, wrap
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.ops.indexing.getitem import read
from wengert.errors import TraceError, at, user_place

from ..state import NotTraceable
from .branches import if_expression
from .stacked_lists import StackedList, is_stacked, is_traced_index, stack_of
from .values import PartitionedValue, number_of

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def before_load(x: Any) -> Any:
    """The object of an expression ``x[index]``."""
    if type(x) is dict and current_trace() is not None:
        return DictSource(x)
    if type(x) is np.ndarray:
        return before_array_load(x)
    return ListSource(x) if type(x) is list or type(x) is tuple else x


def before_array_load(x: Any) -> Any:
    """The object of an expression ``x[index, ...]``."""
    if type(x) is not np.ndarray or x.dtype.kind not in "biufc" or current_trace() is None:
        return x
    return ArraySource(x)


class ArraySource:
    """The array of an expression ``x[index]``."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Any:
        parts = index if type(index) is tuple else (index,)
        if not any(map(is_traced_index, parts)):
            return self._array[index]
        element = read(self._array, index)
        if not any(
            shape_of(i) if isinstance(i, Handle | np.ndarray) else type(i) is list for i in parts
        ):
            link(element, wrap(element.node), _same, _refused, shares=True)  # a view in NumPy
        return element


class DictSource:
    """The dict of an expression ``x[key]``."""

    __slots__ = ("_dict",)

    def __init__(self, values: dict[Any, Any]) -> None:
        self._dict = values

    def __getitem__(self, key: Any) -> Any:
        key = key if is_traced(key) or key in self._dict else number_of(key)
        keys = list(self._dict)
        if not keys or not is_traced_index(key) or any(type(k) is not int for k in keys):
            return self._dict[key]
        return _read_alone(list(self._dict.values()), position_of_key(key, keys), key)


class ListSource:
    """The list or tuple of an expression ``x[index]``."""

    __slots__ = ("_list",)

    def __init__(self, values: Any) -> None:
        self._list = values

    def __getitem__(self, index: Any) -> Any:
        stack = stack_of(self._list, index)
        if stack is not None:
            return stack.read(index)
        if is_traced_index(index) and current_trace() is not None:
            return _read_alone(self._list, index)
        return self._list[index]


def _read_alone(x: Any, index: Any, key: Any = None) -> Any:
    """An element of a list, outside of loops or of a list that a loop creates."""
    if x and all(map(callable, x)):
        return ChosenFunction(x, index)
    try:
        stack = StackedList(x, 2**62)
    except NotTraceable:
        return x[index if key is None else key]
    return read_only(stack.read(index), x)


class ListTarget:
    """The list of a statement ``x[index] = value``.

    Parameters
    ----------
    values : list
    note : callable
        Called before the list is changed.
    """

    def __init__(self, values: Any, note: Any) -> None:
        self._list, self._note = values, note

    def _stack(self, index: Any) -> StackedList | None:
        return stack_of(self._list, index)

    def __getitem__(self, index: Any) -> Any:
        stack = self._stack(index)
        if stack is not None:
            return stack.read(index)
        self._note()
        return ListSource(self._list)[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        stack = self._stack(index)
        if stack is not None:
            stack.write(index, value)
            return
        self._note()
        if is_traced_index(index) and self._write_alone(index, value):
            return
        self._list[index] = value

    def __delitem__(self, index: Any) -> None:
        if is_stacked(self._list):
            raise NotTraceable("it deletes an element of a list")
        self._note()
        del self._list[index]

    def _write_alone(self, index: Any, value: Any) -> bool:
        """Assign an element that is a number, outside of loops."""
        try:
            stack = StackedList(self._list, 2**62)
            stack.widen(PartitionedValue.of(value).specs)
            if any(s.shape for s in stack.specs):
                return False
        except NotTraceable:
            return False
        stack.restack()
        stack.is_assigned = True
        stack.write(index, value)
        stack.finish()
        return True


def read_only(element: Any, elements: Sequence[Any]) -> Any:
    """An element whose arrays may not be assigned to, and are an error after a store to the list's.

    Parameters
    ----------
    element : object
        A copy of one of the elements.
    elements : sequence
        The elements of the list.
    """
    leaves = [x for x in PartitionedValue.of(element).numeric_leaves if isinstance(x, Handle)]
    arrays = [x for x in leaves if x.node.spec.shape]
    others = [
        x for v in elements for x in PartitionedValue.of(v).numeric_leaves if isinstance(x, Handle)
    ]
    for array in arrays:
        base = wrap(array.node)
        link(array, base, _same, _refused, shares=True)
        add_unknown([(other, base) for other in others if other.node.spec.shape], one_way=True)
    return element


def _same(base: Array) -> Any:
    return lookup("copy")(base)


def _refused(base: Array, view: Array) -> Any:
    raise TraceError(
        "assigning to an array that is an element of a list, or a part of a constant array, at an "
        "index which is not known while a graph is built. Copy it first, table[k].copy()"
        f"{at(user_place())}."
    )


class ChosenFunction:
    """The function of a list at an index that is not known.

    Parameters
    ----------
    choices : sequence of callable
    index : Tensor
        An integer.
    """

    def __init__(self, choices: Sequence[Callable[..., Any]], index: Any) -> None:
        n = len(choices)
        self._choices = choices
        outside = lookup("logical_or")(index < -n, index >= n)
        RuntimeChecks.add(outside, IndexError(f"list index out of range{at(user_place())}"))
        self._index = lookup("where")(index < 0, index + n, index)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The result of the function with this index."""
        return self._result(0, args, kwargs)

    def _result(self, k: int, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        call = functools.partial(converted(self._choices[k]), *args, **kwargs)
        if k == len(self._choices) - 1:
            return call()
        return if_expression(self._index == k, call, lambda: self._result(k + 1, args, kwargs))


def position_of_key(key: Any, keys: Sequence[Any]) -> Any:
    """The position of a key that is not known among the keys of a dict, which are numbers."""
    position: Any = np.int64(0)
    found: Any = np.False_
    for k, other in enumerate(keys):
        same = key == other
        position = lookup("where")(same, np.int64(k), position)
        found = lookup("logical_or")(found, same)
    RuntimeChecks.add(
        lookup("logical_not")(found), KeyError(f"the key of a dict is missing{at(user_place())}")
    )
    return position
