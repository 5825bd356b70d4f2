"""Statements and calls that change Python objects.

While a block is traced, the contents of an object are recorded before its first change
(`Speculation.note_change`), or the change is refused.

    x[i] = y, x.a = y    before_store(x)[i] = y, before_store(x, "a").a = y
    x += y               before_augmented(x); x += y
    x = [a, b]           x = new_container([a, b])

before_store      called with the object whose element or attribute is assigned or deleted
store_global      called with the globals of a module that are about to be assigned
before_augmented  called with the value of a variable before ``x += y``
new_container     called with a list or dict display
new_variables     called with the local variables that inner functions assign
check_method      records or refuses what a method written in C changes
returning_new     a function whose results are recorded as new objects
REPLACEMENTS      replacements of built-in functions that change or create objects
"""

from __future__ import annotations

import array
import collections
import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from wengert._engine.core.conversion_hook import converted, is_immutable, is_library_class
from wengert._engine.core.handle import Handle

from ..assignment_targets import containers, contents
from ..state import Speculation
from .chosen_elements import ListTarget
from .iterables import is_unknown_length

_MUTABLE = (list, dict, set, bytearray, np.ndarray, collections.deque, array.array)
_RECORDED = (list, dict)  # those whose contents can be recorded and restored
_PURE = frozenset(
    "copy count index get items keys values union intersection difference issubset issuperset "
    "sum mean min max any all dot reshape ravel flatten transpose astype tolist item argmin argmax "
    "round conj cumsum cumprod prod std var trace squeeze swapaxes repeat take nonzero view "
    "clip diagonal argsort searchsorted ptp tobytes __getitem__ __len__ __contains__".split()
)


def before_store(x: Any, attribute: str | None = None, is_augmented: bool = False) -> Any:
    """Record that an element or attribute of `x` is about to be assigned or deleted; return `x`.

    Parameters
    ----------
    x : object
    attribute : str, optional
        The attribute; None for an element.
    is_augmented : bool
        Whether the statement is an augmented assignment, as ``x[i] += y``.
    """
    if isinstance(x, Handle) or is_unknown_length(x) or not Speculation.notes():
        return x
    if type(x) is list and attribute is None:
        return ListTarget(x, functools.partial(_note_elements, x, is_augmented))
    if attribute is not None:
        member = inspect.getattr_static(type(x), attribute, None)
        if type(member) is property and type(member.fset) is FunctionType:
            return PropertyTarget(x, member)
    Speculation.note_change(x, attribute)
    if is_augmented:
        inside = x if attribute is None else [getattr(x, attribute, None)]
        for value in inside.values() if type(inside) is dict else inside:
            before_augmented(value)
    return x


class PropertyTarget:
    """The object of a statement ``x.name = value`` whose attribute is a property of the user.

    Parameters
    ----------
    owner : object
    member : property
    """

    __slots__ = ("_member", "_owner")

    def __init__(self, owner: Any, member: property) -> None:
        object.__setattr__(self, "_owner", owner)
        object.__setattr__(self, "_member", member)

    def __getattr__(self, name: str) -> Any:
        get = self._member.fget
        return converted(get)(self._owner) if get is not None else getattr(self._owner, name)

    def __setattr__(self, name: str, value: object) -> None:
        converted(self._member.fset)(self._owner, value)

    def __delattr__(self, name: str) -> None:
        Speculation.note_change(self._owner, name)
        delattr(self._owner, name)


def store_global(module: dict[str, Any], name: str, is_augmented: bool) -> dict[str, Any]:
    """The globals of a module, of which the function is about to assign a variable."""
    Speculation.note_change(module, name)
    if is_augmented:
        before_augmented(module.get(name))
    return module


def _note_elements(x: list[Any], is_augmented: bool) -> None:
    Speculation.note_change(x)
    for value in x if is_augmented else ():
        before_augmented(value)


def before_augmented(x: Any) -> None:
    """Record or refuse a change of `x` in place, by the following ``x += y``."""
    if isinstance(x, Handle) or not Speculation.is_open():
        return
    refusal = f"it changes a {type(x).__name__} in place"
    if isinstance(x, _MUTABLE) and not isinstance(x, np.ndarray):
        _note(x, refusal)
    elif hasattr(x, "__iadd__") and not is_library_class(type(x)):
        Speculation.refuse(refusal)


def new_container(x: Any) -> Any:
    """Record a list or dict display, with the containers in it, as new objects; return it."""
    if Speculation.notes():
        for container in containers(x):
            Speculation.note_new(container)
    return x


def new_variables(names: FunctionType) -> None:
    """Record local variables as new objects; `names` is a lambda that reads them."""
    for cell in names.__closure__ or ():
        Speculation.note_new(cell)


def check_method(f: Any) -> None:
    """Record or refuse the change that a method written in C makes to its object."""
    owner = getattr(f, "__self__", None)
    if isinstance(owner, _MUTABLE) and f.__name__ not in _PURE:
        _note(owner, f"it calls {type(owner).__name__}.{f.__name__}")


def _note(x: Any, refusal: str) -> None:
    if not Speculation.is_open():
        return
    if type(x) in _RECORDED:
        Speculation.note_change(x)
    elif not Speculation.is_new(x):
        Speculation.refuse(refusal)


def _setattr(x: Any, name: str, value: object) -> None:
    setattr(before_store(x, name), name, value)


def _delattr(x: Any, name: str) -> None:
    delattr(before_store(x, name), name)


def _setitem(x: Any, key: object, value: object) -> None:
    before_store(x)[key] = value


def _next(*args: Any) -> Any:
    if args:
        _note(args[0], "it calls next()")
    return next(*args)


def returning_new(f: Callable[..., Any], deep: bool = False) -> Callable[..., Any]:
    """A function whose results are recorded as new objects.

    Parameters
    ----------
    f : callable
    deep : bool
        Whether all objects that a result refers to are new too.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        result = f(*args, **kwargs)
        if not any(result is a for a in args):
            for x in _reachable(result) if deep else [result]:
                Speculation.note_new(x)
        return result

    return functools.wraps(f, updated=())(call)


def _reachable(x: Any) -> list[Any]:
    """An object, and the mutable objects that it refers to, directly or not."""
    objects: dict[int, Any] = {}
    stack = [x]
    while stack and Speculation.notes():
        x = stack.pop()
        if id(x) in objects or isinstance(x, Handle | np.ndarray | type) or is_immutable(x):
            continue
        objects[id(x)] = x
        stack += x if isinstance(x, tuple) else contents(x).values()
    return list(objects.values())


REPLACEMENTS: dict[Any, Any] = {
    setattr: _setattr,
    delattr: _delattr,
    next: _next,
    **{f: returning_new(f) for f in (copy.copy, dataclasses.replace)},
    copy.deepcopy: returning_new(copy.deepcopy, deep=True),
}
TYPE_REPLACEMENTS: dict[type, Any] = {list: returning_new(list), dict: returning_new(dict)}
