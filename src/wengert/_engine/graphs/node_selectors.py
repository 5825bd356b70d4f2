"""Selectors: which lines a pattern means.

    "encoder/*"              names, with the wildcards of file names
    "tanh"                   the last part of a name is enough
    "encoder tanh"           a space: inside a scope, at any depth
    "encoder *[op=mat*]"     [key=value]: an operation, level, kind, or what wengert.scope has noted

A pattern is read once, and gives a predicate of names and lines.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from typing import Any

from wengert._engine.core.node import Node
from wengert.errors import ArgumentError, at, user_line

Fits = Callable[[str, Node], bool]
_CONDITION = re.compile(r"\[(\w+)=([^\]]*)\]")
_WORD = re.compile(rf"(?:{_CONDITION.pattern}|\S)+")


def selector(pattern: str) -> Fits:
    """The predicate that a pattern is.

    Raises
    ------
    ArgumentError
        It is empty, a bracket is not closed, or a condition is put on a scope.
    """
    *scopes, last = [m.group() for m in _WORD.finditer(pattern)] or [""]
    conditions = _CONDITION.findall(last)
    name = _CONDITION.sub("", last) or "*"
    if not last or any("[" in word and "=" in word for word in (*scopes, name)):
        raise ArgumentError(
            f"the pattern {pattern!r} cannot be read. Write scopes, a name and conditions, each "
            f"with wildcards if need be: 'encoder layer* *[op=matmul]'{at(user_line())}."
        )

    def fits(full: str, node: Node) -> bool:
        return (
            (fnmatch.fnmatchcase(full, name) or fnmatch.fnmatchcase(full.split("/")[-1], name))
            and _is_inside(node.scope, scopes)
            and all(holds(node, key, text) for key, text in conditions)
        )

    return fits


def _is_inside(path: str, scopes: list[str]) -> bool:
    """Whether some parts of a path are these, in order."""
    parts = iter(path.split("/"))
    return all(any(fnmatch.fnmatchcase(part, word) for part in parts) for word in scopes)


def holds(node: Node, key: str, wanted: Any) -> bool:
    """Whether a line has a property: op, scope, level, kind, where, or one that was noted."""
    if key == "op":
        return fnmatch.fnmatchcase(node.op.name, wanted)
    if key == "scope":
        return f"{node.scope}/".startswith(f"{wanted}/")
    if key == "where":
        return wanted in (node.where or "")
    noted = {**node.metadata, "level": node.level, "kind": node.kind}
    return key in noted and bool(noted[key] == wanted or str(noted[key]) == wanted)
