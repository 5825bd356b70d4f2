"""Traversal of modules: parameters, buffers and submodules among attributes.

contents       the parameters, buffers and modules among named items, also inside lists,
               tuples and dicts, in the order in which they were set
every_tensor   the parameters or buffers of a module and all modules in it, with dotted names
at_path        the item with a dotted name
joined         prefix and name, joined by a dot
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wengert.errors import StructureError, at, user_line

from .parameter import Buffer, Parameter


class Belonging:
    """Base of `Module`, for recognition by `contents` without a circular import."""

    __slots__ = ()


def contents(items: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Parameters, buffers and modules among named items, with names; no recursion limit."""
    stack = [(str(name), item) for name, item in items.items()][::-1]
    open_: list[Any] = []  # keeps visited containers alive, so that ids are not reused
    seen: set[int] = set()
    while stack:
        name, item = stack.pop()
        if isinstance(item, Parameter | Buffer | Belonging):
            yield name, item
        elif isinstance(item, list | tuple | dict) and id(item) not in seen:
            seen.add(id(item))
            open_.append(item)
            inside = item.items() if isinstance(item, dict) else enumerate(item)
            stack.extend([(f"{name}.{key}", x) for key, x in inside][::-1])


def every_tensor(module: Any, kind: type, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All names of all parameters (or buffers); shared ones occur several times."""
    for module_name, inner in module.named_modules(prefix):
        for name, item in inner.named_items():
            if isinstance(item, kind):
                yield joined(module_name, name), item


def unique(named: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Each item once, with its first name."""
    seen: set[int] = set()
    for name, item in named:
        if id(item) not in seen:
            seen.add(id(item))
            yield name, item


def at_path(module: Any, path: str, named: Iterator[tuple[str, Any]], what: str) -> Any:
    """The parameter, buffer or module with a dotted name.

    Raises
    ------
    StructureError
        The name does not exist.
    """
    items = dict(named)
    if path not in items:
        raise StructureError(
            f"{type(module).__name__} has no {what} {path!r}. It has "
            f"{[name for name in items if name] or 'none'}{at(user_line())}."
        )
    return items[path]


def joined(prefix: str, name: str) -> str:
    """``prefix.name``."""
    return f"{prefix}.{name}" if prefix else name
