"""Updates: variables are read together and written together.

    values_of     the values of several variables at one moment
    write         new values for several variables: all of them or none
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

from ..core.handle import Handle, leaf, refresh_views
from ..core.locks import lock
from ..core.node import INPUT, NO_PARAMS, Node, is_variable
from ..errors import ShapeError, at, user_line

Result = TypeVar("Result")
_value = attrgetter("node.value")
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
            refresh_views(owner)


def _new_leaf(owner: Any, value: Any) -> Node:
    old = owner.node
    before = old.value
    if type(value) is type(before) is np.ndarray and is_variable(old) and _alike(value, before):
        return type(old)(INPUT, (), NO_PARAMS, value, dict(old.extra))
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


def _alike(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.strides == b.strides


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
