"""Names of nodes, and patterns that select nodes by name, scope and other properties.

    "encoder/*"              names, with the wildcards of file names
    "tanh"                   the last part of a name is enough
    "encoder tanh"           a space: inside a scope, at any depth
    "encoder *[op=mat*]"     [key=value]: an operation, level, kind, or metadata of wengert.scope

A pattern is parsed once, to a predicate of names and nodes.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from wengert.errors import ArgumentError, at, user_line

from .node import Node
from .validation import spelled, word

Predicate = Callable[[str, Node], bool]
_CONDITION = r"\[(\w+)=([^\]]*)\]"
_WORD = rf"(?:{_CONDITION}|\S)+"


def unique_names(nodes: Iterable[Node]) -> tuple[str, ...]:
    """A name for each node: its own, or its operation's, after its scope; ``encoder/matmul_2``."""
    count: dict[str, int] = {}
    taken: set[str] = set()
    names = []
    for node in nodes:
        own = node.name or node.op.name.strip("_")
        base = name = f"{node.scope}/{own}" if node.scope else own
        while name in taken:
            count[base] = count.get(base, 0) + 1
            name = f"{base}_{count[base]}"
        taken.add(name)
        names.append(name)
    return tuple(names)


def selected(
    named: Iterable[tuple[str, Node]],
    pattern: str | Callable[[Node], bool],
    conditions: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> tuple[Node, ...]:
    """The nodes that match a pattern and satisfy all conditions that are not None.

    Raises
    ------
    ArgumentError
        The pattern is neither a string nor a predicate, or a condition is not a string.
    """
    for name, value in conditions.items():
        if value is not None and name != "level" and not isinstance(value, str):
            raise ArgumentError(
                f"select: {name} must be a string, not {spelled(value)}{at(user_line())}."
            )
    wanted = {k: v for k, v in conditions.items() if v is not None} | dict(metadata)
    fits = _fits(pattern)
    return tuple(
        node
        for name, node in named
        if fits(name, node) and all(holds(node, k, v) for k, v in wanted.items())
    )


def _fits(pattern: str | Callable[[Node], bool]) -> Predicate:
    if not callable(pattern):
        return selector(word(pattern, "the pattern of select"))
    return lambda name, node: pattern(node)


def selector(pattern: str) -> Predicate:
    """The predicate of a pattern.

    Raises
    ------
    ArgumentError
        The pattern is empty, a bracket is not closed, or a scope has a condition.
    """
    *scopes, last = [m.group() for m in re.finditer(_WORD, pattern)] or [""]
    conditions = re.findall(_CONDITION, last)
    name = re.sub(_CONDITION, "", last) or "*"
    if not last or any("[" in word and "=" in word for word in (*scopes, name)):
        raise ArgumentError(
            f"the pattern {pattern!r} is not valid. Write scopes, a name and conditions, with "
            f"wildcards if needed: 'encoder layer* *[op=matmul]'{at(user_line())}."
        )

    def fits(full: str, node: Node) -> bool:
        return (
            (fnmatch.fnmatchcase(full, name) or fnmatch.fnmatchcase(full.split("/")[-1], name))
            and _is_inside(node.scope, scopes)
            and all(holds(node, key, text) for key, text in conditions)
        )

    return fits


def _is_inside(path: str, scopes: list[str]) -> bool:
    """Whether a path contains parts that match these patterns, in this order."""
    parts = iter(path.split("/"))
    return all(any(fnmatch.fnmatchcase(part, word) for part in parts) for word in scopes)


def holds(node: Node, key: str, wanted: Any) -> bool:
    """Whether a node has a property: op, scope, level, kind, where, or metadata."""
    if key == "op":
        return fnmatch.fnmatchcase(node.op.name, wanted)
    if key == "scope":
        return f"{node.scope}/".startswith(f"{wanted}/")
    if key == "where":
        return wanted in (node.where or "")
    properties = {**node.metadata, "level": node.level, "kind": node.kind}
    return key in properties and bool(properties[key] == wanted or str(properties[key]) == wanted)
