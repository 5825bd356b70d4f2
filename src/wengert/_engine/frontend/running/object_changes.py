"""Object changes: statements and calls that change Python objects.

While a block is traced, an object is noted before its first change (`Speculation.note_change`), or
the change is refused.

stored        the object whose element or attribute is about to be assigned or deleted
augmented     the value of a variable before ``x += y``
made          a list or dict that the function has just made
variables     the variables of a call that functions inside it assign
check_method  a call of a method written in C
making        a function that returns a new object
REPLACEMENTS     replacements of functions of Python that change objects, or make new ones
"""

from __future__ import annotations

import array
import collections
import copy
import dataclasses
import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.library_code import is_immutable, is_library_class

from ..assignment_targets import containers, contents
from ..state import Speculation

_MUTABLE = (list, dict, set, bytearray, np.ndarray, collections.deque, array.array)
_NOTED = (list, dict)  # of these, the classes whose changes are noted
_PURE = frozenset(
    "copy count index get items keys values union intersection difference issubset issuperset "
    "sum mean min max any all dot reshape ravel flatten transpose astype tolist item argmin argmax "
    "round conj cumsum cumprod prod std var trace squeeze swapaxes repeat take nonzero view "
    "clip diagonal argsort searchsorted ptp tobytes __getitem__ __len__ __contains__".split()
)


def stored(x: Any, attribute: str | None = None, is_augmented: bool = False) -> Any:
    """The object whose element or attribute is about to be assigned or deleted.

    Parameters
    ----------
    x : object
    attribute : str, optional
        The attribute; None for an element.
    is_augmented : bool
        Whether by ``x[i] += y`` or the like.
    """
    if isinstance(x, Handle) or not Speculation.notes():
        return x
    Speculation.note_change(x, attribute)
    if is_augmented:
        inside = x if attribute is None else [getattr(x, attribute, None)]
        for value in inside.values() if type(inside) is dict else inside:
            augmented(value)
    return x


def augmented(x: Any) -> None:
    """The value of a variable before ``x += y``, which may change it in place."""
    if isinstance(x, Handle) or not Speculation.is_open():
        return
    what = f"it changes a {type(x).__name__} in place"
    if isinstance(x, _MUTABLE) and not isinstance(x, np.ndarray):
        _note(x, what)
    elif hasattr(x, "__iadd__") and not is_library_class(type(x)):
        Speculation.refuse(what)


def made(x: Any) -> Any:
    """A list or dict that the function has just made."""
    if Speculation.notes():
        for container in containers(x):
            Speculation.note_new(container)
    return x


def variables(names: FunctionType) -> None:
    """The variables of a call that functions inside it assign: those that `names` refers to."""
    for cell in names.__closure__ or ():
        Speculation.note_new(cell)


def check_method(f: Any) -> None:
    """Note or refuse the change of an object by a method written in C."""
    owner = getattr(f, "__self__", None)
    if isinstance(owner, _MUTABLE) and f.__name__ not in _PURE:
        _note(owner, f"it calls {type(owner).__name__}.{f.__name__}")


def _note(x: Any, refusal: str) -> None:
    if not Speculation.is_open():
        return
    if type(x) in _NOTED:
        Speculation.note_change(x)
    elif not Speculation.is_new(x):
        Speculation.refuse(refusal)


def _setattr(x: Any, name: str, value: object) -> None:
    setattr(stored(x, name), name, value)


def _delattr(x: Any, name: str) -> None:
    delattr(stored(x, name), name)


def _setitem(x: Any, key: object, value: object) -> None:
    stored(x)[key] = value


def _next(*args: Any) -> Any:
    if args:
        _note(args[0], "it calls next()")
    return next(*args)


def making(f: Callable[..., Any], deep: bool = False) -> Callable[..., Any]:
    """A function that returns a new object; `deep`, if so is all that it refers to."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = f(*args, **kwargs)
        if not any(found is a for a in args):
            for x in _reached(found) if deep else [found]:
                Speculation.note_new(x)
        return found

    return functools.wraps(f, updated=())(call)


def _reached(x: Any) -> list[Any]:
    """An object, and the lists, dicts and objects in it."""
    found: dict[int, Any] = {}
    waiting = [x]
    while waiting and Speculation.notes():
        x = waiting.pop()
        if id(x) in found or isinstance(x, Handle | np.ndarray | type) or is_immutable(x):
            continue
        found[id(x)] = x
        waiting += x if isinstance(x, tuple) else contents(x).values()
    return list(found.values())


REPLACEMENTS: dict[Any, Any] = {
    setattr: _setattr,
    delattr: _delattr,
    next: _next,
    **{f: making(f) for f in (copy.copy, dataclasses.replace)},
    copy.deepcopy: making(copy.deepcopy, deep=True),
}
TYPE_REPLACEMENTS: dict[type, Any] = {list: making(list), dict: making(dict)}
