"""Variable updates: atomic reads and writes of several variables.

    values_of       a consistent snapshot of the values of several variables
    write           new values for several variables: all of them or none
    exchanged       the same with new nodes; replaced, if a variable has not been written since
    VariableWriter  the same for a program that writes at every run
    Lending         values for a run that writes to some of them in place
    held_by         the value of a variable, which may be on a device
    is_unreferenced whether nothing else refers to it
    exclusively     runs a function with exclusive access to some variables

Python handles Ctrl-C between two bytecode instructions.  The values are therefore exchanged in a
single call into C, which cannot be interrupted.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Sequence
from itertools import repeat, starmap
from operator import attrgetter, methodcaller
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wengert._engine.core.device_arrays import DeviceValue, device_value
from wengert._engine.core.handle import Handle, expect_views, leaf, leaf_like, refresh_views
from wengert._engine.core.node import INPUT, NO_PARAMS, Node, is_variable
from wengert._engine.core.thread_state import lock
from wengert.errors import ShapeError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Array
    from wengert._engine.tensor.tensor import Tensor

Result = TypeVar("Result")
_node, _value = attrgetter("node"), attrgetter("node.value")
_serial, _views = attrgetter("serial"), attrgetter("_views")
_exchange = lock()
_locks: dict[int, tuple[Any, Any]] = {}
_lent: dict[int, int] = {}  # variables that a run writes to in place, and its thread


def values_of(owners: Sequence[Handle], read: Callable[[Any], Any] = _value) -> list[Any]:
    """The values of several variables, all before or all after any concurrent write.

    `read` takes what is wanted of each; by default the value.
    """
    if not owners:
        return []
    while True:
        with _exchange:
            busy = _lent_elsewhere(owners) if _lent else None
            if busy is None:
                return list(map(read, owners))
        with _lock_of(busy):  # wait for that run
            pass


def write(owners: Sequence[Any], values: Sequence[Any]) -> None:
    """Give variables new values: all of them or, if an error occurs, none.

    Parameters
    ----------
    owners : sequence of Tensor
    values : sequence
        Arrays without other references.

    Raises
    ------
    ShapeError
        A value has another shape than its variable.
    """
    old = list(map(_node, owners))
    exchanged(owners, old, list(map(_new_leaf, owners, old, values)))


class VariableWriter:
    """Writes new values of unchanged shape, dtype and layout to the same variables.

    Parameters
    ----------
    owners : sequence of Tensor
    """

    def __init__(self, owners: Sequence[Any]) -> None:
        self.owners = list(owners)
        for owner in self.owners:
            expect_views(owner)
        self._last = [-1] * len(self.owners)  # serials of the leaves that it has created

    def __call__(self, values: Sequence[Any]) -> None:
        """Write; see `write`.

        If the variable has not been written otherwise since, and the last value was valid without
        conversion, so is this one; and a leaf referenced only by its variable is reused.
        """
        old = list(map(_node, self.owners))
        given = [v if type(v) is np.ndarray else np.asarray(v) for v in values]
        known = list(map(_serial, old)) == self._last and not any(map(_views, self.owners))
        if known and max(map(sys.getrefcount, old)) <= _LISTED:
            with _exchange:
                list(map(setattr, old, repeat("value"), given))
            return
        nodes = [
            type(o)(INPUT, (), NO_PARAMS, v, o.info.copy())
            if o.serial == last
            else _new_leaf(owner, o, v)
            for owner, o, v, last in zip(self.owners, old, given, self._last, strict=True)
        ]
        exchanged(self.owners, old, nodes)
        self._last = [n.serial if n.value is v else -1 for n, v in zip(nodes, given, strict=True)]


def exchanged(owners: Sequence[Any], old: Sequence[Node], nodes: Sequence[Node]) -> None:
    """Give variables new nodes: all of them in one step; `old` are their nodes before."""
    try:
        with _exchange:
            list(map(setattr, owners, repeat("node"), nodes))
        _let_views_follow(owners)
    except KeyboardInterrupt:
        _let_views_follow(owners)  # in case of an earlier interrupt
        raise
    del old  # kept until now, so that no destructor runs in between


def replaced(owner: Any, old: Node, node: Node) -> bool:
    """Give a variable another node of the same value, unless it has been written since."""
    with _exchange:
        if owner.node is not old:
            return False
        owner.node = node
        return True


def _let_views_follow(owners: Sequence[Any]) -> None:
    for owner in owners:
        views = getattr(owner, "_views", None)
        if not views:
            continue
        freed = [view for view in views if view() is None]
        if len(freed) < len(views):
            refresh_views(owner)
        for view in freed:  # one by one, as another thread may add a view; then runs are quick
            views.remove(view)


def _new_leaf(owner: Any, old: Node, value: Array) -> Node:
    before, info = old.value, old.info
    if type(before) is np.ndarray and not before.shape and isinstance(value, np.generic):
        value = np.asarray(value)  # a 0-d result
    if (
        type(value) is type(before) is np.ndarray
        and info is not None
        and info.owner is not None
        and not old.args
        and value.strides == before.strides
        and value.shape == before.shape
        and value.dtype == before.dtype
    ):  # the common case, so it must be fast
        return type(old)(INPUT, (), NO_PARAMS, value, info.copy())
    spec = old.spec
    array = np.asarray(value, dtype=spec.dtype)
    if array.shape != spec.shape:
        raise ShapeError(
            f"an update gives the variable {old.name or ''} of shape {spec.shape} a value of shape "
            f"{array.shape}. A variable keeps its shape{at(user_line())}."
        )
    if type(old.value) is np.ndarray and array.strides != old.value.strides:
        array, given = np.empty_like(old.value), array
        array[...] = given
    return (
        leaf_like(old, array, owner) if is_variable(old) else leaf(array, owner, type(old) is Node)
    )


def _lock_of(owner: Array | Tensor) -> Any:
    key = id(owner)
    with _exchange:
        if key not in _locks:
            forget = weakref.ref(owner, lambda _: _locks.pop(key, None))
            _locks[key] = forget, lock()
        return _locks[key][1]


def locks_of(owners: Sequence[Any]) -> list[Any]:
    """The locks of some variables in a global order, to avoid deadlock."""
    return [_lock_of(o) for _, o in sorted({id(o): o for o in owners}.items())]


class Lending:
    """Values for a run that writes to the arrays of some variables in place.

    Such an array must have no other references, from older nodes of a tape or from the user;
    otherwise the run gets a copy.  During the run, compiled functions in other threads wait; eager
    ones may see a partly written array, as in PyTorch.

    Parameters
    ----------
    owners : sequence of Tensor
    places : sequence of int
        Those whose arrays are written to; the caller of `run` has their locks (`exclusively`).
    write : callable
        Takes the result of the run, and gives the variables their new values.
    """

    def __init__(
        self, owners: Sequence[Any], places: Sequence[int], write: Callable[[Any], Any]
    ) -> None:
        self._owners, self._places, self._write = owners, places, write
        self._keys = [id(owners[k]) for k in places]

    def run(self, entry: Callable[..., Any], fed: Sequence[Any], missed: Any) -> Any:
        """Run the entry and write its result; return `missed` if the entry is not applicable.

        In-place writes of the run cannot be undone.  Therefore all updates are written once it has
        run, even after Ctrl-C: the call into C that runs it also stores its result.
        """
        found: list[Any] = []
        giving_back = map(_lent.pop, self._keys, repeat(None))
        try:
            fed = (*fed, *self._values())
            found.extend(starmap(entry, (fed,)))
            if found[0] is not missed:
                self._write(found[0])
            return found[0]
        except BaseException:
            if found and found[0] is not missed:
                self._write(found[0])
            raise
        finally:
            list(giving_back)

    def _values(self) -> list[Any]:
        while True:
            values = values_of(self._owners)
            with _exchange:
                if not _lent or _lent_elsewhere(self._owners) is None:
                    _lent.update(zip(self._keys, repeat(get_ident())))
                    break
        for k in self._places:
            if not _is_alone(self._owners[k], values, k):
                values[k] = values[k].copy()
        return values


def _lent_elsewhere(owners: Sequence[Any]) -> Any:
    """One of the given variables that a run in another thread writes to, or None."""
    here = get_ident()
    return next((o for o in owners if _lent.get(id(o), here) != here), None)


def _is_alone(owner: Any, values: list[Any], k: int) -> bool:
    """Whether the array is referenced only by its node, and the node only by its variable."""
    if sys.getrefcount(owner.node) > _NODE or sys.getrefcount(values[k]) > _ARRAY:
        return False
    flags = values[k].flags
    return flags.owndata and flags.writeable  # type: ignore[no-any-return]


def held_by(owner: Any) -> tuple[Node, Any]:
    """The node of a variable with its value, or with its state if this is on a device."""
    node = owner.node
    state = device_value(node)
    return node, node.value if state is None else state


def is_unreferenced(held: Sequence[tuple[Node, Any]], k: int, owner: Any) -> bool:
    """Whether only nodes of the variable refer to the array of a result of `held_by`."""
    array = held[k][1]
    if type(array) is DeviceValue:
        return True
    nodes = sum(device_value(n) is None and n.value is array for n in owner.other_nodes())
    return array.base is None and sys.getrefcount(array) <= _HELD + nodes


def _found(limit: str) -> int:
    """The reference count in this case, as seen inside `_is_alone`."""
    handle = Handle()
    handle.node = leaf(np.empty(1), handle)
    for n in range(1, 20):
        globals()[limit] = n
        if _is_alone(handle, [handle.node.value], 0):
            return n
    raise AssertionError("unknown behavior of reference counts in this Python interpreter")


def _found_held() -> int:
    """The reference count in this case, as seen inside `is_unreferenced`."""
    owner = Handle()
    owner.node = leaf(np.empty(1), owner)
    held = [held_by(owner)]
    for n in range(1, 20):
        globals()["_HELD"] = n
        if is_unreferenced(held, 0, owner):
            return n
    raise AssertionError("unknown behavior of reference counts in this Python interpreter")


_HELD = 0
_HELD = _found_held()
_NODE, _ARRAY = 20, 20
_NODE = _found("_NODE")
_ARRAY = _found("_ARRAY")
# The same for a node referenced by its variable and a list, as seen by `map`.
_LISTED = max(map(sys.getrefcount, [leaf(np.empty(1), Handle())])) + 1

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lent.clear)

_acquire, _release = methodcaller("acquire"), methodcaller("release")


def exclusively(locks: Sequence[Any], run: Callable[[], Result]) -> Result:
    """Call `run` while no other run writes to the variables of these locks.

    Acquiring, recording and releasing them are each one call into C, so that Ctrl-C cannot leave
    one of them locked.
    """
    taken: list[Any] = []
    giving_back = map(_release, taken)
    try:
        taken.extend(filter(_acquire, locks))
        return run()
    finally:
        list(giving_back)
