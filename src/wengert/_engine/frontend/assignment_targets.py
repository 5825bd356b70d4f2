"""Assignment targets: elements, attributes and variables that a traced block assigns.

    states[k] = x          element k of a list
    table["a"] = x         entry 'a' of a dict
    self.position += x     attribute position of an object
    nonlocal x, global x   a variable that is assigned by a function which the block calls

The contents of an object are recorded before a block changes it for the first time, and restored
after the block.  The targets whose values differ then are carried by a loop, and returned by a
branch, like variables.

AssignmentTarget    one target, with the interface of the cell of a variable
refusal_of      why an object cannot be changed in a traced block
contents        the elements, entries or attributes of an object
restore         give an object earlier contents
changed_targets the targets whose values differ from earlier contents
containers      the mutable containers in a value
ABSENT          the value of a variable or attribute that has none
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import CellType, FunctionType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any

Key = tuple[str, Any]  # "element", "entry", "attribute" or "variable"; and the index, key or name
Contents = dict[Key, Any]
ABSENT = object()


class AssignmentTarget:
    """An element of a list, an entry of a dict, an attribute of an object, or a variable.

    Parameters
    ----------
    owner : list, dict, object, cell, or the globals of a module
    key : (str, object)
    """

    __slots__ = ("key", "owner")

    def __init__(self, owner: Any, key: Key) -> None:
        self.owner, self.key = owner, key

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AssignmentTarget)
            and other.owner is self.owner
            and other.key == self.key
        )

    def __hash__(self) -> int:
        return hash((id(self.owner), self.key))

    def __str__(self) -> str:
        kind, key = self.key
        if kind == "variable":
            return f"the variable {key}"
        text = key if kind == "attribute" else repr(key)
        return f"{kind} {text} of a {type(self.owner).__name__}"

    @property
    def name(self) -> str | None:
        """The name of an attribute or variable; None for others."""
        kind, key = self.key
        return key if kind in ("attribute", "variable") else None

    @property
    def cell_contents(self) -> Any:
        """The value; raises ValueError if there is none, as a cell does."""
        value = contents(self.owner, self.name).get(self.key, ABSENT)
        if value is ABSENT:
            raise ValueError(f"{self} has no value")
        return value

    @cell_contents.setter
    def cell_contents(self, value: object) -> None:
        kind, key = self.key
        if kind == "variable" and type(self.owner) is CellType:
            self.owner.cell_contents = value
        elif kind == "attribute":
            object.__setattr__(self.owner, key, value)
        elif kind == "element" and key == len(self.owner):
            self.owner.append(value)
        else:
            self.owner[key] = value

    @cell_contents.deleter
    def cell_contents(self) -> None:
        kind, key = self.key
        if kind == "variable" and type(self.owner) is CellType:
            del self.owner.cell_contents
        elif kind == "attribute":
            object.__delattr__(self.owner, key)
        else:
            del self.owner[key]


def refusal_of(x: Any, attribute: str | None) -> str | None:
    """Why an element or attribute of `x` cannot be assigned in a traced block; None if it can.

    Parameters
    ----------
    x : object
    attribute : str, optional
        None for an element.
    """
    cls: Any = type(x)
    if cls in (list, dict, CellType):
        return None
    if attribute is None or isinstance(x, type | ModuleType | FunctionType):
        return f"it assigns to a part of a {cls.__name__}"
    if cls.__setattr__ is not object.__setattr__ or cls.__delattr__ is not object.__delattr__:
        return f"it assigns to an attribute of a {cls.__name__}, which defines __setattr__"
    for base in cls.__mro__:
        member = vars(base).get(attribute)
        if hasattr(type(member), "__set__") and not isinstance(member, MemberDescriptorType):
            return f"it assigns to {attribute} of a {cls.__name__}, which is a property"
    return None if hasattr(x, "__dict__") or _slots(cls) else f"it assigns to a {cls.__name__}"


def contents(x: Any, name: str | None = None) -> Contents:
    """The contents of an object, by kind and key.

    Parameters
    ----------
    x : object
    name : str, optional
        The name of the variable, if `x` is a cell or the globals of a module.
    """
    cls = type(x)
    if cls is CellType:
        try:
            return {("variable", name): x.cell_contents}
        except ValueError:
            return {("variable", name): ABSENT}
    if cls is dict and name is not None:
        return {("variable", name): x.get(name, ABSENT)}
    if cls is list:
        return {("element", k): v for k, v in enumerate(x)}
    if cls is dict:
        return {("entry", k): v for k, v in x.items()}
    members = {("attribute", n): v for n, v in getattr(x, "__dict__", {}).items()}
    for name in _slots(cls):
        value = getattr(x, name, ABSENT)
        if value is not ABSENT:
            members["attribute", name] = value
    return members


def restore(x: Any, before: Contents) -> None:
    """Give an object its earlier contents."""
    if not any(changed_targets(x, before)):
        return
    if type(x) is list:
        x[:] = before.values()
        return
    if (name := _variable_name(before)) is not None:
        target, value = AssignmentTarget(x, ("variable", name)), before["variable", name]
        if value is ABSENT:
            del target.cell_contents
        else:
            target.cell_contents = value
        return
    slots = _slots(type(x))
    storage = x if type(x) is dict else getattr(x, "__dict__", {})
    storage.clear()
    storage.update(
        (key, v) for (kind, key), v in before.items() if key not in slots or kind == "entry"
    )
    for name in slots:
        if ("attribute", name) in before:
            object.__setattr__(x, name, before["attribute", name])
        elif hasattr(x, name):
            object.__delattr__(x, name)


def changed_targets(x: Any, before: Contents) -> Iterator[tuple[AssignmentTarget, Any, bool]]:
    """The targets of an object whose values have changed.

    Parameters
    ----------
    x : object
    before : dict
        Its earlier contents.

    Yields
    ------
    (target, value, bool)
        False, and an arbitrary value, for a target that has been deleted.
    """
    now = contents(x, _variable_name(before))
    for key in before | now:
        value = now.get(key, ABSENT)
        if value is not before.get(key, ABSENT):
            yield AssignmentTarget(x, key), value, value is not ABSENT


def _variable_name(before: Contents) -> str | None:
    """The name of the variable, if these are the contents of one."""
    kind, name = next(iter(before), (None, None))
    return name if kind == "variable" else None


def containers(x: Any) -> Iterator[Any]:
    """The lists, dicts and dataclass instances in a value, including the value itself."""
    cls = type(x)
    if cls is list or cls is tuple:
        inner = x
    elif cls is dict:
        inner = x.values()
    elif dataclasses.is_dataclass(cls) or cls is SimpleNamespace:
        inner = contents(x).values()
    elif isinstance(x, tuple):
        inner = x
    else:
        return
    if not isinstance(x, tuple):
        yield x
    for part in inner:
        yield from containers(part)


def _slots(cls: type) -> tuple[str, ...]:
    """The names of the slots of a class and of its bases."""
    return tuple(
        name
        for base in cls.__mro__
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType) and name not in ("__dict__", "__weakref__")
    )
