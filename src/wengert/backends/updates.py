"""Updates: variables are read together and written together.

    values_of     the values of several variables at one moment
    write         new values for several variables: all of them or none
    Writer        the same for a program that does it at every run
    exclusively   nobody else writes to some variables between reading and writing

Python acts on Ctrl-C between two of its own instructions.  The values are therefore exchanged in a
single call into C: it happens or it does not.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, methodcaller
from typing import Any, TypeVar

import numpy as np

from ..core.handle import Handle, expect_views, leaf, refresh_views
from ..core.locks import lock
from ..core.node import INPUT, NO_PARAMS, Node, is_variable
from ..errors import ShapeError, at, user_line

Result = TypeVar("Result")
_node, _value = attrgetter("node"), attrgetter("node.value")
_exchange = lock()
_locks: dict[int, tuple[Any, Any]] = {}


def values_of(owners: Sequence[Handle]) -> list[Any]:
    """The values of several variables, all before or all after any writing."""
    if not owners:
        return []
    with _exchange:
        return list(map(_value, owners))


def write(owners: Sequence[Any], values: Sequence[Any]) -> None:
    """Give variables new values, all of them or, if anything goes wrong, none.

    Parameters
    ----------
    owners : sequence of Tensor
    values : sequence
        Arrays that belong to nobody else.

    Raises
    ------
    ShapeError
        A value has another shape than its variable.
    """
    old = list(map(_node, owners))
    _exchanged(owners, old, list(map(_new_leaf, owners, old, values)))


class Writer:
    """Writes to the same variables again and again values of the same shapes, dtypes and layouts.

    Parameters
    ----------
    owners : sequence of Tensor
    """

    def __init__(self, owners: Sequence[Any]) -> None:
        self.owners = list(owners)
        for owner in self.owners:
            expect_views(owner)
        self._last = [-1] * len(self.owners)  # serials of the leaves that it has made

    def __call__(self, values: Sequence[Any]) -> None:
        """Write; see `write`.

        Where nobody else has written since, and the last value was taken as it was, this one can
        be too.
        """
        old = list(map(_node, self.owners))
        given = [v if type(v) is np.ndarray else np.asarray(v) for v in values]
        nodes = [
            type(o)(INPUT, (), NO_PARAMS, v, o.extra.copy())
            if o.serial == last
            else _new_leaf(owner, o, v)
            for owner, o, v, last in zip(self.owners, old, given, self._last, strict=True)
        ]
        _exchanged(self.owners, old, nodes)
        self._last = [n.serial if n.value is v else -1 for n, v in zip(nodes, given, strict=True)]


def _exchanged(owners: Sequence[Any], old: Sequence[Node], nodes: Sequence[Node]) -> None:
    try:
        with _exchange:
            list(map(setattr, owners, repeat("node"), nodes))
        _let_views_follow(owners)
    except KeyboardInterrupt:
        _let_views_follow(owners)  # in case that they did not come to it
        raise
    del old  # held until now, so that nothing is taken down on the way


def _let_views_follow(owners: Sequence[Any]) -> None:
    for owner in owners:
        views = getattr(owner, "_views", None)
        if views and any([view() is not None for view in views]):
            refresh_views(owner)


def _new_leaf(owner: Any, old: Node, value: Any) -> Node:
    before, extra = old.value, old.extra
    if type(before) is np.ndarray and not before.shape and isinstance(value, np.generic):
        value = np.asarray(value)  # a result without axes
    if (
        type(value) is type(before) is np.ndarray
        and extra is not None
        and "owner" in extra
        and not old.args
        and value.strides == before.strides
        and value.shape == before.shape
        and value.dtype == before.dtype
    ):  # what is there nearly always, so it has to be quick
        return type(old)(INPUT, (), NO_PARAMS, value, extra.copy())
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
    node = leaf(array, owner, type(old) is Node)
    if is_variable(old):  # its name and hooks stay
        node.extra = {**(old.extra or {}), **(node.extra or {})}
    return node


def _lock_of(owner: Any) -> Any:
    key = id(owner)
    with _exchange:
        if key not in _locks:
            forget = weakref.ref(owner, lambda _: _locks.pop(key, None))
            _locks[key] = forget, lock()
        return _locks[key][1]


def locks_of(owners: Sequence[Any]) -> list[Any]:
    """The locks of some variables, in one order for all, so that nobody waits in a ring."""
    return [_lock_of(o) for _, o in sorted({id(o): o for o in owners}.items())]


_acquire, _release = methodcaller("acquire"), methodcaller("release")


def exclusively(locks: Sequence[Any], run: Callable[[], Result]) -> Result:
    """What `run` returns, while no other run writes to the variables of these locks.

    Taking them, noting that they are taken, and giving them back are each one call into C, so that
    Ctrl-C cannot leave one of them taken.
    """
    taken: list[Any] = []
    giving_back = map(_release, taken)
    try:
        taken.extend(filter(_acquire, locks))
        return run()
    finally:
        list(giving_back)
