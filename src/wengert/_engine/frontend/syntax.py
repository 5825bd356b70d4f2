"""Syntax trees: their nodes, and constructors of nodes.

Tree traversal: the nodes of a syntax tree, without contexts and operators.

`ast.iter_child_nodes` looks at every field of every node.  Here the fields of a class that have
nodes are known, and a name or a constant has none; this takes a quarter of the time.

    children    the nodes in the fields of a node, in order
    traverse    nodes and all nodes below them
    copied      a copy of a tree; contexts and operators are shared

Constructors of syntax tree nodes.

call, load, thunk     expressions
string, strings       constants
parameter_list        the parameters of a function
located               a node with the source location of another one
mangled               the mangled name of a private variable of a class
runtime_name          the name of a function that the rewritten code calls
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
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


T = TypeVar("T", bound=ast.AST)


def runtime_name(word: str) -> str:
    """The name by which rewritten code refers to a function of `running`."""
    return f"__wg_{word}__"


def located(where: ast.AST, node: T) -> T:
    """Give the node, and its descendants, the location of `where` if they have none; return it."""
    for inner in traverse(node):
        if isinstance(inner, ast.expr | ast.stmt | ast.arg) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, where)
    return node


def load(word: str) -> ast.Name:
    """A variable that is read."""
    return ast.Name(word, ast.Load())


def call(word: str, *args: ast.expr) -> ast.Call:
    """A call of a function of `running`."""
    return ast.Call(load(runtime_name(word)), list(args), [])


def thunk(value: ast.expr) -> ast.Lambda:
    """A function without parameters that evaluates an expression: ``lambda: value``."""
    return ast.Lambda(parameter_list(), value)


def parameter_list(*names: str) -> ast.arguments:
    """Positional parameters without defaults."""
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def string(word: str | None) -> ast.Constant:
    """A constant string, or None."""
    return ast.Constant(word)


def strings(words: Iterable[str]) -> ast.Tuple:
    """A tuple of constant strings, in alphabetical order."""
    return ast.Tuple([string(w) for w in sorted(words)], ast.Load())


def mangled(word: str, private: str | None) -> str:
    """The mangled name of a variable inside a class: ``__x`` becomes ``_Class__x``."""
    if private is None or not word.startswith("__") or word.endswith("__"):
        return word
    owner = private.lstrip("_")
    return f"_{owner}{word}" if owner else word
