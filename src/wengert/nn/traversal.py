"""Found: what belongs to a module, by looking at its attributes.

contents       the parameters, buffers and modules among named items, also inside lists,
               tuples and dicts, in the order in which they were set
every_tensor   the parameters or buffers of a module and all modules in it, with dotted names
at_path        what is at a dotted name
joined         a dotted name of two
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wengert.errors import StructureError, at, user_line

from .parameter import Buffer, Parameter


class Belonging:
    """What is looked for beside parameters and buffers: the base of `Module`."""

    __slots__ = ()


def contents(items: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Parameters, buffers and modules among named items, with names; no recursion limit."""
    stack = [(str(name), item) for name, item in items.items()][::-1]
    open_: list[Any] = []  # containers seen, kept alive so that their ids stay theirs
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
    """Every name of every parameter (or buffer): a shared one occurs more than once."""
    for module_name, inner in module.named_modules(prefix):
        for name, item in inner.named_items():
            if isinstance(item, kind):
                yield joined(module_name, name), item


def unique(named: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Each only once, by its first name."""
    seen: set[int] = set()
    for name, item in named:
        if id(item) not in seen:
            seen.add(id(item))
            yield name, item


def at_path(module: Any, path: str, named: Iterator[tuple[str, Any]], what: str) -> Any:
    """The parameter, buffer or module of that dotted name.

    Raises
    ------
    StructureError
        There is none.
    """
    known = dict(named)
    if path not in known:
        raise StructureError(
            f"{type(module).__name__} has no {what} {path!r}. It has "
            f"{[name for name in known if name] or 'none'}{at(user_line())}."
        )
    return known[path]


def joined(prefix: str, name: str) -> str:
    """``prefix.name``."""
    return f"{prefix}.{name}" if prefix else name
