"""Updates: variables are read together and written together.

    owners_of   the tensors that variables of a graph belong to
    values_of   the values of several variables at one moment
    write       new values for several variables: all of them or none
    Exclusive   nobody else writes to these variables between reading and writing

Python acts on Ctrl-C between two of its own instructions.  The values are therefore exchanged in a
single call into C: it happens or it does not.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np

from ..core.handle import Handle, _refresh_views, leaf, wrap
from ..core.node import Node, is_variable
from ..errors import ShapeError, at, user_line

_value = attrgetter("node.value")
_exchange = threading.RLock()
_locks: dict[int, tuple[Any, Any]] = {}


def owners_of(variables: Sequence[Node]) -> list[Any]:
    """The tensors that variables belong to; one whose tensor is gone gets another."""
    owners = []
    for node in variables:
        extra: Any = node.extra
        owner = extra["owner"]()
        if owner is None:
            owner = wrap(node)
            extra["owner"] = weakref.ref(owner)
        owners.append(owner)
    return owners


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
    nodes = [_new_leaf(owner, value) for owner, value in zip(owners, values, strict=True)]
    old = [owner.node for owner in owners]  # held, so that nothing is taken down on the way
    try:
        with _exchange:
            list(map(setattr, owners, repeat("node"), nodes))
        _let_views_follow(owners)
    except KeyboardInterrupt:
        _let_views_follow(owners)  # in case that they did not come to it
        raise
    del old


def _let_views_follow(owners: Sequence[Any]) -> None:
    for owner in owners:
        if getattr(owner, "_views", None):
            _refresh_views(owner)


def _new_leaf(owner: Any, value: Any) -> Node:
    old = owner.node
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
            _locks[key] = forget, threading.RLock()
        return _locks[key][1]


class Exclusive:
    """A block in which no other run writes to these variables: updates are not lost.

    Parameters
    ----------
    owners : sequence of Tensor
    """

    def __init__(self, owners: Sequence[Any]) -> None:
        # In one order for all, so that nobody waits in a ring.
        self.locks = [_lock_of(o) for _, o in sorted({id(o): o for o in owners}.items())]

    def __enter__(self) -> None:
        taken = []
        try:
            for lock in self.locks:
                lock.acquire()
                taken.append(lock)
        except BaseException:
            for lock in taken:
                lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        for lock in reversed(self.locks):
            lock.release()
