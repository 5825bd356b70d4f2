"""Tree traversal: the nodes of a syntax tree, without contexts and operators.

`ast.iter_child_nodes` looks at every field of every node.  Here the fields of a class that have
nodes are known, and a name or a constant has none; this takes a quarter of the time.

    children    the nodes in the fields of a node, in order
    traverse    nodes and all nodes below them
    copied      a copy of a tree; contexts and operators are shared
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeVar

Tree = TypeVar("Tree", bound=ast.AST)

_WITHOUT_NODES = frozenset(
    "ctx op ops id attr arg kind type_comment module level is_async conversion lineno n s".split()
)
_LEAVES = (ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
_SHARED = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
_fields: dict[type[ast.AST], tuple[str, ...]] = {}


def _fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    leaf = issubclass(kind, _LEAVES)
    found = () if leaf else tuple([f for f in kind._fields if f not in _WITHOUT_NODES])
    _fields[kind] = found
    return found


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes in the fields of a node, in order."""
    kind = type(node)
    fields = _fields.get(kind)
    if fields is None:
        fields = _fields_of(kind)
    if not fields:
        return []
    found: list[ast.AST] = []
    for field in fields:
        value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif type(value) is list:
            found += [x for x in value if isinstance(x, ast.AST)]
    return found


def traverse(*nodes: ast.AST) -> Iterator[ast.AST]:
    """These nodes and all nodes below them, in the order of `ast.walk`."""
    found = list(nodes)
    for node in found:
        found += children(node)
        yield node


def copied(tree: Tree) -> Tree:
    """A copy of a tree; contexts and operators are shared, as they are by `ast.parse`."""
    made: Any = type(tree).__new__(type(tree))
    values = made.__dict__
    for name, value in tree.__dict__.items():
        if isinstance(value, ast.AST):
            value = value if isinstance(value, _SHARED) else copied(value)
        elif type(value) is list:
            value = [
                copied(x) if isinstance(x, ast.AST) and not isinstance(x, _SHARED) else x
                for x in value
            ]
        values[name] = value
    return made  # type: ignore[no-any-return]
