"""Constructors of syntax tree nodes.

call, load, thunk     expressions
string, strings       constants
parameter_list        the parameters of a function
located               a node with the source location of another one
mangled               the mangled name of a private variable of a class
runtime_name          the name of a function that the rewritten code calls
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TypeVar

from ..tree_traversal import traverse

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
