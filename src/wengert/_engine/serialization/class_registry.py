"""Class registry: the classes of which a file may contain instances.

A file refers to classes (of containers, tensors, graphs) by name, and cannot define or import them:
only classes that the running program has registered are instantiated, without calling `__init__`.

    register_class   register a named tuple, a dataclass or a tensor class (a decorator)
    register_graph   set the class of graphs; called once, by wengert.graphs
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
    """Make `cls` the class of graphs read from files (a decorator)."""
    _Graphs.cls = cls
    return cls


def graph_class() -> type[BaseGraph]:
    """The class of graphs read from files.

    Raises
    ------
    RegistryError
        The module that registers it has not been imported.
    """
    if _Graphs.cls is None:
        raise RegistryError(
            "no class of graphs is registered. Import wengert.graphs first, or use wengert.load, "
            f"which imports it{at(user_line())}."
        )
    return _Graphs.cls


def register_class(cls: Any = None, *, name: str | None = None) -> Any:
    """Allow instances of a class to be saved in files and loaded (a decorator).

    Parameters
    ----------
    cls : class
        A named tuple, a dataclass, or a class derived from `wengert.Tensor`. Loading sets the
        fields of an instance without calling ``__init__``.
    name : str, optional
        The name of the class in files; by default its module and name.

    Returns
    -------
    class
        `cls`.

    Raises
    ------
    StructureError
        `cls` is another kind of class.
    RegistryError
        Another class is registered under that name.

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
        return lambda decorated: register_class(decorated, name=name)
    if not isinstance(cls, type) or not (fields_of(cls) is not None or issubclass(cls, Handle)):
        raise StructureError(
            f"register_class was given {cls!r}. Register a named tuple, a dataclass or a class "
            f"derived from wengert.Tensor{at(user_line())}."
        )
    key = name or f"{cls.__module__}.{cls.__qualname__}"
    registered = _CLASSES.get(key)
    # The same fields: a class may be defined again by reloading a module or running a cell again.
    if registered is not None and fields_of(registered) != fields_of(cls):
        raise RegistryError(
            f"register_class: another class is registered as {key!r}, with the fields "
            f"{fields_of(registered)}. Use another name, name=...{at(user_line())}."
        )
    _CLASSES[key] = cls
    _NAMES[cls] = key
    return cls


def name_of(cls: type) -> str:
    """The name of a class in files: its registered name, or its module and name."""
    return _NAMES.get(cls, f"{cls.__module__}.{cls.__qualname__}")


def is_registered(cls: type) -> bool:
    """Whether a class is registered."""
    return _CLASSES.get(name_of(cls)) is cls


def fields_of(cls: type) -> tuple[str, ...] | None:
    """The field names of a named tuple or dataclass; None for other classes."""
    if dataclasses.is_dataclass(cls):
        return tuple(f.name for f in dataclasses.fields(cls))
    names = getattr(cls, "_fields", None) if issubclass(cls, tuple) else None
    return names if isinstance(names, tuple) else None


def class_named(name: str) -> type:
    """The class registered under a name."""
    cls = _CLASSES.get(name) if type(name) is str else None
    if cls is None:
        raise Damage(
            f"it contains an instance of the class {brief(name)}, which is not registered: import "
            "the module that registers it with wengert.keep.register_class"
        )
    return cls


def container(name: str, fields: list[str], values: list[Any]) -> Any:
    """An instance of a registered named tuple or dataclass."""
    cls = class_named(name)
    registered_fields = fields_of(cls)
    if registered_fields is None or list(registered_fields) != fields:
        raise Damage(
            f"it contains a {name} with the fields {brief(fields)}, but the registered class has "
            f"{list(registered_fields or ())}"
        )
    if issubclass(cls, tuple):
        return tuple.__new__(cls, values)
    instance: Any = object.__new__(cls)
    for field, value in zip(fields, values, strict=True):
        object.__setattr__(instance, field, value)
    return instance


register_class(Tensor, name="Tensor")
for _cls in (EigResult, EighResult, QRResult, SVDResult, SlogdetResult):
    register_class(_cls, name=_cls.__name__)
