"""Assigned parts: attributes, elements and entries of objects from outside that a function assigns.

    self.total = self.total + x          states[0] = y          cache["last"] = z

The value is known when the graph runs.  So while the function is traced the part gets back what it
had; a compiled function assigns it after each run, and a graph refuses.

AssignedPart     a part, which gets a value after each run
assigned_parts   those of a traced function, and the values that are outputs of its graph
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from wengert.errors import TraceError, at

from . import pytree
from .handle import Handle, refuse_ambiguous
from .node import is_variable

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class AssignedPart(NamedTuple):
    """A part of an object from outside.

    owner : callable
        Returns the object, given the arguments of a call; None if it no longer exists.
    place : callable
        Returns the part of an object, whose `cell_contents` is its value.
    leaves, structure
        The value, with markers for the results of the graph.
    """

    owner: Callable[[Arguments], Any]
    place: Callable[[Any], Any]
    leaves: list[Any]
    structure: Any

    def assign(self, values: Iterator[Any], given: Arguments) -> None:
        """Assign the part after a run, whose next results are `values`."""
        leaves = [
            next(values) if x is _RESULT else _of_python(next(values)) if x is _NUMBER else x
            for x in self.leaves
        ]
        owner = self.owner(given)
        if owner is not None:
            self.place(owner).cell_contents = pytree.unflatten(self.structure, leaves)


# They replace results of the graph among the leaves of a value: arrays, and numbers of Python.
_RESULT, _NUMBER = object(), object()


def assigned_parts(
    changes: Any,
    arguments: Arguments,
    what: str,
    since: int,
    found: list[AssignedPart] | None = None,
    original: Callable[[Any], Any] = lambda x: x,
) -> list[Any]:
    """The values that a function assigns to parts of objects from outside.

    Parameters
    ----------
    changes : object
        What the front end has noted; ``changes.taken(is_kept)`` returns parts and their values, and
        gives the parts back what they had.
    arguments : tuple
        The arguments with which the function was traced. Containers among them are copies.
    what : str
        The name of the function.
    since : int
        The serial number at which tracing began.
    found : list, optional
        Extended by the parts; if None, they are refused, except those of arguments.
    original : callable
        The object that a replacement of a captured one stands for.
    """
    refused = found is None  # known values, which a graph keeps as constants, may stay
    parts = changes.taken(lambda x: _is_result(x, since) and not (refused and _is_known(x)))
    if not parts:
        return []
    paths = dict(_paths(arguments, ()))
    owners = [place.owner for place, _, _ in parts]
    rest = []
    for place, value, where in parts:
        kind: Any = type(place)
        kept = None if refused else value  # which may refer to an owner
        rest.append((functools.partial(kind, key=place.key), str(place), kept, where))
        del place, value
    del parts
    changes.forget()
    _drop_garbage(owners)
    if refused and any(x is not None and id(x) not in paths for x in owners):
        gc.collect()  # cycles that the function has made may refer to them
        _drop_garbage(owners)
    outputs: list[Any] = []
    for owner, (moved, name, value, where) in zip(owners, rest, strict=True):
        if owner is None:
            continue
        path = paths.get(id(owner))
        if found is None:
            if path is None:
                raise _refused(what, name, where)
            continue
        leaves, structure = pytree.flatten(value)
        results = [x for x in leaves if _is_result(x, since)]
        for x in results:
            refuse_ambiguous(x.node)
        outputs += results
        kept = [_kind(x) if _is_result(x, since) else x for x in leaves]
        locate = _by_path(path) if path is not None else _by_reference(original(owner))
        found.append(AssignedPart(locate, moved, kept, structure))
    return outputs


def _is_result(x: Any, since: int) -> bool:
    """Whether a value was computed by the traced function."""
    if not isinstance(x, Handle) or is_variable(x.node):
        return False
    return x.node.value is None or x.node.serial >= since


def _of_python(x: Any) -> Any:
    """A number of NumPy as one of Python."""
    return x.item() if isinstance(x, np.generic | np.ndarray) else x


def _kind(x: Handle) -> object:
    """What replaces a result."""
    return _NUMBER if x.node.spec.weak else _RESULT


def _is_known(x: Handle) -> bool:
    """Whether its value does not depend on the arguments."""
    return x.node.value is not None


def _refused(what: str, name: str, where: str) -> TraceError:
    return TraceError(
        f"{what} assigns {name}, an object from outside, which is only possible in a function "
        "compiled with wengert.jit, after its run. Return the value instead, and assign it "
        f"afterwards{at(where)}."
    )


def _drop_garbage(owners: list[Any]) -> None:
    """Replace objects that only this list refers to by None: the function has made them."""
    while True:
        alone = [
            k for k in range(len(owners)) if owners[k] is not None and _references(owners, k) <= 0
        ]
        if not alone:
            return
        for k in alone:
            owners[k] = None


def _references(owners: list[Any], k: int) -> int:
    """How many other references there are to an object."""
    same = sum(x is owners[k] for x in owners)
    return sys.getrefcount(owners[k]) - same - _OWN


_OWN = 0
_OWN = _references([object()], 0)


def _paths(x: Any, path: tuple[Any, ...]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The mutable containers in a value, by identity, and how to reach them."""
    if isinstance(x, list | tuple):
        inner: Sequence[Any] = [((_item, k), v) for k, v in enumerate(x)]
    elif isinstance(x, dict):
        inner = [((_item, k), v) for k, v in x.items()]
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        names = [f.name for f in dataclasses.fields(x)]
        inner = [((getattr, n), getattr(x, n)) for n in names if hasattr(x, n)]
    elif type(x) is SimpleNamespace:
        inner = [((getattr, n), v) for n, v in vars(x).items()]
    else:
        return
    yield id(x), path
    for step, part in inner:
        yield from _paths(part, (*path, step))


def _item(x: Any, key: Any) -> Any:
    return x[key]


def _by_path(path: tuple[Any, ...]) -> Callable[[Arguments], Any]:
    def locate(given: Arguments) -> Any:
        x: Any = given
        for step, key in path:
            x = step(x, key)
        return x

    return locate


def _by_reference(x: Any) -> Callable[[Arguments], Any]:
    """The object itself, without keeping it alive if that is possible."""
    try:
        reference: Callable[[], Any] = weakref.ref(x)
    except TypeError:  # lists, dicts and cells
        return lambda given: x
    return lambda given: reference()
