"""The order of the nodes of a graph.

topological               operands first, in order of creation
ancestors                 in order of creation, constants too
with_effects_in_order     side effects in program order

Names of nodes, and patterns that select nodes by name, scope and other properties.

    "encoder/*"              names, with the wildcards of file names
    "tanh"                   the last part of a name is enough
    "encoder tanh"           a space: inside a scope, at any depth
    "encoder *[op=mat*]"     [key=value]: an operation, level, kind, or metadata of wengert.scope

A pattern is parsed once, to a predicate of names and nodes.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from wengert.errors import ArgumentError, CycleError, at, user_line

from .node import CONSTANT, ConstantLeaf, Node
from .validation import spelled, word

_serial = attrgetter("serial")


def topological(outputs: Iterable[Node]) -> list[Node]:
    """The nodes that outputs depend on, in order of creation; constants before their first use.

    Raises
    ------
    CycleError
        A node uses one that was made later.
    """
    seen = set(outputs)
    stack = list(seen)
    while stack:
        node = stack.pop()
        serial = node.serial
        for a in node.inputs:
            # The node of a constant may have just been created, by `inputs`.
            if a.serial >= serial and not (a.op is CONSTANT and isinstance(a, ConstantLeaf)):
                raise CycleError(
                    f"{node!r} uses {a!r}, which was created later or is itself: the graph has a "
                    "cycle. A node may only use earlier nodes."
                )
            if a not in seen:
                seen.add(a)
                stack.append(a)
    ordered: dict[Node, None] = {}
    for node in sorted(seen, key=_serial):
        if node.op is CONSTANT and isinstance(node, ConstantLeaf):
            continue
        for a in node.inputs:
            if a.op is CONSTANT:
                ordered[a] = None
        ordered[node] = None
    unused = sorted((n for n in seen if n not in ordered), key=_serial)
    ordered.update(dict.fromkeys(unused))
    return list(ordered)


def ancestors(nodes: Iterable[Node]) -> list[Node]:
    """Some nodes and all nodes that they depend on, in order of creation.

    Operands come first, except constants whose nodes were made after their use (`Node.inputs`).
    """
    seen: set[Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += node.inputs
    return sorted(seen, key=_serial)


def with_effects_in_order(nodes: list[Node], effects: Sequence[Node]) -> list[Node]:
    """The nodes in an order in which side effects come as listed.

    The order of serial numbers may differ: a node that a transformation makes has a larger one than
    nodes that come after it in the program.
    """
    if len(effects) < 2:
        return nodes
    index = {n: i for i, n in enumerate(nodes)}
    indices = [index[n] for n in effects]
    if all(i <= j for i, j in itertools.pairwise(indices)):
        return nodes
    ordered: dict[Node, None] = {}
    for effect in effects:
        before, stack = {effect}, [effect]
        while stack:
            new = [a for a in stack.pop().inputs if a not in before and a not in ordered]
            before.update(new)
            stack += new
        ordered.update(dict.fromkeys(sorted(before, key=index.__getitem__)))
    ordered.update(dict.fromkeys(nodes))
    return list(ordered)


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
