"""Class registry: the classes that a file may name.

A file names classes (of containers, of tensors, of graphs) and never brings or imports one: only
what the running program has entered here is made, and without running its `__init__`.

    register_class   a named tuple, a dataclass or a class of tensors (a decorator)
    register_graph   the class that graphs are made of, set once by the floor above
"""

from __future__ import annotations

import dataclasses
from typing import Any

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.handle import Handle
from wengert._engine.ops.linalg.results import (
    EighResult,
    EigResult,
    QRResult,
    SlogdetResult,
    SVDResult,
)
from wengert._engine.tensor import Tensor
from wengert.errors import RegistryError, StructureError, at, user_line

from .errors import Damage, brief

_CLASSES: dict[str, type] = {}
_NAMES: dict[type, str] = {}


class _Graphs:
    cls: type[BaseGraph] | None = None


def register_graph(cls: type[BaseGraph]) -> type[BaseGraph]:
    """Make `cls` the class of graphs that are read (a decorator)."""
    _Graphs.cls = cls
    return cls


def graph_class() -> type[BaseGraph]:
    """The class of graphs that are read.

    Raises
    ------
    RegistryError
        The floor above has not been imported.
    """
    if _Graphs.cls is None:
        raise RegistryError(
            "the class of graphs is not known yet. Import wengert.graphs first, or use "
            f"wengert.load, which does{at(user_line())}."
        )
    return _Graphs.cls


def register_class(cls: Any = None, *, name: str | None = None) -> Any:
    """Allow a class to be kept in files and made when they are read (a decorator).

    Parameters
    ----------
    cls : class
        A named tuple, a dataclass, or a class derived from `wengert.Tensor`. When it is read its
        fields are set, and its ``__init__`` does not run.
    name : str, optional
        What it is known by in files; by default its module and name.

    Returns
    -------
    class
        The same.

    Raises
    ------
    StructureError
        It is another kind of class.
    RegistryError
        Another class has that name.

    Examples
    --------
    >>> import io, numpy as np, wengert as wg
    >>> from typing import NamedTuple
    >>> @wg.keep.register_class(name="Layer")
    ... class Layer(NamedTuple):
    ...     weight: np.ndarray
    ...     activation: str
    >>> file = io.BytesIO()
    >>> wg.save([Layer(np.ones(2), "tanh")], file)
    >>> _ = file.seek(0)
    >>> wg.load(file)
    [Layer(weight=array([1., 1.]), activation='tanh')]
    """
    if cls is None:
        return lambda below: register_class(below, name=name)
    if not isinstance(cls, type) or not (fields_of(cls) is not None or issubclass(cls, Handle)):
        raise StructureError(
            f"register_class was given {cls!r}. What can be kept by name is a named tuple, a "
            f"dataclass or a class derived from wengert.Tensor{at(user_line())}."
        )
    word = name or f"{cls.__module__}.{cls.__qualname__}"
    other = _CLASSES.get(word)
    # A module that is loaded again, or a notebook's cell that is run again, defines it anew.
    if other is not None and fields_of(other) != fields_of(cls):
        raise RegistryError(
            f"register_class: another class is registered as {word!r}, with the fields "
            f"{fields_of(other)}. Give this one a name of its own, name=...{at(user_line())}."
        )
    _CLASSES[word] = cls
    _NAMES[cls] = word
    return cls


def name_of(cls: type) -> str:
    """What a class is known by: its module and name, or the name that it was registered under."""
    return _NAMES.get(cls, f"{cls.__module__}.{cls.__qualname__}")


def is_registered(cls: type) -> bool:
    """Whether a class may be kept."""
    return _CLASSES.get(name_of(cls)) is cls


def fields_of(cls: type) -> tuple[str, ...] | None:
    """The fields of a named tuple or dataclass, None for any other class."""
    if dataclasses.is_dataclass(cls):
        return tuple(f.name for f in dataclasses.fields(cls))
    names = getattr(cls, "_fields", None) if issubclass(cls, tuple) else None
    return names if isinstance(names, tuple) else None


def found(name: str) -> type:
    """The class of that name."""
    cls = _CLASSES.get(name) if type(name) is str else None
    if cls is None:
        raise Damage(
            f"it holds something of the class {brief(name)}, which is not registered here: import "
            "the module that defines it and enters it with wengert.keep.register_class"
        )
    return cls


def container(name: str, fields: list[str], values: list[Any]) -> Any:
    """A named tuple or dataclass of a registered class with these fields."""
    cls = found(name)
    have = fields_of(cls)
    if have is None or list(have) != fields:
        raise Damage(
            f"it holds a {name} with the fields {brief(fields)}, and the class registered here has "
            f"{list(have or ())}"
        )
    if issubclass(cls, tuple):
        return tuple.__new__(cls, values)
    made: Any = object.__new__(cls)
    for field, value in zip(fields, values, strict=True):
        object.__setattr__(made, field, value)
    return made


register_class(Tensor, name="Tensor")
for _cls in (EigResult, EighResult, QRResult, SVDResult, SlogdetResult):
    register_class(_cls, name=_cls.__name__)
